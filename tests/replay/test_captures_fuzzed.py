"""Recorded launches that were damaged or forged: a `CaptureError`, or a program that is C++."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fuzzing import BUDGETS, changed, damaged, fuzz
from hypothesis import strategies as st
from replay_helpers import document, rewrite

from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay import emit_cpp, read
from triton_porting_kit.replay.manifest import NAME, Buffer, Kernel, Manifest, Slot, StoredFile


def make(folder: Path) -> None:
    """A recorded launch of a kernel that nobody has compiled."""
    folder.mkdir(mode=0o700)
    write = lambda name, content: StoredFile.write(folder, name, content)  # noqa: E731
    buffers = [
        Buffer(
            [name],
            hex(4096 * (number + 1)),
            400,
            64,
            write(f"{name}.before", bytes(400)),
            write(f"{name}.after", b"1" * 400),
        )
        for number, name in enumerate(("x_ptr", "out_ptr"))
    ]
    Manifest(
        kernel=Kernel(
            "scale", "00", write("kernel.bin", b"code"), "bin", None, write("kernel.ttir", b"ir"), "a.py", 3
        ),
        grid=(4, 1, 1),
        stream=0,
        device_number=0,
        block=write("arguments.bin", struct.pack("<QQq", 4096, 8192, 100)),
        slots=[
            Slot("x_ptr", "*fp32", 0, 8, "0x1000", 0, 0),
            Slot("out_ptr", "*fp32", 8, 8, "0x2000", 1, 16),
            Slot("n", "i32", 16, 4, 100),
        ],
        layout={"slots": []},
        buffers=buffers,
        unresolved=[],
        notes=["a note"],
        backend="acme",
        runtime="vnpu",
        target={"backend": "acme", "arch": "one"},
        device={"name": "NPU"},
        metadata={"num_warps": 4},
        versions={"kit": "0.1", "triton": "3.9.0", "python": "3.11.7"},
        time="2026-03-01T10:00:00+00:00",
        state="complete",
    ).write(folder)


def use(folder: Path, program: Path) -> None:
    """Read and emit; an error is a typed one, and what is written is text of one program in its folder."""
    try:
        emit_cpp(read(folder), program)
    except CaptureError:
        return
    text = (program / "main.cpp").read_text()
    assert "evil(" not in "".join(line.partition("//")[0] for line in text.splitlines() if '"' not in line)
    assert not any(line.endswith("\\") for line in text.splitlines())
    assert all(ord(character) >= 32 or character == "\n" for character in text)


def test_what_is_made_is_read(tmp_path: Path) -> None:
    make(tmp_path / "launch")
    emit_cpp(read(tmp_path / "launch"), tmp_path / "program")
    assert "vnpu_launch" in (tmp_path / "program" / "main.cpp").read_text()


@pytest.mark.parametrize("times", BUDGETS)
def test_manifests_that_were_forged(times: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        launch = Path(place, "launch")
        make(launch)
        good = document(launch)

        def body(data: st.DataObject) -> None:
            forged: dict[str, Any] = changed(data, good)
            rewrite(launch, forged)
            use(launch, Path(place, "program"))

        fuzz(150 * times, body)


@pytest.mark.parametrize("times", BUDGETS)
def test_files_that_were_damaged(times: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        launch = Path(place, "launch")
        make(launch)
        good = {path.name: path.read_bytes() for path in launch.iterdir()}
        assert json.loads(good[NAME])

        def body(data: st.DataObject) -> None:
            name = data.draw(st.sampled_from([NAME, NAME, *sorted(good)]))
            (launch / name).write_bytes(damaged(data, good[name]))
            try:
                use(launch, Path(place, "program"))
            finally:
                (launch / name).write_bytes(good[name])

        fuzz(60 * times, body)

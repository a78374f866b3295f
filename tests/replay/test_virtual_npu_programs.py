"""Recorded launches as C++ programs over the virtual NPU's C API."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from emitted_programs import build, for_virtual_npu, run
from replay_helpers import Recorder

from triton_porting_kit.replay import emit_cpp, read
from triton_porting_kit.replay.abi import abi_version, pointer_offsets

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared


@pytest.fixture(scope="module")
def program(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built program."""
    folder = tmp_path_factory.mktemp("emitted") / "plain"
    emit_cpp(for_virtual_npu(read(recorder("plain").launches[0])), folder)
    build(folder)
    return folder


def test_the_chip_replays(program: Path, tmp_path: Path) -> None:
    done = run(program / "build" / "replay", "--repeat", "3", "--dump", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "run 3: " in done.stdout
    assert done.stdout.endswith("all memory is identical to the recording\n")
    (after,) = (program / "data").glob("*.after.bin")
    assert (tmp_path / after.name.replace(".after", "")).read_bytes() == after.read_bytes()


def test_a_difference_is_seen(program: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(program / "data", data)
    (after,) = data.glob("*.after.bin")
    content = bytearray(after.read_bytes())
    content[-1] ^= 0x80
    after.write_bytes(content)
    done = run(program / "build" / "replay", "--data", str(data))
    assert done.returncode == 1
    assert (
        "(out_ptr: *fp32): element [999] is 0x455ac000 (3500), recorded was 0xc55ac000 (-3500)" in done.stderr
    )


def test_a_failing_call_ends_the_program(program: Path) -> None:
    done = run(program / "build" / "replay", VNPU_FAULTS="fail-alloc:1")
    assert done.returncode == 1
    assert "VNPU_OUT_OF_MEMORY: vnpu_alloc" in done.stderr


def test_a_crash_of_the_chip_is_told(recorder: Recorder, tmp_path: Path) -> None:
    emit_cpp(for_virtual_npu(read(recorder("crash").launches[1])), tmp_path / "p")
    done = run(build(tmp_path / "p"))
    assert done.returncode == 1
    assert "VNPU_DEVICE_LOST" in done.stderr
    assert "kernel 'wild' crashed" in done.stderr


def test_routines_of_the_chip(recorder: Recorder, tmp_path: Path) -> None:
    emit_cpp(for_virtual_npu(read(recorder("functions").launches[0])), tmp_path / "p")
    done = run(build(tmp_path / "p"))
    assert done.returncode == 0, done.stderr


def test_the_abi_is_read_from_both_kinds_of_object(recorder: Recorder) -> None:
    capture = read(recorder("plain").launches[0])
    assert abi_version(capture.binary) == 3
    assert abi_version(for_virtual_npu(capture).binary) == 3
    for binary in (capture.binary, for_virtual_npu(capture).binary):
        assert pointer_offsets(binary, "scale_add") == [0, 8, 16]
        assert pointer_offsets(binary, "other") is None
    assert [abi_version(binary) for binary in (b"", b"\x7fELF", capture.binary[:100], b"PTX")] == [None] * 4

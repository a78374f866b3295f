"""What is recorded of a launch: everything that it takes to run it again, and what of that is missing."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from replay_helpers import PROGRAMS, Recorder, document

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.launcher import ArgLayout
from triton_porting_kit.replay.manifest import SCHEMA

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared

EVERY = ("plain", "aliases", "structures", "pointers_in_memory", "unknown_memory", "stream")


def content(launch: Path, file: dict[str, Any]) -> bytes:
    return (launch / file["file"]).read_bytes()


def buffer_of(launch: Path, name: str) -> dict[str, Any]:
    (found,) = (buffer for buffer in document(launch)["buffers"] if name in buffer["names"])
    return dict(found)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "always", str(PROGRAMS), program]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def test_a_launch_is_recorded_whole(recorder: Recorder) -> None:
    recorded = recorder("plain")
    assert recorded.status == 0, recorded.printed
    (launch,) = recorded.launches
    assert launch.name == "0001-scale_add"
    data = document(launch)
    assert data["state"] == "complete"
    assert data["launch"] == {"grid": [4, 1, 1], "stream": 0, "device": 0}
    assert (data["backend"], data["runtime"], data["kernel"]["abi"]) == ("cpu", "host", 3)
    assert data["kernel"]["source_file"] == str(PROGRAMS)
    line = PROGRAMS.read_text().splitlines()[data["kernel"]["source_line"] - 1]
    assert line.startswith("def scale_add(")
    assert b"tt.func public @scale_add" in content(launch, data["kernel"]["ttir"])
    assert content(launch, data["kernel"]["binary"]).startswith(b"\x7fELF")
    assert data["metadata"]["num_warps"] == 1
    assert data["device"]["core_count"] >= 1
    # The argument block, as its layout says.
    layout = ArgLayout.from_dict(data["arguments"]["layout"])
    block = content(launch, data["arguments"]["block"])
    assert len(block) == layout.size
    slots = {slot["name"]: slot for slot in data["arguments"]["slots"]}
    assert [(s.name, s.type, s.offset) for s in layout.slots] == [
        (s["name"], s["type"], s["offset"]) for s in slots.values()
    ]
    assert struct.unpack_from("<i", block, slots["n"]["offset"]) == (1000,)
    assert struct.unpack_from("<f", block, slots["factor"]["offset"]) == (2.5,)
    assert (slots["n"]["value"], slots["factor"]["value"]) == (1000, "2.5")
    # Memory before and after.
    x = np.arange(1, 1001, dtype=np.float32)
    out = buffer_of(launch, "out_ptr")
    np.testing.assert_array_equal(np.frombuffer(content(launch, out["before"]), np.float32), np.zeros(1000))
    np.testing.assert_array_equal(np.frombuffer(content(launch, out["after"]), np.float32), 2.5 * x + x)
    unchanged = buffer_of(launch, "x_ptr")
    assert unchanged["after"] == unchanged["before"]
    np.testing.assert_array_equal(np.frombuffer(content(launch, unchanged["before"]), np.float32), x)


@pytest.mark.parametrize("program", EVERY)
def test_manifests_keep_to_their_schema(program: str, recorder: Recorder) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for launch in recorder(program).launches:
        jsonschema.validate(document(launch), schema)


def test_nobody_else_can_read_what_is_recorded(recorder: Recorder) -> None:
    (launch,) = recorder("plain").launches
    for path in (launch, *launch.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_what_aliases_is_recorded_once(recorder: Recorder) -> None:
    (launch,) = recorder("aliases").launches
    (buffer,) = document(launch)["buffers"]
    assert buffer["names"] == ["x_ptr", "y_ptr", "out_ptr"]
    assert buffer["size"] == 96 * 4
    slots = document(launch)["arguments"]["slots"]
    assert [slot["buffer_offset"] for slot in slots if "buffer" in slot] == [0, 128, 256]


def test_tuples_and_descriptors(recorder: Recorder) -> None:
    pair, descriptor = recorder("structures").launches
    slots = {slot["name"]: slot for slot in document(pair)["arguments"]["slots"]}
    assert slots["pair[1]"]["value"] == 7
    assert buffer_of(pair, "pair[0]")["size"] == 128
    slots = {slot["name"]: slot for slot in document(descriptor)["arguments"]["slots"]}
    assert slots["desc.shape[0]"]["value"] == 8
    assert buffer_of(descriptor, "desc.base")["size"] == 256


def test_storage_of_torch_tensors_is_recorded_whole(recorder: Recorder) -> None:
    pytest.importorskip("torch")
    views, reinterpreted = recorder("torch_tensors").launches
    (buffer,) = document(views)["buffers"]
    assert buffer["size"] == 128 * 2
    slots = {slot["name"]: slot for slot in document(views)["arguments"]["slots"]}
    assert [slots[f"{name}_ptr"]["buffer_offset"] for name in ("x", "y", "out")] == [32, 128, 192]
    assert buffer_of(reinterpreted, "x_ptr")["size"] == 32


def test_addresses_that_are_no_pointer_arguments_are_told(recorder: Recorder) -> None:
    recorded = recorder("pointers_in_memory")
    table, integer = recorded.launches
    (note,) = document(table)["notes"]
    assert "the memory of 'table_ptr' contains 1 device address (the first at byte 0)" in note
    (note,) = document(integer)["notes"]
    assert note.startswith("the integer 'address' is an address in device memory (0x")
    assert "CaptureWarning" in recorded.printed


def test_memory_that_nobody_knows_is_told(recorder: Recorder) -> None:
    recorded = recorder("unknown_memory")
    (launch,) = recorded.launches
    (unresolved,) = document(launch)["unresolved"]
    assert unresolved["name"] == "x_ptr"
    assert "passed as Foreign, is not in memory that the device allocated" in unresolved["why"]
    assert "cannot be replayed: argument 'x_ptr'" in recorded.printed


def test_memory_that_cannot_be_read_is_told(recorder: Recorder) -> None:
    recorded = recorder("unreadable_memory")
    assert recorded.status == 0, recorded.printed
    data = document(recorded.launches[0])
    assert data["unresolved"] == [
        {"name": "x_ptr", "why": "its memory cannot be read: memcpy_dtoh: it is not in a live allocation"}
    ]
    assert (data["state"], data["buffers"]) == ("complete", [])
    assert "buffer" not in data["arguments"]["slots"][0]


def test_arguments_that_the_launcher_adds_are_told(recorder: Recorder) -> None:
    (known, _) = recorder("hidden_arguments").launches
    (unresolved,) = document(known)["unresolved"]
    assert unresolved == {
        "name": "scratch",
        "why": "its value comes from the launcher and was not passed to the launch",
    }
    assert [slot["name"] for slot in document(known)["arguments"]["slots"]] == ["x_ptr", "scratch"]


def test_pointers_of_the_binary_that_no_argument_is(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton_porting_kit.replay import launches
    from triton_porting_kit.replay.memory import TrackedMemory

    class Slot:
        name, type, offset, size = "n", "i32", 0, 4

    class Kernel:
        name, kernel = "k", b""

    class Launch:
        kernel, slots, values, missing = Kernel, (Slot,), (5,), ()

    monkeypatch.setattr(launches, "pointer_offsets", lambda binary, kernel: [8])
    found: Any = launches._regions(Launch, TrackedMemory(HostDevice()))  # type: ignore[arg-type]
    (unresolved,) = found[1]
    assert unresolved["name"] == "byte 8 of the argument block"


def test_launches_on_streams_are_waited_for(recorder: Recorder) -> None:
    launches = recorder("stream").launches
    firsts = []
    for launch in launches:
        buffer = buffer_of(launch, "x_ptr")
        firsts += [
            np.frombuffer(content(launch, buffer[when]), np.float32)[0] for when in ("before", "after")
        ]
        assert document(launch)["launch"]["stream"] > 0
    assert firsts == [1, 2, 2, 3, 3, 4]


def test_the_version_of_the_kernel_that_is_launched_is_recorded(recorder: Recorder) -> None:
    """Its option is what the second one was compiled with, since its offsets wrap around."""
    launches = [document(launch) for launch in recorder("wrapping").launches]
    assert [launch["metadata"]["offsets_may_wrap"] for launch in launches] == [False, True]


def test_empty_grids_launch_nothing(recorder: Recorder) -> None:
    recorded = recorder("nothing_to_run")
    assert (recorded.launches, recorded.status) == ([], 0)
    assert "no launch of a kernel '*' was recorded" in recorded.printed


def test_a_launch_that_kills_the_process_is_recorded(recorder: Recorder) -> None:
    recorded = recorder("crash")
    assert recorded.status == 128 + 11
    good, bad = recorded.launches
    assert document(good)["state"] == "complete"
    data = document(bad)
    assert (data["state"], data["kernel"]["name"]) == ("launched", "wild")
    assert [buffer["after"] for buffer in data["buffers"]] == [None]
    assert content(bad, data["buffers"][0]["before"]) == np.arange(1, 33, dtype=np.float32).tobytes()
    assert (
        "0002-wild: wild, grid 1x1x1, 1 buffer of 128 bytes in all; the process ended during it"
        in recorded.printed
    )


def test_a_launch_that_raises_is_recorded(recorder: Recorder) -> None:
    recorded = recorder("assertion")
    assert recorded.status == 0, recorded.printed
    (launch,) = recorded.launches
    data = document(launch)
    assert (data["state"], data["error"]["type"]) == ("failed", "AssertionFailed")
    assert "not positive" in data["error"]["message"]
    assert buffer_of(launch, "out_ptr")["after"] is not None


# --- the environment ---------------------------------------------------------------------------------


def test_size_is_limited(cpu_backend: None, tmp_path: Path) -> None:
    done = run("large", TPK_CAPTURE=str(tmp_path / "c"), TPK_CAPTURE_LIMIT="1M")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "c").glob("0*")] == ["0001-increment"]
    assert "a launch of kernel 'increment' is not recorded: it takes 8.0 MiB" in done.stderr
    assert "set TPK_CAPTURE_LIMIT to more" in done.stderr


def test_kernels_and_counts_are_chosen(cpu_backend: None, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    done = run("structures", TPK_CAPTURE=str(folder), TPK_CAPTURE_KERNEL="of_d*")
    assert [path.name for path in folder.glob("0*")] == ["0001-of_descriptor"], done.stderr
    done = run("stream", TPK_CAPTURE=str(folder), TPK_CAPTURE_COUNT="2")
    assert sorted(path.name for path in folder.glob("0*")) == ["0001-of_descriptor", "0002-increment"]
    assert "has 2, the limit that TPK_CAPTURE_COUNT sets" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"), [("TPK_CAPTURE_LIMIT", "plenty"), ("TPK_CAPTURE_COUNT", "-1")]
)
def test_settings_that_make_no_sense(cpu_backend: None, tmp_path: Path, variable: str, value: str) -> None:
    done = run("plain", TPK_CAPTURE=str(tmp_path / "c"), **{variable: value})
    assert done.returncode == 1
    assert f"CaptureError: {variable} is '{value}'" in done.stderr


def test_folders_that_others_can_write_are_refused(cpu_backend: None, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    done = run("plain", TPK_CAPTURE=str(folder))
    assert done.returncode == 1
    assert "InsecureCacheError" in done.stderr
    assert list(folder.iterdir()) == []


def test_nothing_is_loaded_when_nothing_is_recorded(cpu_backend: None) -> None:
    script = (
        f"import sys, runpy; sys.argv = ['p', 'plain']; space = runpy.run_path({str(PROGRAMS)!r}, run_name='__main__')\n"
        "import triton\n"
        "assert not any(m.startswith('triton_porting_kit.replay') for m in sys.modules)\n"
        "from triton_porting_kit.driver.adapter import TritonDriver\n"
        "assert TritonDriver.on_open is None\n"
        "assert 'memalloc' not in vars(triton.runtime.driver.active.device)\n"
        "from triton_porting_kit.launcher import PackedLauncher\n"
        "(kernel,) = list(space['scale_add'].device_caches.values())[0][0].values()\n"
        "assert type(kernel.run) is PackedLauncher\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TPK_CAPTURE")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr

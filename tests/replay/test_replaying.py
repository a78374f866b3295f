"""Recorded launches run again on the CPU."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from replay_helpers import Recorder, alter_output, document, rewrite

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import AssertionFailed, CaptureError, InsecureCacheError
from triton_porting_kit.replay import open_device, read, replay

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared

GOOD = ("plain", "aliases", "structures", "stream", "functions", "wrapping")


@pytest.fixture(scope="module")
def device() -> HostDevice:
    return HostDevice()


@pytest.mark.parametrize("program", GOOD)
def test_launches_leave_what_was_recorded(program: str, recorder: Recorder, device: HostDevice) -> None:
    for launch in recorder(program).launches:
        capture = read(launch)
        result = replay(capture, device)
        assert result.agrees(capture.manifest), [str(found) for found in result.differences]
        assert len(result.milliseconds) == 1
    assert device.memory_usage()[2] == 0


def test_launches_with_torch_tensors(recorder: Recorder, device: HostDevice) -> None:
    pytest.importorskip("torch")
    for launch in recorder("torch_tensors").launches:
        capture = read(launch)
        assert replay(capture, device).agrees(capture.manifest)


def test_every_repetition_starts_anew(recorder: Recorder, device: HostDevice) -> None:
    first = read(recorder("stream").launches[0])
    result = replay(first, device, repeat=5)
    assert result.agrees(first.manifest)
    assert (result.run, len(result.milliseconds)) == (5, 5)
    assert "median of 5" in result.timing


def test_differences_are_told(plain: Path, device: HostDevice) -> None:
    alter_output(plain, "out_ptr", 4 * 17, 1)
    capture = read(plain)
    result = replay(capture, device, repeat=3)
    assert not result.agrees(capture.manifest)
    (found,) = result.differences
    assert (found.name, found.elements, found.total, found.index) == ("out_ptr: *fp32", 1, 1000, 17)
    assert found.ulp == 1
    assert result.run == 1
    assert (
        "1 of 1,000 elements differ; the first at [17] (byte 68 of the buffer): 63.0 (0x427c0000), recorded"
        in str(found)
    )


def test_memory_is_dumped(recorder: Recorder, device: HostDevice, tmp_path: Path) -> None:
    capture = read(recorder("plain").launches[0])
    replay(capture, device, dump=tmp_path / "out")
    for number, buffer in enumerate(capture.manifest.buffers):
        assert buffer.after is not None
        assert (tmp_path / "out" / f"buffer-{number}.bin").read_bytes() == capture.content(buffer.after)


def test_an_error_is_reproduced(recorder: Recorder, device: HostDevice) -> None:
    capture = read(recorder("assertion").launches[0])
    result = replay(capture, device)
    assert isinstance(result.error, AssertionFailed)
    assert result.agrees(capture.manifest)
    ended_well = dataclasses.replace(capture.manifest, state="complete", error=None)
    assert not result.agrees(ended_well)


def test_a_crash_is_reproduced(recorder: Recorder) -> None:
    _, bad = recorder("crash").launches
    command = [sys.executable, "-m", "triton_porting_kit.cli", "replay", str(bad)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -11, done.stdout + done.stderr


def test_unknown_memory_is_refused(recorder: Recorder, device: HostDevice) -> None:
    with pytest.raises(CaptureError, match="the memory of a pointer is not recorded: 'x_ptr'"):
        replay(read(recorder("unknown_memory").launches[0]), device)


# --- trust -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kernel.obj", "arguments.bin"])
def test_changed_files_are_refused(plain: Path, name: str) -> None:
    path = plain / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(CaptureError, match=f"{name} was modified: its SHA-256 differs"):
        read(plain)


def test_missing_files_are_told(plain: Path) -> None:
    (plain / "kernel.obj").unlink()
    with pytest.raises(CaptureError, match=r"kernel\.obj cannot be read"):
        read(plain)


def test_a_changed_manifest_is_refused(plain: Path) -> None:
    path = plain / "manifest.json"
    path.write_text(path.read_text().replace('"scale_add"', '"scale_sub"'))
    with pytest.raises(CaptureError, match="its digest differs"):
        read(plain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "has format 3, and this kit reads 1 and 2"),
        ({"state": "lost"}, "does not match its schema: data.state must be one of"),
    ],
)
def test_manifests_that_cannot_be_read(plain: Path, change: dict[str, object], message: str) -> None:
    rewrite(plain, document(plain) | change)
    with pytest.raises(CaptureError, match=message):
        read(plain)


def test_a_file_elsewhere_is_refused(plain: Path) -> None:
    data = document(plain)
    data["kernel"]["binary"]["file"] = "../kernel.obj"
    rewrite(plain, data)
    with pytest.raises(CaptureError, match="does not match its schema"):
        read(plain)


@pytest.mark.parametrize("name", ["", "kernel.obj", "manifest.json"])
def test_what_others_can_write_is_refused(plain: Path, name: str) -> None:
    (plain / name).chmod(0o777)
    with pytest.raises(
        InsecureCacheError, match="lets others write to it; replay only what you recorded yourself"
    ):
        read(plain)


def test_a_folder_of_launches_is_none(plain: Path) -> None:
    with pytest.raises(CaptureError, match="has no recorded launch"):
        read(plain.parent)


# --- devices -----------------------------------------------------------------------------------------


def test_backends(cpu_backend: None) -> None:
    assert isinstance(open_device("cpu", 0), HostDevice)
    with pytest.raises(CaptureError, match="Triton has no backend 'acne'"):
        open_device("acne", 0)
    with pytest.raises(CaptureError, match="has 1 devices, but the launch was recorded on device 3"):
        open_device("cpu", 3)
    with pytest.raises(CaptureError, match="does not derive from"):
        open_device("nvidia", 0)


def test_a_binary_for_another_device(plain: Path, device: HostDevice) -> None:
    capture = read(plain)
    foreign = dataclasses.replace(capture, contents={**capture.contents, "kernel.obj": b"\x7fELF not really"})
    with pytest.raises(CaptureError, match="this device cannot load the binary, which was compiled for cpu"):
        replay(foreign, device)

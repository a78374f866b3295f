"""The stand-in for HIP's runtime is as strict as a runtime could be, and says what it was given."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hip_calls import Hip, HipError
from hip_kernels import CodeObjects
from standin_library import Standin


@pytest.fixture
def hip(standin: Standin) -> Hip:
    return Hip(standin)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_holds_what_is_copied_there(standin: Standin, hip: Hip) -> None:
    data = np.arange(1000, dtype=np.uint8)
    back = np.zeros_like(data)
    first, second = hip.result("Malloc", 1000), hip.result("Malloc", 1000)
    assert first % 256 == second % 256 == 0
    assert first % 512 == 256, "no more aligned than HIP promises"
    assert standin.live()["bytes"] == 2000
    hip.MemcpyHtoDAsync(first, address(data), 1000, 0)
    hip.MemcpyDtoDAsync(second, first, 1000, 0)
    hip.MemsetD8Async(second, ctypes.c_ubyte(7), 10, 0)
    hip.MemcpyDtoHAsync(address(back), second, 1000, 0)
    hip.DeviceSynchronize()
    assert (back[10:] == data[10:]).all()
    assert (back[:10] == 7).all()
    assert standin.read(first, 1000) == data.tobytes()
    hip.Free(first)
    hip.Free(second)


def test_the_host_cannot_touch_device_memory(standin_path: Path) -> None:
    code = (
        "import ctypes, sys; hip = ctypes.CDLL(sys.argv[1]); at = ctypes.c_uint64();"
        "assert hip.hipMalloc(ctypes.byref(at), ctypes.c_size_t(64)) == 0 and at.value;"
        "ctypes.string_at(at.value, 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, standin_path], env={**os.environ, "PYTHONFAULTHANDLER": ""}
    )
    assert done.returncode == -11


def test_copies_take_the_host_s_memory_when_their_turn_comes(standin: Standin, hip: Hip) -> None:
    data = np.zeros(8, np.uint8)
    place = hip.result("Malloc", 8)
    with standin.held():
        hip.MemcpyHtoDAsync(place, address(data), 8, 0)
        data[:] = 5
    hip.DeviceSynchronize()
    assert standin.read(place, 8) == bytes([5] * 8)
    hip.Free(place)


def test_host_memory_that_is_gone_is_found_out(standin: Standin, hip: Hip) -> None:
    place = hip.result("Malloc", 8)
    hip.MemcpyHtoDAsync(place, 16, 8, 0)  # nothing is ever mapped there
    hip.DeviceSynchronize()
    assert "gone" in standin.undefined()[0].text
    hip.Free(place)


@pytest.mark.parametrize("case", range(8))
def test_bad_copies_are_refused(standin: Standin, hip: Hip, case: int) -> None:
    standin.configure("gfx942", "gfx942")
    data = address(keep := np.zeros(64, np.uint8))
    place, freed = hip.result("Malloc", 64), hip.result("Malloc", 64)
    hip.Free(freed)
    hip.SetDevice(1)
    far = hip.result("Malloc", 64)
    hip.SetDevice(0)
    calls: list[Callable[[], None]] = [
        lambda: hip.MemcpyHtoDAsync(place, data, 65, 0),
        lambda: hip.MemcpyHtoDAsync(place + 60, data, 5, 0),
        lambda: hip.MemcpyHtoDAsync(freed, data, 1, 0),
        lambda: hip.MemcpyHtoDAsync(data, place, 1, 0),
        lambda: hip.MemcpyDtoHAsync(place, place, 1, 0),
        lambda: hip.MemcpyDtoDAsync(place, data, 1, 0),
        lambda: hip.MemcpyHtoDAsync(far, data, 1, 0),
        lambda: hip.MemsetD8Async(place, ctypes.c_ubyte(1), 1, 12345),
    ]
    with pytest.raises(HipError, match=r"InvalidValue|InvalidHandle"):
        calls[case]()
    assert len(standin.undefined()) == 1
    hip.Free(place)
    hip.Free(far)
    assert keep is not None


def test_streams_run_in_order_and_on_their_own(standin: Standin, hip: Hip) -> None:
    place = hip.result("Malloc", 16)
    streams = [hip.result("StreamCreateWithFlags", 1) for _ in range(2)]
    event = hip.result("EventCreateWithFlags", 0)
    with standin.held(streams[0]):
        hip.MemsetD8Async(place, ctypes.c_ubyte(1), 8, streams[0])
        hip.EventRecord(event, streams[0])
        hip.MemsetD8Async(place + 8, ctypes.c_ubyte(2), 8, streams[1])
        hip.StreamSynchronize(streams[1])
        assert standin.read(place, 16) == bytes([0xA5] * 8 + [2] * 8)
        hip.StreamWaitEvent(streams[1], event, 0)
        hip.MemsetD8Async(place, ctypes.c_ubyte(3), 8, streams[1])
        with pytest.raises(HipError, match="NotReady"):
            hip.StreamQuery(streams[1])
        with pytest.raises(HipError, match="NotReady"):
            hip.EventQuery(event)
    hip.StreamSynchronize(streams[1])
    assert standin.read(place, 8) == bytes([3] * 8)
    hip.EventQuery(event)
    for stream in streams:
        hip.StreamDestroy(stream)
    hip.EventDestroy(event)
    hip.Free(place)


@pytest.mark.parametrize("flags", [0, 1])
def test_the_null_stream_waits_for_blocking_streams_only(standin: Standin, hip: Hip, flags: int) -> None:
    place = hip.result("Malloc", 1)
    stream = hip.result("StreamCreateWithFlags", flags)
    with standin.held(stream):
        hip.MemsetD8Async(place, ctypes.c_ubyte(1), 1, stream)
        hip.MemsetD8Async(place, ctypes.c_ubyte(2), 1, 0)
        if flags:
            hip.StreamSynchronize(0)
        else:
            time.sleep(0.05)
            assert standin.live()["pending"] == 2
    hip.DeviceSynchronize()
    assert standin.read(place, 1)[0] == (1 if flags else 2)
    hip.StreamDestroy(stream)
    hip.Free(place)


def test_events_have_times(standin: Standin, hip: Hip, code_objects: CodeObjects) -> None:
    module = hip.result("ModuleLoadData", code_objects.add())
    function = hip.result("ModuleGetFunction", module, b"add")
    start, end = hip.result("EventCreateWithFlags", 0), hip.result("EventCreateWithFlags", 0)
    elapsed = ctypes.c_float()
    with pytest.raises(HipError, match="InvalidHandle"):
        hip.EventElapsedTime(ctypes.byref(elapsed), start, end)
    standin.durations(kernel_us=3000)
    with standin.held():
        hip.EventRecord(start, 0)
        hip.launch(function, bytes(48))
        hip.EventRecord(end, 0)
        with pytest.raises(HipError, match="NotReady"):
            hip.EventElapsedTime(ctypes.byref(elapsed), start, end)
    hip.EventSynchronize(end)
    hip.EventElapsedTime(ctypes.byref(elapsed), start, end)
    assert elapsed.value >= 3
    (launch,) = (operation for operation in standin.operations() if operation.kind == "launch")
    assert launch.finished - launch.started >= 3_000_000
    for event in (start, end):
        hip.EventDestroy(event)
    hip.ModuleUnload(module)


def test_launches_are_decoded_by_the_code_object(
    standin: Standin, hip: Hip, code_objects: CodeObjects
) -> None:
    module = hip.result("ModuleLoadData", code_objects.scalars())
    function = hip.result("ModuleGetFunction", module, b"scalars")
    assert function == hip.result("ModuleGetFunction", module, b"scalars")
    place = hip.result("Malloc", 8)
    values = (place, -3, -(1 << 40), 1, 2.5, 65000, -1e300, 12345, 255)
    block = struct.pack("<QbxxxxxxxqbxxxfHxxxxxxdiBxxx", *values) + bytes(16)
    hip.launch(function, block, (2, 3, 4))
    hip.DeviceSynchronize()
    (launch,) = standin.launches()
    assert (launch.kernel, launch.grid, launch.block, launch.wavefront) == (
        "scalars",
        (2, 3, 4),
        (256, 1, 1),
        64,
    )
    assert [argument.size for argument in launch.explicit] == [8, 1, 8, 1, 4, 2, 8, 4, 1, 8, 8]
    assert [
        struct.unpack(f"<{code}", a.content)[0] for code, a in zip("QbqbfHdiB", launch.explicit, strict=False)
    ] == [*values]
    assert [a.kind for a in launch.explicit][:3] == ["global_buffer", "by_value", "by_value"]
    assert launch.explicit[0].live
    assert launch.order > 0
    hip.ModuleUnload(module)
    hip.Free(place)


def test_bad_launches_are_refused(standin: Standin, hip: Hip, code_objects: CodeObjects) -> None:
    standin.configure("gfx942", "gfx942")
    module = hip.result("ModuleLoadData", code_objects.add())
    function = hip.result("ModuleGetFunction", module, b"add")
    hip.SetDevice(1)
    stream = hip.result("StreamCreateWithFlags", 1)
    hip.SetDevice(0)
    for error, arguments in [
        ("InvalidValue", {"size": 40}),
        ("LaunchFailure", {"threads": 512}),
        ("LaunchFailure", {"threads": 64}),
        ("InvalidConfiguration", {"threads": 2048}),
        ("InvalidConfiguration", {"grid": (0, 1, 1)}),
        ("InvalidConfiguration", {"grid": (1 << 31, 1, 1)}),
        ("InvalidValue", {"shared": 65537}),
        ("InvalidHandle", {"stream": stream}),
        ("InvalidHandle", {"stream": 5}),
    ]:
        with pytest.raises(HipError, match=f"hipError{error}$"):
            hip.launch(function, bytes(48), **arguments)  # type: ignore[arg-type]
    with pytest.raises(HipError, match="NotFound"):
        hip.result("ModuleGetFunction", module, b"ad")
    hip.ModuleUnload(module)
    for call in (lambda: hip.launch(function, bytes(48)), lambda: hip.ModuleUnload(module)):
        with pytest.raises(HipError, match="InvalidHandle"):
            call()
    assert not standin.launches()
    hip.StreamDestroy(stream)
    standin.log()


def test_bad_code_objects_are_refused(standin: Standin, hip: Hip, code_objects: CodeObjects) -> None:
    whole = code_objects.add()
    for image in (
        b"",
        b"\x7fELF",
        bytes(5000),
        Path(sys.executable).read_bytes()[:10000],
        whole[:64] + bytes(6000),
    ):
        with pytest.raises(HipError, match="InvalidImage"):
            hip.result("ModuleLoadData", ctypes.create_string_buffer(image, 10000))
    with pytest.raises(HipError, match="NoBinaryForGpu"):
        hip.result("ModuleLoadData", code_objects.add("gfx1100"))
    generator = np.random.default_rng(5)
    for _ in range(300):  # whatever they make of it, they end
        damaged = bytearray(whole)
        for at in generator.integers(64, len(whole), 4):
            damaged[at] = generator.integers(256)
        with suppress(HipError):
            hip.ModuleUnload(hip.result("ModuleLoadData", bytes(damaged)))
    standin.log()


def test_calls_fail_as_armed(standin: Standin, hip: Hip) -> None:
    standin.calls()
    standin.arm("hipMalloc:2:hipErrorOutOfMemory", "*:4:999")
    place = hip.result("Malloc", 1)
    with pytest.raises(HipError, match="OutOfMemory"):
        hip.result("Malloc", 1)
    hip.DeviceSynchronize()
    with pytest.raises(HipError, match="hipErrorUnknown"):
        hip.Free(place)
    hip.Free(place)
    assert standin.calls() == {"hipMalloc": 2, "hipDeviceSynchronize": 1, "hipFree": 2}


def test_a_device_whose_work_failed_is_lost_until_it_is_reset(standin: Standin, hip: Hip) -> None:
    place = hip.result("Malloc", 4)
    standin.arm("execute:2:hipErrorIllegalAddress")
    with standin.held():
        for value in range(3):
            hip.MemsetD8Async(place, ctypes.c_ubyte(value), 4, 0)
    for _ in range(2):
        with pytest.raises(HipError, match="IllegalAddress"):
            hip.DeviceSynchronize()
    assert standin.read(place, 1) == b"\0"
    hip.DeviceReset()
    assert not any(standin.live().values())
    hip.DeviceSynchronize()


def test_destroying_a_busy_stream_is_noticed(standin: Standin, hip: Hip) -> None:
    place = hip.result("Malloc", 4)
    stream = hip.result("StreamCreateWithFlags", 1)
    standin.hold(stream)
    hip.MemsetD8Async(place, ctypes.c_ubyte(1), 4, stream)
    hip.StreamDestroy(stream)
    assert "has not run" in standin.undefined()[0].text
    hip.Free(place)


def test_devices_come_from_the_environment(standin_path: Path) -> None:
    code = """
import ctypes, sys
hip = ctypes.CDLL(sys.argv[1])
count, value = ctypes.c_int(), ctypes.c_int()
print(hip.hipGetDeviceCount(ctypes.byref(count)), count.value)
for device in range(count.value):
    assert hip.hipDeviceGetAttribute(ctypes.byref(value), int(sys.argv[2]), device) == 0
    print(value.value)
"""
    warp_size = "87"  # hipDeviceAttributeWarpSize

    def run(**environment: str) -> list[str]:
        command = [sys.executable, "-c", code, standin_path, warp_size]
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run(HIP_STANDIN_DEVICES="gfx942,gfx1100") == ["0", "2", "64", "32"]
    assert run(HIP_STANDIN_DEVICES="") == ["100", "0"]
    assert run(HIP_STANDIN_FAULTS="hipGetDeviceCount:1:hipErrorInvalidDevice") == ["101", "0"]


def test_triton_s_own_driver_takes_it_for_hip(
    standin_path: Path, code_objects: CodeObjects, tmp_path: Path
) -> None:
    """Someone else's code against HIP's interface works on it: Triton's, which has AMD's headers."""
    (tmp_path / "add.hsaco").write_bytes(code_objects.add())
    code = """
import sys
from triton.backends.amd.driver import HIPUtils
utils = HIPUtils()
found = utils.get_device_properties(0)
print(found["arch"], found["warpSize"], found["max_shared_mem"], found["multiprocessor_count"])
loaded = utils.load_binary("add", open(sys.argv[1], "rb").read(), 0, 0)
print(*(type(item) is int for item in loaded))
"""
    environment = {"TRITON_LIBHIP_PATH": str(standin_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "add.hsaco"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "gfx942:sramecc+:xnack- 64 65536 304"

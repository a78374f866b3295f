"""What kernels may call: the host's routines that fail and print."""

from __future__ import annotations

import ctypes
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from objects import kernel

from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.errors import AssertionFailed, LaunchError


def load(device: HostDevice, kind: str) -> int:
    return device.get_function(device.load_module(kernel(kind), kind), kind)


def failing(program: int, element: int) -> bytes:
    return struct.pack("qq", program, element)


@pytest.mark.parametrize(("element", "index"), [(0, "0, 0"), (3, "0, 3"), (4, "1, 0"), (11, "2, 3")])
def test_failure_ends_the_kernel_and_says_where(device: HostDevice, element: int, index: str) -> None:
    function = load(device, "assert")
    with pytest.raises(AssertionFailed) as caught:
        device.launch(function, (100,), 0, failing(42, element))
    assert str(caught.value) == (
        "host CPU: launch: kernel 'assert': a device-side assertion failed in program (42, 1, 2), "
        f"element ({index}): said"
    )
    assert isinstance(caught.value, LaunchError)
    assert isinstance(caught.value, AssertionError)


def test_device_is_usable_after_failures(device: HostDevice) -> None:
    function = load(device, "assert")
    for program in range(200):
        with pytest.raises(AssertionFailed, match=rf"program \({program}, "):
            device.launch(function, (200,), 0, failing(program, 0))
        device.launch(function, (200,), 0, failing(-1, 0))


def test_streams_and_threads_fail_on_their_own(device: HostDevice) -> None:
    function = load(device, "assert")
    barrier = threading.Barrier(4)

    def run(number: int) -> None:
        stream = device.create_stream()
        barrier.wait()
        for round in range(50):
            program = 10 * number + round % 10
            device.launch(function, (64,), stream, failing(program, round % 12))
            with pytest.raises(AssertionFailed, match=rf"program \({program}, 1, 2\)"):
                device.synchronize(stream)
        device.destroy_stream(stream)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(4)))


def test_other_failures_keep_their_type(device: HostDevice) -> None:
    with pytest.raises(LaunchError) as caught:
        device.launch(load(device, "fail"), (4,), 0, struct.pack("q", 0))
    assert not isinstance(caught.value, AssertionFailed)


def test_launch_entry_has_a_code_for_it(device: HostDevice) -> None:
    entry = device.launch_entry()
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    launch = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, u64, u64, u32, u32, u32, ctypes.c_char_p, u64, ctypes.c_char_p, u64
    )(entry.function)
    message = ctypes.create_string_buffer(200)
    args = failing(0, 0)
    assert launch(entry.context, 0, load(device, "assert"), 1, 1, 1, args, len(args), message, 200) == 6
    assert message.value.endswith(b"element (0, 0): said")


HALVES = {
    0x0000: "0.000000", 0x8000: "-0.000000", 0x3C00: "1.000000", 0xC000: "-2.000000", 0x7BFF: "65504.000000",
    0x7C00: "inf", 0xFC00: "-inf", 0x7E00: "nan", 0x0400: "0.000061", 0x03FF: "0.000061", 0x3555: "0.333252",
}  # fmt: skip


def printed(device: HostDevice, type: bytes, data: np.ndarray, grid: int = 1) -> None:  # type: ignore[type-arg]
    name = ctypes.create_string_buffer(type)
    args = struct.pack("QQqq", data.ctypes.data, ctypes.addressof(name), 1, data.size)
    device.launch(load(device, "print"), (grid,), 0, args)


def test_halves(device: HostDevice, capfd: pytest.CaptureFixture[str]) -> None:
    printed(device, b"f16", np.array(list(HALVES), np.uint16))
    assert [text.split()[-1] for text in capfd.readouterr().out.splitlines()] == list(HALVES.values())


def test_every_half(device: HostDevice, capfd: pytest.CaptureFixture[str]) -> None:
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = values[np.isfinite(values)]
    printed(device, b"f16", finite)
    shown = [text.split()[-1] for text in capfd.readouterr().out.splitlines()]
    assert shown == [f"{value:f}" for value in finite.astype(np.float64)]


def test_unknown_types_are_said_to_be_so(device: HostDevice, capfd: pytest.CaptureFixture[str]) -> None:
    printed(device, b"f8", np.zeros(2, np.uint8))
    assert capfd.readouterr().out == "pid (0, 0, 0) idx (0) v ?\npid (0, 0, 0) idx (1) v ?\n"

"""What OpenCL reports, as the kit's errors; and that launches leave nothing behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from failing_device import Failing, check_that_launches_leave_nothing, failing_on

from triton_porting_kit.driver.opencl import OpenCLDevice, build_source
from triton_porting_kit.errors import (
    DeviceError,
    DeviceLost,
    InvalidModule,
    LaunchError,
    OutOfMemory,
)

NOT_AVAILABLE, NO_MEMORY, NO_HOST_MEMORY, FAILED_EVENT = -2, -4, -6, -14


@pytest.fixture
def failing(opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[Failing]:
    yield from failing_on(opencl, monkeypatch)


@pytest.mark.parametrize(
    ("function", "code", "kind"),
    [
        ("clEnqueueNDRangeKernel", NOT_AVAILABLE, DeviceLost),
        ("clEnqueueNDRangeKernel", NO_MEMORY, OutOfMemory),
        ("clEnqueueNDRangeKernel", -54, LaunchError),
        ("clEnqueueNDRangeKernel", -9999, DeviceError),
        ("clCreateBuffer", NO_MEMORY, OutOfMemory),
        ("clSetKernelArg", NO_HOST_MEMORY, OutOfMemory),
    ],
)
def test_a_launch_that_fails(function: str, code: int, kind: type[Exception], failing: Failing) -> None:
    """The error names the kernel, the device and OpenCL's code; later launches work, and nothing is left over."""
    failing.launch()
    failing.device.synchronize()
    live = failing.library.live.copy()
    failing.library.failures[function] = code
    with pytest.raises(DeviceError, match=r"launching 'add_one' on .* failed: ") as caught:
        failing.launch()
    assert type(caught.value) is kind
    failing.library.failures.clear()
    failing.launch()
    failing.device.synchronize()
    assert (failing.values() == 2).all()
    assert failing.library.live == live


@pytest.mark.parametrize(
    ("function", "hook"),
    [
        ("clFinish", lambda each: each.device.synchronize()),
        ("clEnqueueSVMMemFill", lambda each: each.device.memset(each.address, 0, 4)),
        ("clEnqueueSVMMemcpy", lambda each: each.device.memcpy_htod(each.address, bytes(4))),
        ("clEnqueueMarkerWithWaitList", lambda each: each.device.record_event(each.device.create_event())),
    ],
)
def test_a_lost_device(function: str, hook: Any, failing: Failing) -> None:
    """Hooks raise DeviceLost; a reset makes a new context, in which everything works again."""
    context = failing.library.calls["clCreateContext"]
    failing.library.failures[function] = NOT_AVAILABLE
    with pytest.raises(DeviceLost, match="CL_DEVICE_NOT_AVAILABLE"):
        hook(failing)
    failing.device.reset()
    failing.library.failures.clear()
    failing.load()
    failing.launch()
    assert (failing.values() == 1).all()
    assert failing.library.calls["clCreateContext"] == context + 1


def test_a_device_that_is_still_lost(failing: Failing) -> None:
    failing.library.failures["clCreateCommandQueue"] = NOT_AVAILABLE
    for call in (failing.device.create_stream, failing.device.reset):
        with pytest.raises(DeviceLost, match="creating a stream failed: CL_DEVICE_NOT_AVAILABLE"):
            call()
    failing.library.failures.clear()
    failing.device.reset()
    failing.load()
    failing.launch()
    assert (failing.values() == 1).all()


def test_a_copy_that_fails_later(failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_porting_kit.driver.opencl import streams

    failing.device.memcpy_htod(failing.address, bytes(400))
    monkeypatch.setattr(streams, "state", lambda library, event: FAILED_EVENT)
    with pytest.raises(LaunchError, match="a copy failed: CL_EXEC_STATUS_ERROR"):
        failing.device.synchronize()


def test_memory_that_the_driver_does_not_have(failing: Failing) -> None:
    failing.library.failures["clSVMAlloc"] = NO_MEMORY
    with pytest.raises(OutOfMemory, match=r"memalloc\(100\)"):
        failing.device.memalloc(100)


@pytest.mark.parametrize(("platform", "markers"), [("rusticl", 1), ("Portable Computing Language", 0)])
def test_rusticl_needs_something_to_wait_for(failing: Failing, platform: str, markers: int) -> None:
    """Its clFinish waits for nothing if all commands are flushed."""
    device = OpenCLDevice(dataclasses.replace(failing.info, platform=platform))
    address = device.memalloc(64)
    device.memset(address, 1, 64)
    failing.library.calls.clear()
    device.synchronize(0)
    calls = failing.library.calls
    assert (calls["clFinish"], calls["clEnqueueMarkerWithWaitList"]) == (1, markers)
    device.memfree(address)


def test_a_build_without_memory_is_no_error_of_the_kernel(failing: Failing) -> None:
    live = failing.library.live.copy()
    failing.library.failures["clBuildProgram"] = NO_HOST_MEMORY
    with pytest.raises(OutOfMemory, match=r"building a program for .* failed: CL_OUT_OF_HOST_MEMORY"):
        build_source(failing.info, "__kernel void f() {}")
    assert failing.library.live == live
    failing.library.failures["clBuildProgram"] = -45
    with pytest.raises(InvalidModule, match="CL_INVALID_PROGRAM_EXECUTABLE"):
        build_source(failing.info, "__kernel void f() {}")


def test_ten_thousand_launches_leave_nothing(failing: Failing) -> None:
    check_that_launches_leave_nothing(failing)


def test_modules_streams_and_events_are_released(failing: Failing) -> None:
    live = failing.library.live.copy()
    for _ in range(20):
        module = failing.device.load_module(failing.binary, "add_one")
        failing.device.get_function(module, "add_one")
        failing.device.unload_module(module)
        stream, event = failing.device.create_stream(), failing.device.create_event()
        failing.device.record_event(event, stream)
        failing.device.wait_event(0, event)
        failing.device.destroy_event(event)
        failing.device.destroy_stream(stream)
    failing.device.synchronize()
    assert failing.library.live == live

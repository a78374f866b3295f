"""Every call of HIP's that the driver makes fails in turn: an error that says so, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hip_kernels import CodeObjects
from hip_sessions import Session, outcome
from standin_library import Standin, leaks

from triton_porting_kit.driver.hip import HipDevice, open_devices
from triton_porting_kit.errors import (
    AssertionFailed,
    DeviceError,
    DeviceLost,
    InvalidModule,
    InvalidPointer,
    LaunchError,
    OutOfMemory,
)

SILENT = {"hipEventQuery"}
"""Calls whose failure is none of a hook's: they only ask whether what was copied can be let go."""
TIMED = {"hipEventCreateWithFlags", "hipEventQuery"}
"""Calls whose number differs from run to run."""


def count_calls(standin: Standin, session: Session) -> dict[str, int]:
    session.run()
    standin.calls()
    session.run()
    return standin.calls()


@pytest.mark.parametrize(
    ("error", "number"),
    [
        ("hipErrorUnknown", 999),
        ("hipErrorOutOfMemory", 2),
        ("hipErrorInvalidValue", 1),
        ("hipErrorNotReady", 600),
        ("hipErrorIllegalAddress", 700),
    ],
)
def test_every_call_fails_once(
    standin: Standin, device: HipDevice, code_objects: CodeObjects, error: str, number: int
) -> None:
    session = Session(device, code_objects.add())
    calls = count_calls(standin, session)
    assert len(calls) > 15
    failed: set[str] = set()
    for function, count in calls.items():
        for nth in range(1, count + 1):
            standin.arm(f"{function}:{nth}:{error}")
            caught = outcome(session.run)
            struck = standin.disarm()
            if not struck:  # how many events copies need depends on how quickly the copies run
                assert function in TIMED
                assert caught is None
            elif caught is None:
                assert function in SILENT, f"call {nth} of {function} failed and nobody said so"
            else:
                assert isinstance(caught, DeviceError)
                assert re.search(rf"^HIP device 0: \w+: .*\b{function}\b.*\b{error}\b", str(caught)), caught
                assert f"{error} ({number}): " in str(caught)
                failed.add(function)
            session.clean_up()
            assert session.ends == {}
            assert not leaks(standin), f"after call {nth} of {function}"
            session.run()
            assert not leaks(standin)
            assert standin.live()["events"] <= 8, "events are kept for the next copies, and not more and more"
    assert failed | SILENT == {*calls} | SILENT


@pytest.mark.parametrize("error", ["hipErrorIllegalAddress", "hipErrorLaunchFailure"])
def test_a_lost_device_works_again_after_a_reset(
    standin: Standin, device: HipDevice, code_objects: CodeObjects, error: str
) -> None:
    session = Session(device, code_objects.add())
    total = sum(count_calls(standin, session).values())
    for nth in range(1, total, 3):
        standin.arm(f"*:{nth}:{error}:stays")
        caught = outcome(session.run)
        assert isinstance(caught, DeviceLost)
        assert error in str(caught)
        assert "reset" in str(caught)
        assert isinstance(outcome(device.synchronize), DeviceLost)
        standin.disarm()
        session.ends.clear()
        device.reset()
        assert not any(standin.live().values())
        session.run()
        standin.log()  # some of what was refused is of handles that HIP's reset took


def test_a_module_is_gone_though_work_in_flight_failed(
    standin: Standin, device: HipDevice, code_objects: CodeObjects
) -> None:
    name = "add"
    module = device.load_module(code_objects.add(), name)
    function = device.get_function(module, name)
    standin.arm("hipDeviceSynchronize:1:hipErrorUnknown")
    with pytest.raises(DeviceError, match="unload_module"):
        device.unload_module(module)
    for forgotten in (lambda: device.get_function(module, name), lambda: device.resources(function)):
        with pytest.raises(InvalidModule, match="does not exist or was unloaded"):
            forgotten()


@pytest.mark.parametrize("nth", range(1, 5))
def test_work_that_fails_in_its_queue_is_raised_by_what_waits(
    standin: Standin, device: HipDevice, code_objects: CodeObjects, nth: int
) -> None:
    session = Session(device, code_objects.add())
    session.run()
    standin.arm(f"execute:{nth}:hipErrorIllegalAddress")
    caught = outcome(session.run)
    assert isinstance(caught, DeviceLost)
    assert "hipErrorIllegalAddress (700)" in str(caught)
    session.ends.clear()
    device.reset()
    assert not any(standin.live().values())
    session.run()


@pytest.mark.parametrize(
    ("function", "error", "expected"),
    [
        ("hipMalloc", "hipErrorOutOfMemory", OutOfMemory),
        ("hipMemcpyHtoDAsync", "hipErrorInvalidDevicePointer", InvalidPointer),
        ("hipModuleLoadData", "hipErrorInvalidImage", InvalidModule),
        ("hipModuleLoadData", "hipErrorNoBinaryForGpu", InvalidModule),
        ("hipModuleGetFunction", "hipErrorNotFound", InvalidModule),
        ("hipModuleLaunchKernel", "hipErrorInvalidConfiguration", LaunchError),
        ("hipModuleLaunchKernel", "hipErrorLaunchOutOfResources", LaunchError),
        ("hipStreamSynchronize", "hipErrorAssert", AssertionFailed),
        ("hipSetDevice", "hipErrorInvalidDevice", DeviceLost),
    ],
)
def test_errors_have_types(
    standin: Standin,
    open_device: Callable[..., HipDevice],
    code_objects: CodeObjects,
    function: str,
    error: str,
    expected: type[DeviceError],
) -> None:
    standin.configure("gfx942", "gfx942")
    session = Session(
        open_device(1), code_objects.add()
    )  # not the thread's current one: it is set by each hook
    standin.arm(f"{function}:1:{error}")
    caught = outcome(session.run)
    assert type(caught) is expected, caught
    session.clean_up()


def test_an_unknown_error_number_has_its_number(standin: Standin, device: HipDevice) -> None:
    standin.arm("hipMalloc:1:4242")
    with pytest.raises(DeviceError, match=r"hipMalloc failed: .*\(4242\)"):
        device.memalloc(64)


@pytest.mark.parametrize("function", ["hipGetDeviceCount", "hipGetDevicePropertiesR0600"])
def test_opening_a_device_fails(standin: Standin, function: str) -> None:
    standin.arm(f"{function}:1:hipErrorInvalidValue")
    with pytest.raises(DeviceError, match=rf"{function} failed: hipErrorInvalidValue \(1\)"):
        HipDevice(0)
    HipDevice(0)


def test_no_device_is_no_error_to_count_them(standin: Standin) -> None:
    standin.configure()
    assert open_devices() == []


def test_threads_have_no_error_of_hip_s_left(standin: Standin, device: HipDevice) -> None:
    """HIP keeps a thread's last error, and others in the process, such as torch, would take it for theirs."""
    standin.arm("hipMalloc:1:hipErrorUnknown")
    with pytest.raises(DeviceError):
        device.memalloc(64)
    assert standin.library.hipPeekAtLastError() == 0

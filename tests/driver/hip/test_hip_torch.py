"""Devices, streams, events and memory that are shared with others in the process, as with torch for ROCm."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drivers import fresh_driver
from hip_calls import Hip
from standin_library import Standin

from triton_porting_kit.backends.amd.driver import AMDDriver, rocm_torch
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.hip import HipDevice
from triton_porting_kit.driver.interface import DeviceInterface
from triton_porting_kit.errors import InvalidArgument, InvalidPointer


class Torch(ModuleType):
    """As much of torch for ROCm as there has to be, on the stand-in: streams by their handles."""

    def __init__(self, hip: Hip, release: str | None = "7.1") -> None:
        super().__init__("torch")
        self.hip = hip
        self.current = 0
        self.streams: dict[int, int] = {}
        self.version = SimpleNamespace(hip=release)
        self._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: self.streams.get(device, 0))
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            current_device=lambda: self.current,
            set_device=self.set_device,
            set_stream=self.set_stream,
            default_stream=lambda device=None: self.stream(0, device),
            ExternalStream=self.stream,
            device=self.device,
        )

    def set_device(self, device: int) -> None:
        self.current = device
        self.hip.SetDevice(device)

    def stream(self, handle: int, device: int | None = None) -> Any:
        return SimpleNamespace(cuda_stream=handle, device=self.current if device is None else device)

    def set_stream(self, stream: Any) -> None:
        self.set_device(stream.device)
        self.streams[stream.device] = stream.cuda_stream

    @contextmanager
    def device(self, device: int) -> Iterator[None]:
        before = self.current
        self.set_device(device)
        yield
        self.set_device(before)


@pytest.fixture
def hip(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hip]:
    """Others in the process: HIP's functions, called past the kit. There are two devices."""
    monkeypatch.setenv("TPK_HIP_LIBRARY", str(standin.path))
    standin.configure("gfx942", "gfx942")
    found = Hip(standin)
    found.SetDevice(0)
    yield found
    found.SetDevice(0)


@pytest.fixture
def torch(hip: Hip, monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch(hip)
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.fixture
def driver(hip: Hip) -> Iterator[AMDDriver]:
    made = fresh_driver(AMDDriver)
    yield made
    for device in made.devices:
        assert isinstance(device, HipDevice)
        device.close()


def current_device(hip: Hip) -> int:
    number = ctypes.c_int(-1)
    hip.GetDevice(ctypes.byref(number))
    return number.value


# --- what is current -------------------------------------------------------------------------------------


def test_current_device_and_stream_are_torch_s(torch: Torch, driver: AMDDriver) -> None:
    assert (driver.get_current_device(), driver.get_current_stream()) == (0, 0)
    torch.current = 1
    torch.streams = {0: 16, 1: 32}
    assert driver.get_current_device() == 1
    assert driver.device is driver.devices[1]
    assert (driver.get_current_stream(), driver.get_current_stream(0)) == (32, 16)
    assert driver.get_device_interface() is torch.cuda


def test_what_the_driver_sets_torch_has(torch: Torch, driver: AMDDriver) -> None:
    driver.set_current_device(1)
    assert torch.current == 1
    driver.set_current_stream(48)
    driver.set_current_stream(64, device=0)
    assert torch.streams == {0: 64, 1: 48}
    assert torch.current == 1
    with driver.stream(80):
        assert torch.streams[1] == 80
    assert torch.streams == {0: 64, 1: 48}
    driver.set_current_stream(0)
    assert torch.streams[1] == 0
    with pytest.raises(InvalidArgument, match="no device 2 of 2"):
        driver.set_current_device(2)


@pytest.mark.parametrize("kind", ["none", "not for ROCm", "being imported", "without a GPU"])
def test_any_other_torch_changes_nothing(
    kind: str, hip: Hip, driver: AMDDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = Torch(hip, None if kind == "not for ROCm" else "7.1")
    torch.current = 1
    if kind == "being imported":
        del torch.cuda
    elif kind == "without a GPU":
        torch.cuda.is_available = lambda: False
    if kind == "none":
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "torch", torch)
    assert rocm_torch() is None
    assert driver.get_current_device() == 0
    driver.set_current_device(1)
    with driver.stream(7):
        assert driver.get_current_stream() == 7
    assert (driver.get_current_device(), driver.get_current_stream()) == (1, 0)
    assert isinstance(driver.get_device_interface(), DeviceInterface)


def test_the_driver_does_not_import_torch(hip: Hip, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    import_module = builtins.__import__

    def refuse(name: str, *args: Any, **options: Any) -> Any:
        assert name.partition(".")[0] != "torch"
        return import_module(name, *args, **options)

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    driver = fresh_driver(AMDDriver)
    assert AMDDriver.is_available()
    assert driver.get_current_target().arch == "gfx942"
    array = DeviceArray.from_numpy(np.arange(4), driver.device)
    assert array.numpy().tolist() == [0, 1, 2, 3]
    del array
    for device in driver.devices:
        assert isinstance(device, HipDevice)
        device.close()


def test_hooks_set_the_thread_s_device_back(hip: Hip, driver: AMDDriver) -> None:
    hip.SetDevice(1)
    first = driver.devices[0]
    address = first.memalloc(64)
    stream = first.create_stream()
    first.memset(address, 1, 64, stream)
    first.synchronize(stream)
    first.destroy_stream(stream)
    first.memfree(address)
    with pytest.raises(InvalidPointer):
        first.memfree(address)
    assert current_device(hip) == 1


# --- what others made --------------------------------------------------------------------------------------


def test_streams_of_others_are_taken(hip: Hip, driver: AMDDriver, standin: Standin) -> None:
    device, other = driver.devices
    stream = hip.result("StreamCreateWithFlags", 1)
    found = np.zeros(64, np.uint8)
    address = device.memalloc(64)
    with standin.held(stream):
        device.memset(address, 9, 64, stream)
        device.memcpy_dtoh(found, address, stream)
        assert not found.any()
    device.synchronize(stream)
    assert (found == 9).all()
    with pytest.raises(InvalidArgument, match=f"stream {stream} belongs to device 0"):
        other.synchronize(stream)
    with pytest.raises(InvalidArgument, match=f"stream {stream} was not made here"):
        device.destroy_stream(stream)
    hip.StreamDestroy(stream)
    with pytest.raises(InvalidArgument, match=f"stream {stream} does not exist.*hipError"):
        device.synchronize(stream)
    device.memfree(address)


def test_memory_of_others_is_taken(hip: Hip, driver: AMDDriver) -> None:
    device, other = driver.devices
    theirs = hip.result("Malloc", 256)
    device.memcpy_htod(theirs, bytes(range(256)))
    found = bytearray(100)
    device.memcpy_dtoh(found, theirs + 100)
    device.synchronize()
    assert found == bytes(range(100, 200))
    for call in (
        lambda: device.memset(theirs + 200, 0, 1 << 30),
        lambda: device.memset(ctypes.addressof(ctypes.create_string_buffer(64)), 0, 8),
        lambda: other.memset(theirs, 0, 8),
        lambda: device.memfree(theirs),
    ):
        with pytest.raises(InvalidPointer):
            call()
    hip.Free(theirs)
    with pytest.raises(InvalidPointer, match="was freed"):
        device.memset(theirs, 0, 8)


def test_events_of_others_are_taken_once_they_are_known(hip: Hip, driver: AMDDriver) -> None:
    device = driver.devices[0]
    assert isinstance(device, HipDevice)
    event = hip.result("EventCreateWithFlags", 0)
    hip.EventRecord(event, 0)
    with pytest.raises(InvalidArgument, match=f"event {event} does not exist"):
        device.synchronize_event(event)
    device.adopt_event(event)
    device.synchronize_event(event)
    stream = device.create_stream()
    device.wait_event(stream, event)
    device.record_event(event, stream)
    device.synchronize(stream)
    device.destroy_stream(stream)
    device.destroy_event(event)
    hip.EventSynchronize(event)  # it is still there
    with pytest.raises(InvalidArgument):
        device.synchronize_event(event)
    hip.EventDestroy(event)


def test_reset_leaves_torch_what_it_has(hip: Hip, torch: Torch, driver: AMDDriver) -> None:
    device = driver.devices[0]
    theirs, ours = hip.result("Malloc", 64), device.memalloc(64)
    device.reset()
    device.memset(theirs, 0, 64)
    with pytest.raises(InvalidPointer):
        device.memset(ours, 0, 64)
    hip.Free(theirs)


def test_reset_without_torch_resets_the_device(hip: Hip, driver: AMDDriver, standin: Standin) -> None:
    theirs = hip.result("Malloc", 64)
    standin.calls()
    driver.devices[0].reset()
    assert standin.calls()["hipDeviceReset"] == 1
    with pytest.raises(InvalidPointer):
        driver.devices[0].memset(theirs, 0, 64)

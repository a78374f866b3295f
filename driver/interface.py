"""The part of ``torch.cuda`` that ``triton.testing`` uses, implemented by the device hooks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from triton_porting_kit.driver.device import DEFAULT_STREAM, Device


class _Driver(Protocol):
    """The part of `TritonDriver` that this module uses."""

    @property
    def device(self) -> Device: ...

    @property
    def devices(self) -> Sequence[Device]: ...

    def get_current_device(self) -> int: ...

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self) -> int: ...

    def stream(self, stream: int) -> AbstractContextManager[int]: ...

    def is_available(self) -> bool: ...


class DeviceStream:
    """A stream of a device, destroyed with this object unless it was created elsewhere."""

    def __init__(self, device: Device, handle: int | None = None) -> None:
        self._device = device
        self._owned = handle is None
        self.handle = device.create_stream() if handle is None else handle

    def synchronize(self) -> None:
        self._device.synchronize(self.handle)

    def __del__(self) -> None:
        if getattr(self, "_owned", False) and hasattr(self, "handle"):
            self._device.destroy_stream(self.handle)


class DeviceEvent:
    """An event of a device, destroyed with this object. It records a time whatever `enable_timing` is."""

    def __init__(self, driver: _Driver, enable_timing: bool = False, **_: Any) -> None:
        self._driver = driver
        self._device = driver.device
        self._handle = self._device.create_event()

    def record(self, stream: DeviceStream | None = None) -> None:
        """Record the work that is on `stream` now; by default the current stream."""
        self._device.record_event(self._handle, self._stream(stream))

    def wait(self, stream: DeviceStream | None = None) -> None:
        """Let `stream` wait for the event; by default the current stream."""
        self._device.wait_event(self._stream(stream), self._handle)

    def synchronize(self) -> None:
        self._device.synchronize_event(self._handle)

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Milliseconds from this event to `end`."""
        return self._device.elapsed_time(self._handle, end._handle)

    def _stream(self, stream: DeviceStream | None) -> int:
        return self._driver.get_current_stream() if stream is None else stream.handle

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._device.destroy_event(self._handle)


class DeviceInterface:
    """Events, streams and synchronisation of a driver's current device."""

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def Event(self, enable_timing: bool = False, **options: Any) -> DeviceEvent:
        return DeviceEvent(self._driver, enable_timing, **options)

    def Stream(self) -> DeviceStream:
        return DeviceStream(self._driver.device)

    def ExternalStream(self, handle: int, device: Any = None) -> DeviceStream:
        """A stream that was created elsewhere and is not destroyed here."""
        return DeviceStream(self._driver.device, handle)

    def stream(self, stream: DeviceStream) -> AbstractContextManager[int]:
        """A context in which `stream` is current."""
        return self._driver.stream(stream.handle)

    def current_stream(self, device: Any = None) -> DeviceStream:
        return DeviceStream(self._driver.device, self._driver.get_current_stream())

    def default_stream(self, device: Any = None) -> DeviceStream:
        return DeviceStream(self._driver.device, DEFAULT_STREAM)

    def synchronize(self, device: Any = None) -> None:
        self._driver.device.synchronize()

    def current_device(self) -> int:
        return self._driver.get_current_device()

    def set_device(self, device: int) -> None:
        self._driver.set_current_device(device)

    def device_count(self) -> int:
        return len(self._driver.devices)

    def is_available(self) -> bool:
        return self._driver.is_available()

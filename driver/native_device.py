"""Devices whose hooks for memory, streams and events are methods of a native object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM, Buffer, Device

if TYPE_CHECKING:
    from triton_porting_kit.driver._native_hooks import NativeHooks


class NativeDevice(Device):
    """A `Device` that forwards these hooks to `_native`, which its ``__init__`` sets.

    The native object checks its arguments and releases the GIL itself.
    """

    _native: NativeHooks

    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        return self._native.memalloc(size, alignment)

    def memfree(self, addr: int) -> None:
        self._native.memfree(addr)

    def memcpy_htod(self, dst: int, src: Buffer, stream: int = DEFAULT_STREAM) -> None:
        self._native.memcpy_htod(dst, src, stream)

    def memcpy_dtoh(self, dst: Buffer, src: int, stream: int = DEFAULT_STREAM) -> None:
        self._native.memcpy_dtoh(dst, src, stream)

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._native.memcpy_dtod(dst, src, size, stream)

    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._native.memset(dst, value, size, stream)

    def create_stream(self) -> int:
        return self._native.create_stream()

    def destroy_stream(self, stream: int) -> None:
        self._native.destroy_stream(stream)

    def synchronize(self, stream: int | None = None) -> None:
        if stream is None:
            self._native.synchronize_all()
        else:
            self._native.synchronize(stream)

    def create_event(self) -> int:
        return self._native.create_event()

    def destroy_event(self, event: int) -> None:
        self._native.destroy_event(event)

    def record_event(self, event: int, stream: int = DEFAULT_STREAM) -> None:
        self._native.record_event(event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        self._native.wait_event(stream, event)

    def synchronize_event(self, event: int) -> None:
        self._native.synchronize_event(event)

    def elapsed_time(self, start: int, end: int) -> float:
        return self._native.elapsed_time(start, end)

"""The allocations of a device: shared virtual memory, or buffers whose addresses are numbers of the kit's."""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from ctypes import c_void_p
from typing import Any

from triton_porting_kit.driver.opencl import _opencl
from triton_porting_kit.driver.opencl.library import Library
from triton_porting_kit.driver.opencl.platforms import DeviceInfo
from triton_porting_kit.errors import InvalidArgument, InvalidPointer, OutOfMemory

_READ_WRITE = 1
_FIRST_ADDRESS = 1 << 32
_GAP = 1 << 12


class Memory(ABC):
    """Allocates, frees, copies, and checks addresses, which `native` keeps for launches."""

    def __init__(self, library: Library, context: int, info: DeviceInfo, native: _opencl.Device) -> None:
        self._library, self.context, self._info, self._native = library, context, info, native
        # Re-entrant: the garbage collector may free an array in the middle of an allocation.
        self._lock = threading.RLock()
        self._used = 0

    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory. Raises `OutOfMemory` and `InvalidArgument`."""
        info = self._info
        if size < 0 or alignment <= 0 or alignment & (alignment - 1):
            raise InvalidArgument(
                f"memalloc({size}, {alignment}) on {info.name}: the size is negative or the alignment no power of 2"
            )
        whole = self._whole(max(size, 1), alignment)
        with self._lock:
            free = info.memory_bytes - self._used
            made = self._make(whole, alignment) if whole <= min(info.largest_allocation, free) else None
            if made is None:
                raise OutOfMemory(
                    f"memalloc({size}) on {info.name}: {free} of {info.memory_bytes} bytes are free, "
                    f"and one allocation has at most {info.largest_allocation}"
                )
            self._used += whole
        start, buffer = made
        address = start + -start % alignment
        self._native.add_memory(address, size, start, buffer, whole)
        return address

    def remove(self, address: int) -> tuple[int, int]:
        """Forget an allocation; what is left to do is `release` of the result. Raises `InvalidPointer`."""
        found = self._native.remove_memory(address)
        if found is None:
            raise InvalidPointer(
                f"memfree({address:#x}) on {self._info.name}: no live allocation begins there"
            )
        start, buffer, whole = found
        with self._lock:
            self._used -= whole
        return start, buffer

    def check(self, address: int, size: int, call: str) -> tuple[int, int]:
        """Where `size` bytes from an address begin in their allocation, and its buffer.

        Raises `InvalidPointer` unless they belong to one allocation.
        """
        start, buffer, _ = self._native.find_memory(address, size, f"{call} on {self._info.name}")
        return address - start, buffer

    def clear(self) -> None:
        """Free everything."""
        found = self._native.clear_memory()
        with self._lock:
            self._used = 0
        for start, buffer, _ in found:
            self.release(start, buffer)

    @abstractmethod
    def _whole(self, size: int, alignment: int) -> int:
        """The bytes that an allocation takes."""

    @abstractmethod
    def _make(self, size: int, alignment: int) -> tuple[int, int] | None:
        """The start of new memory and its buffer; None where there is no room."""

    @abstractmethod
    def release(self, start: int, buffer: int) -> None:
        """Give memory that `remove` returned back to the runtime."""

    @abstractmethod
    def write(self, queue: int, address: int, host: int, size: int) -> int:
        """Copy from the host. Returns the event of the copy."""

    @abstractmethod
    def read(self, queue: int, host: int, address: int, size: int) -> int:
        """Copy to the host. Returns the event of the copy."""

    @abstractmethod
    def copy(self, queue: int, to: int, source: int, size: int) -> int:
        """Copy within the device. Returns the event of the copy."""

    @abstractmethod
    def fill(self, queue: int, address: int, byte: int, size: int) -> None:
        """Set bytes."""

    def _enqueue(self, name: str, what: str, *arguments: Any) -> int:
        """The event of what a function enqueues."""
        event = c_void_p()
        code = getattr(self._library, name)(*arguments, 0, None, ctypes.byref(event))
        self._library.check(code, what)
        return int(event.value or 0)


class SharedMemory(Memory):
    """Shared virtual memory, coarse-grained: an address is the same on host and device."""

    def _whole(self, size: int, alignment: int) -> int:
        # The runtime aligns to what its largest type needs; for more, the block is larger and its start unused.
        return size + (alignment if alignment > self._info.alignment else 0)

    def _make(self, size: int, alignment: int) -> tuple[int, int] | None:
        start = self._library.clSVMAlloc(self.context, _READ_WRITE, size, self._info.alignment)
        return (int(start), 0) if start else None

    def release(self, start: int, buffer: int) -> None:
        self._library.clSVMFree(self.context, start)

    def write(self, queue: int, address: int, host: int, size: int) -> int:
        return self._copy(queue, address, host, size)

    def read(self, queue: int, host: int, address: int, size: int) -> int:
        return self._copy(queue, host, address, size)

    def copy(self, queue: int, to: int, source: int, size: int) -> int:
        return self._copy(queue, to, source, size)

    def _copy(self, queue: int, to: int, source: int, size: int) -> int:
        return self._enqueue("clEnqueueSVMMemcpy", f"copying {size} bytes", queue, 0, to, source, size)

    def fill(self, queue: int, address: int, byte: int, size: int) -> None:
        pattern = ctypes.c_uint8(byte)
        code = self._library.clEnqueueSVMMemFill(
            queue, address, ctypes.byref(pattern), 1, size, 0, None, None
        )
        self._library.check(code, f"setting {size} bytes")


class BufferMemory(Memory):
    """Buffers, for devices without shared virtual memory. An address is a number that stands for a buffer and an
    offset; ranges of different allocations never touch."""

    def __init__(self, library: Library, context: int, info: DeviceInfo, native: _opencl.Device) -> None:
        super().__init__(library, context, info, native)
        self._next = _FIRST_ADDRESS

    def _whole(self, size: int, alignment: int) -> int:
        return size

    def _make(self, size: int, alignment: int) -> tuple[int, int] | None:
        try:
            buffer = self._library.create(
                "clCreateBuffer", f"allocating {size} bytes", self.context, _READ_WRITE, size, None
            )
        except OutOfMemory:
            return None
        start = self._next + -self._next % max(alignment, self._info.alignment)
        self._next = start + size + _GAP
        return start, buffer

    def release(self, start: int, buffer: int) -> None:
        self._library.clReleaseMemObject(buffer)

    def write(self, queue: int, address: int, host: int, size: int) -> int:
        offset, buffer = self.check(address, size, "memcpy_htod")
        return self._enqueue(
            "clEnqueueWriteBuffer", f"copying {size} bytes", queue, buffer, 0, offset, size, host
        )

    def read(self, queue: int, host: int, address: int, size: int) -> int:
        offset, buffer = self.check(address, size, "memcpy_dtoh")
        return self._enqueue(
            "clEnqueueReadBuffer", f"copying {size} bytes", queue, buffer, 0, offset, size, host
        )

    def copy(self, queue: int, to: int, source: int, size: int) -> int:
        (there, target), (here, origin) = (self.check(place, size, "memcpy_dtod") for place in (to, source))
        return self._enqueue(
            "clEnqueueCopyBuffer", f"copying {size} bytes", queue, origin, target, here, there, size
        )

    def fill(self, queue: int, address: int, byte: int, size: int) -> None:
        offset, buffer = self.check(address, size, "memset")
        pattern = ctypes.c_uint8(byte)
        code = self._library.clEnqueueFillBuffer(
            queue, buffer, ctypes.byref(pattern), 1, offset, size, 0, None, None
        )
        self._library.check(code, f"setting {size} bytes")

"""Arrays next to inaccessible pages: a read or write past an array crashes immediately."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.memory import Block, Bytes, MemoryAccess
from triton_porting_kit.conformance.types import Array, Kind

PAGE = mmap.PAGESIZE


class _PagedBlock(Block):
    """Bytes of the host at the start or the end of pages between two that may not be touched."""

    def __init__(self, size: int, at_end: bool) -> None:
        inside = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, inside + 2 * PAGE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        begin = self._bytes.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for page in (begin, begin + PAGE + inside):
            if protect(page, PAGE, 0):
                raise OSError(ctypes.get_errno(), "a guard page cannot be protected")
        start = PAGE + inside - size if at_end else PAGE
        self.address, self.size = begin + start, size
        self._view = self._bytes[start : start + size]

    def write(self, content: Bytes) -> None:
        self._view[:] = content

    def read(self) -> Bytes:
        return self._view.copy()

    def copy_from(self, other: Block) -> None:
        self._view[:] = other.read()


class PagedMemory(MemoryAccess):
    """Pages of the host, for devices that can use any memory of it."""

    def __init__(self, memory: MemoryAccess, at_end: bool) -> None:
        """`memory`: the device's; `at_end`: whether arrays end, or else start, beside a page."""
        self._memory, self._at_end = memory, at_end
        self.kit_device = memory.kit_device

    def allocate(self, size: int) -> Block:
        """As aligned as the size is."""
        return _PagedBlock(size, self._at_end)

    def synchronize(self) -> None:
        self._memory.synchronize()

    def describe(self) -> dict[str, object]:
        return self._memory.describe()


class EdgeArray(GuardedArray):
    """An array between pages instead of guard zones."""

    guard = 0


def placed(memory: MemoryAccess, place: str, kind: Kind, values: Array) -> GuardedArray:
    """An array at one of `program.PLACES`; between guard zones where the device has memory of its own."""
    if place == "zones" or not in_process(memory):
        return GuardedArray.of(memory, kind, values)
    return EdgeArray.of(PagedMemory(memory, place == "end"), kind, values)


def in_process(memory: MemoryAccess) -> bool:
    """Whether kernels run in this process: on any memory of it, and in processes that are forked off it."""
    device = memory.kit_device
    return device is not None and bool(device.properties().in_process)

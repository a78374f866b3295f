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
    """Host memory at the start or the end of a range of pages that has an inaccessible page on either side."""

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
    """Blocks of host memory next to guard pages, for devices that can access any host memory."""

    def __init__(self, memory: MemoryAccess, at_end: bool) -> None:
        """`memory`: the device's. `at_end`: whether arrays end, instead of start, next to a guard page."""
        self._memory, self._at_end = memory, at_end
        self.kit_device = memory.kit_device

    def allocate(self, size: int) -> Block:
        """A block next to a guard page. At the end of the pages, its alignment is that of `size`."""
        return _PagedBlock(size, self._at_end)

    def synchronize(self) -> None:
        self._memory.synchronize()

    def describe(self) -> dict[str, object]:
        return self._memory.describe()


class EdgeArray(GuardedArray):
    """An array between guard pages, without guard zones."""

    guard = 0


def placed(memory: MemoryAccess, place: str, kind: Kind, values: Array) -> GuardedArray:
    """An array at one of `program.PLACES`; always between guard zones if the device has memory of its own."""
    if place == "zones" or not in_process(memory):
        return GuardedArray.of(memory, kind, values)
    return EdgeArray.of(PagedMemory(memory, place == "end"), kind, values)


def in_process(memory: MemoryAccess) -> bool:
    """Whether kernels run in this process: they can then access all its memory, and run in processes that it forks."""
    device = memory.kit_device
    return device is not None and bool(device.properties().in_process)

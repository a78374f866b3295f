"""The device of a modelled rank: the host's memory, with the parts of all ranks' heaps in one process."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM, Buffer, Exchange
from triton_porting_kit.driver.host import HostDevice
from triton_porting_kit.driver.host.shared_heap import SharedHeap
from triton_porting_kit.driver.symmetric import PAGE, whole_pages

Access = Callable[[int, int, bool], None]
"""Called with the address and the bytes of a copy's memory, and whether it is written."""


class RankDevice(HostDevice):
    """`HostDevice` whose heap is a part of `memory`, and which reports copies and allocations."""

    def __init__(
        self,
        memory: mmap.mmap,
        on_access: Access,
        on_allocation: Callable[[int, int, bool], None],
        on_free: Callable[[int], None],
    ) -> None:
        """`on_allocation`: called with the address and the bytes of new memory, and whether it is symmetric."""
        super().__init__()
        self._whole, self._on_access = memory, on_access
        self._on_allocation, self._on_free = on_allocation, on_free

    def open_group(self, rank: int, ranks: int, heap_bytes: int, exchange: Exchange) -> SharedHeap:
        self._heap = SharedHeap(rank, ranks, (len(self._whole) - PAGE) // ranks, self._whole)
        exchange(b"")
        return self._heap

    def symmetric_alloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        address = super().symmetric_alloc(size, alignment)
        self._on_allocation(address, size, True)
        return address

    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        address = super().memalloc(size, alignment)
        self._on_allocation(address, size, False)
        return address

    def memfree(self, addr: int) -> None:
        self._on_free(addr)
        super().memfree(addr)

    def memcpy_htod(self, dst: int, src: Buffer, stream: int = DEFAULT_STREAM) -> None:
        self._on_access(dst, memoryview(src).nbytes, True)
        super().memcpy_htod(dst, src, stream)

    def memcpy_dtoh(self, dst: Buffer, src: int, stream: int = DEFAULT_STREAM) -> None:
        self._on_access(src, memoryview(dst).nbytes, False)
        super().memcpy_dtoh(dst, src, stream)

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._on_access(src, size, False)
        self._on_access(dst, size, True)
        super().memcpy_dtod(dst, src, size, stream)

    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._on_access(dst, size, True)
        super().memset(dst, value, size, stream)


def whole_heap(ranks: int, part_bytes: int) -> Any:
    """Memory for `RankDevice`s: a page, then the part of each rank."""
    return mmap.mmap(-1, PAGE + ranks * whole_pages(part_bytes))

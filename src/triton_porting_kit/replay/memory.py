"""Which memory a pointer argument of a launch leads to, and what is in it."""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.driver import Device
from triton_porting_kit.launcher import own_memory


class TrackedMemory:
    """The live allocations of a device, by watching its `memalloc`, `memfree` and `reset`."""

    def __init__(self, device: Device) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = []
        self._watch(device)

    def _watch(self, device: Device) -> None:
        allocate, free, reset = device.memalloc, device.memfree, device.reset

        def memalloc(size: int, *alignment: int, **named: int) -> int:
            address = allocate(size, *alignment, **named)
            with self._lock:
                if address not in self._sizes:
                    bisect.insort(self._starts, address)
                self._sizes[address] = size
            return address

        def memfree(addr: int) -> None:
            free(addr)
            with self._lock:
                if self._sizes.pop(addr, None) is not None:
                    del self._starts[bisect.bisect_left(self._starts, addr)]

        def forget() -> None:
            try:
                reset()
            finally:
                with self._lock:
                    self._sizes.clear()
                    self._starts.clear()

        # On the object: its class stays as it is.
        vars(device).update(memalloc=memalloc, memfree=memfree, reset=forget)

    def find(self, address: int) -> tuple[int, int] | None:
        """Start and bytes of the live allocation that `address` lies in; one right behind it belongs to it if no other
        begins there."""
        with self._lock:
            index = bisect.bisect_right(self._starts, address) - 1
            if index < 0:
                return None
            start = self._starts[index]
            size = self._sizes[start]
        return (start, size) if address <= start + size else None

    def count_addresses(self, words: np.ndarray[Any, np.dtype[np.uint64]]) -> tuple[int, int]:
        """How many of `words` are addresses in live allocations, and the index of the first; (0, 0) for none."""
        with self._lock:
            starts = np.array(self._starts, np.uint64)
            sizes = np.array([self._sizes[start] for start in self._starts], np.uint64)
        if not len(starts) or not words.size:
            return 0, 0
        index = np.searchsorted(starts, words, "right").astype(np.int64) - 1
        inside = (index >= 0) & (words - starts[np.maximum(index, 0)] < sizes[np.maximum(index, 0)])
        found = np.flatnonzero(inside)
        return len(found), int(found[0]) if len(found) else 0


@dataclass
class Region:
    """A stretch of device memory that arguments lead to."""

    address: int
    size: int
    names: list[str] = field(default_factory=list)
    """Of the parameters that lead there."""

    @property
    def end(self) -> int:
        return self.address + self.size


def region_of(value: Any, address: int, memory: TrackedMemory) -> tuple[int, int] | None:
    """Start and bytes of the memory that an argument, whose address is `address`, leads to; None if unknown.

    The whole allocation of what knows it (device arrays, torch tensors), or that the device has made; else the
    elements of an object that has a shape.
    """
    if found := own_memory(value) or memory.find(address):
        return found
    return _elements_of(value, address)


def _elements_of(value: Any, address: int) -> tuple[int, int] | None:
    shape = getattr(value, "shape", None)
    size_of = getattr(value, "element_size", None)
    if shape is None or size_of is None or not hasattr(value, "data_ptr"):
        return None
    item = int(size_of())
    if math.prod(shape) == 0:
        return address, 0
    strides = getattr(value, "stride", None)
    steps = tuple(strides()) if callable(strides) else None
    if steps is None:
        return address, math.prod(shape) * item
    reach = [(count - 1) * step for count, step in zip(shape, steps, strict=True)]
    first, last = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    return address + first * item, (last - first + 1) * item


def merged(regions: Iterable[Region]) -> list[Region]:
    """Regions that overlap as one each, in the order of their addresses: what aliases is recorded once."""
    result: list[Region] = []
    for region in sorted(regions, key=lambda r: (r.address, -r.size)):
        last = result[-1] if result else None
        same = last is not None and (region.address < last.end or region.address == last.address)
        if last is not None and same:
            last.size = max(last.end, region.end) - last.address
            last.names += [name for name in region.names if name not in last.names]
        else:
            result.append(Region(region.address, region.size, list(region.names)))
    return result

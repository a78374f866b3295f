"""Finding the memory that a pointer argument of a launch points to."""

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
    """The live allocations of a device, tracked by wrapping its `memalloc`, `memfree` and `reset`."""

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

        # Set on the object; its class is not changed.
        vars(device).update(memalloc=memalloc, memfree=memfree, reset=forget)

    def find(self, address: int) -> tuple[int, int] | None:
        """The start and the size in bytes of the live allocation that contains `address`.

        The address right after an allocation belongs to it unless another allocation starts there.
        """
        with self._lock:
            index = bisect.bisect_right(self._starts, address) - 1
            if index < 0:
                return None
            start = self._starts[index]
            size = self._sizes[start]
        return (start, size) if address <= start + size else None

    def count_addresses(self, words: np.ndarray[Any, np.dtype[np.uint64]]) -> tuple[int, int]:
        """The number of `words` that are addresses in live allocations, and the index of the first; (0, 0) if none."""
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
    """A range of device memory that arguments point to."""

    address: int
    size: int
    names: list[str] = field(default_factory=list)
    """The parameters that point into it."""

    @property
    def end(self) -> int:
        return self.address + self.size


def region_of(value: Any, address: int, memory: TrackedMemory) -> tuple[int, int] | None:
    """The start and the size in bytes of the memory that an argument with this `address` points to; None if unknown.

    This is the whole allocation if the argument knows it (device arrays, torch tensors) or the device has made it;
    otherwise the elements of an object with a shape.
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
    """Merge overlapping regions, so that aliased memory is recorded once. Sorted by address."""
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

"""The memory of an interpreted launch: arrays, each with its own range of addresses."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Array, dtype_of

_FIRST, _GAP = 1 << 40, 1 << 16
"""The first address of arrays without an address of their own, and the least distance between them."""


class NoArray(Exception):
    """An element is in no array. Has the index of the element, its address, and a text about the nearest array."""

    def __init__(self, place: int, address: int, nearest: str) -> None:
        self.place, self.address, self.nearest = place, address, nearest


@dataclass(frozen=True)
class Region:
    """An array: its address, its bytes, and its name."""

    start: int
    content: Array
    name: str

    @property
    def end(self) -> int:
        return self.start + self.content.size


class Memory:
    """Arrays by address. Loads and stores access the arrays themselves, not copies."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._starts: list[int] = []
        self.changes = 0
        """The number of writes that changed memory; counted if programs may wait for each other."""
        self.counts_changes = False

    def add(self, array: Array, name: str, address: int | None = None) -> int:
        """Make an array accessible. Returns its address.

        Raises ValueError for an array that is not contiguous, or an address range that overlaps another array.
        """
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous: give np.ascontiguousarray of it")
        content = array.reshape(-1).view(np.uint8)
        if address is None:
            end = max((region.end for region in self._regions), default=_FIRST - _GAP)
            address = -(-(max(end, _FIRST - _GAP) + _GAP) // _GAP) * _GAP
        at = bisect_right(self._starts, address)
        region = Region(address, content, name)
        before = self._regions[at - 1] if at else None
        after = self._regions[at] if at < len(self._regions) else None
        if (before is not None and before.end > address) or (after is not None and region.end > after.start):
            raise ValueError(f"{name} at {address:#x} overlaps another array")
        self._regions.insert(at, region)
        self._starts.insert(at, address)
        return address

    def remove(self, address: int) -> None:
        """Make the array at an address inaccessible; does nothing if none begins there."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and self._starts[index] == address:
            del self._regions[index], self._starts[index]

    def read(self, addresses: Array, element: str) -> Array:
        """The elements at a 1-d array of byte addresses. Raises `NoArray`."""
        dtype = dtype_of(element)
        result = np.empty(addresses.shape, dtype)
        for region, chosen in self._parts(addresses, dtype.itemsize):
            offsets = addresses[chosen] - region.start
            if element == "i1":
                result[chosen] = region.content[offsets] & 1
            elif (aligned := _aligned(region.content, offsets, dtype)) is not None:
                result[chosen] = aligned[offsets // dtype.itemsize]
            else:
                places = offsets[:, None] + np.arange(dtype.itemsize)
                result[chosen] = region.content[places].view(dtype)[:, 0]
        return result

    def write(self, addresses: Array, values: Array) -> None:
        """Write the elements at byte addresses, one after the other. Raises `NoArray` before anything is written."""
        size = values.dtype.itemsize
        for region, chosen in self._parts(addresses, size):
            offsets, wanted = addresses[chosen] - region.start, values[chosen]
            aligned = _aligned(region.content, offsets, wanted.dtype)
            if aligned is not None:
                target, places = aligned, offsets // size
            else:
                target, places = region.content, offsets[:, None] + np.arange(size)
                wanted = np.ascontiguousarray(wanted).view(np.uint8).reshape(-1, size)
            if self.counts_changes:
                self.changes += target[places].tobytes() != wanted.tobytes()
            target[places] = wanted

    def _parts(self, addresses: Array, size: int) -> list[tuple[Region, Any]]:
        """The arrays that elements of `size` bytes are in, and the elements in each."""
        if not addresses.size:
            return []
        low, high = int(addresses.min()), int(addresses.max()) + size
        region = self._at(low)
        if region is not None and high <= region.end:
            return [(region, slice(None))]
        numbers = np.searchsorted(np.asarray(self._starts, np.int64), addresses, side="right") - 1
        ends = np.asarray([region.end for region in self._regions] or [0], np.int64)
        outside = (numbers < 0) | (addresses + size > ends[numbers])
        if outside.any() or not self._regions:
            place = int(np.argmax(outside)) if self._regions else 0
            raise NoArray(place, int(addresses[place]), self._nearest(int(addresses[place]), size))
        return [(self._regions[number], np.flatnonzero(numbers == number)) for number in np.unique(numbers)]

    def _at(self, address: int) -> Region | None:
        index = bisect_right(self._starts, address) - 1
        return self._regions[index] if index >= 0 else None

    def _nearest(self, address: int, size: int) -> str:
        def distance(region: Region) -> int:
            return max(region.start - address, address + size - region.end)

        if not self._regions:
            return "the kernel was given none"
        region = min(self._regions, key=distance)
        bytes_ = region.content.size
        if address < region.start:
            return f"{region.start - address} bytes before {region.name}, which has {bytes_}"
        if address >= region.end:
            return f"{address - region.end} bytes behind the end of {region.name}, which has {bytes_}"
        return f"{address - region.start} bytes into {region.name}, which has {bytes_}"


def _aligned(content: Array, offsets: Array, dtype: np.dtype[Any]) -> Array | None:
    """The bytes as elements, if all `offsets` are multiples of the element size; else None."""
    if dtype.itemsize > 1 and (offsets % dtype.itemsize).any():
        return None
    return content[: content.size - content.size % dtype.itemsize].view(dtype)

"""The allocations of a device, in shared virtual memory, so that an address is the same on host and device."""

from __future__ import annotations

import bisect
import threading
from dataclasses import dataclass

from triton_porting_kit.driver.opencl.library import Library
from triton_porting_kit.errors import InvalidArgument, InvalidPointer, OutOfMemory

_READ_WRITE = 1


@dataclass(frozen=True)
class _Allocation:
    address: int
    size: int
    start: int
    """What the runtime returned, from which `address` is aligned."""
    whole: int


class Memory:
    """Allocates, frees, and checks addresses. `version` changes with each allocation and each free."""

    def __init__(
        self, library: Library, context: int, owner: str, limit: int, largest: int, natural: int
    ) -> None:
        self._library, self._context, self._owner = library, context, owner
        self._limit, self._largest, self._natural = limit, largest, natural
        self.lock = threading.RLock()
        """Held by every call with addresses, and taken before a stream's lock: PoCL 3.1 crashes where threads allocate,
        free and enqueue copies at the same time."""
        self._allocations: dict[int, _Allocation] = {}
        self._addresses: list[int] = []
        self._used = 0
        self.version = 0

    @property
    def starts(self) -> list[int]:
        """The addresses that the runtime knows."""
        with self.lock:
            return [allocation.start for allocation in self._allocations.values()]

    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory. Raises `OutOfMemory` and `InvalidArgument`."""
        if size < 0 or alignment <= 0 or alignment & (alignment - 1):
            raise InvalidArgument(
                f"memalloc({size}, {alignment}) on {self._owner}: the size is negative or the alignment no power of 2"
            )
        # The runtime aligns to what its largest type needs; for more, the block is larger and its start unused.
        whole = max(size, 1) + (alignment if alignment > self._natural else 0)
        with self.lock:
            room = min(self._largest, self._limit - self._used)
            start = (
                self._library.clSVMAlloc(self._context, _READ_WRITE, whole, self._natural)
                if whole <= room
                else None
            )
            if not start:
                raise OutOfMemory(
                    f"memalloc({size}) on {self._owner}: {self._limit - self._used} of {self._limit} bytes are free, "
                    f"and one allocation has at most {self._largest}"
                )
            address = int(start + -start % alignment)
            self._allocations[address] = _Allocation(address, size, start, whole)
            bisect.insort(self._addresses, address)
            self._used += whole
            self.version += 1
        return address

    def remove(self, address: int) -> int:
        """Forget an allocation; what is left to do is `release` of the result. Raises `InvalidPointer`."""
        with self.lock:
            found = self._allocations.pop(address, None)
            if found is None:
                raise InvalidPointer(
                    f"memfree({address:#x}) on {self._owner}: no live allocation begins there"
                )
            self._addresses.remove(address)
            self._used -= found.whole
            self.version += 1
        return found.start

    def release(self, start: int) -> None:
        """Give memory that `remove` returned back to the runtime."""
        with self.lock:
            self._library.clSVMFree(self._context, start)

    def check(self, address: int, size: int, call: str) -> None:
        """Raise `InvalidPointer` unless `size` bytes from an address belong to one allocation."""
        with self.lock:
            position = bisect.bisect_right(self._addresses, address)
            found = self._allocations[self._addresses[position - 1]] if position else None
        if found is None or address > found.address + found.size or (address == 0):
            raise InvalidPointer(f"{call} on {self._owner}: {address:#x} is not in memory of the device")
        if address + size > found.address + found.size:
            raise InvalidPointer(
                f"{call} on {self._owner}: {size} bytes from {address:#x} exceed the allocation of {found.size} bytes "
                f"at {found.address:#x}"
            )

    def clear(self) -> None:
        """Free everything."""
        with self.lock:
            starts = self.starts
            self._allocations, self._addresses, self._used = {}, [], 0
            self.version += 1
        for start in starts:
            self.release(start)

"""Which accesses to symmetric memory are ordered: vector clocks, after the memory order in docs/distributed.md.

Each thread of execution, the host program or a program of a grid on a rank, has a *slot*, and a clock that a release
advances. It keeps the latest clock that it has seen of every slot, by acquiring what they released. An access is
ordered after another one if the slot has seen the clock at which that one happened. Whether memory was really changed
in between does not matter, so a missing order is found on every schedule, also on machines whose memory is stronger
than the model.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

NO_SITE = 0


class Kind(IntEnum):
    """What an access does, and among whom it is atomic."""

    READ = 0
    WRITE = 1
    ATOMIC_ON_RANK = 2
    ATOMIC = 3
    VOLATILE = 4


_CONFLICTS: dict[Kind, tuple[tuple[Kind, bool], ...]] = {
    Kind.READ: ((Kind.WRITE, True), (Kind.ATOMIC_ON_RANK, True), (Kind.ATOMIC, True)),
    Kind.WRITE: tuple((kind, True) for kind in Kind if kind is not Kind.VOLATILE),
    Kind.ATOMIC_ON_RANK: (
        (Kind.READ, True), (Kind.WRITE, True), (Kind.ATOMIC_ON_RANK, False), (Kind.ATOMIC, False),
    ),
    Kind.ATOMIC: ((Kind.READ, True), (Kind.WRITE, True), (Kind.ATOMIC_ON_RANK, False)),
    Kind.VOLATILE: ((Kind.WRITE, True),),
}  # fmt: skip
"""With which earlier accesses a kind must be ordered, and whether also on the same rank. A volatile load is the relaxed
read of a wait; what it must be ordered with, the atomic operation behind it must, too."""


class Progress:
    """What a slot has seen."""

    def __init__(self, slot: int, rank: int, slots: int) -> None:
        self.slot, self.rank = slot, rank
        self.seen: Array = np.zeros(slots, np.int32)
        """The latest clock of each slot whose accesses come before this one's next."""
        self.seen[slot] = 1
        self._heard: Array = np.zeros(slots, np.int32)
        """What relaxed reads have met; a fence lets it count."""
        self._fenced: Array = np.zeros(slots, np.int32)
        """What the last fence lets relaxed operations pass on."""

    def release(self) -> Array:
        """What others see by a release now. Later accesses come after it."""
        passed = self.seen.copy()
        self.seen[self.slot] += 1
        return passed

    def acquire(self, passed: Array) -> None:
        np.maximum(self.seen, passed, out=self.seen)

    def hear(self, passed: Array) -> None:
        np.maximum(self._heard, passed, out=self._heard)

    def fence(self) -> None:
        self.acquire(self._heard)
        self._fenced = self.release()

    @property
    def fenced(self) -> Array:
        return self._fenced


class Order:
    """The accesses to a range of addresses, and what atomic operations have passed on."""

    def __init__(self, start: int, size: int, ranks: int, slots_each: int) -> None:
        """Each rank has `slots_each` slots; those of rank r begin at ``r * slots_each``."""
        slots = ranks * slots_each
        self.start, self.size = start, size
        self._each = slots_each
        self._nothing: Array = np.zeros(slots, np.int32)
        # Only the pages that are used take memory.
        self._clocks = [np.zeros((slots, size), np.int32) for _ in range(Kind.VOLATILE)]
        self._sites = [np.zeros((slots, size), np.int32) for _ in range(Kind.VOLATILE)]
        self._passed: dict[tuple[int, int], Array] = {}
        """By address and rank, or -1 for all ranks."""

    def access(
        self, progress: Progress, addresses: Array, kind: Kind, site: int
    ) -> tuple[int, int, Kind, int] | None:
        """Record an access to the elements that begin at these addresses.

        Returns an earlier access that it is not ordered with, as address, slot, kind and site; None if there is none.
        """
        if not addresses.size or not self.start <= int(addresses.flat[0]) < self.start + self.size:
            return None
        places = addresses.reshape(-1) - self.start
        own = slice(progress.rank * self._each, (progress.rank + 1) * self._each)
        for other, on_rank in _CONFLICTS[kind]:
            late = self._clocks[other][:, places] > progress.seen[:, None]
            if not on_rank:
                late[own] = False
            if late.any():
                slot, element = np.argwhere(late)[0]
                place = int(places[element])
                return self.start + place, int(slot), other, int(self._sites[other][slot, place])
        if kind is not Kind.VOLATILE:
            self._clocks[kind][progress.slot, places] = progress.seen[progress.slot]
            self._sites[kind][progress.slot, places] = site
        return None

    def atomic(self, progress: Progress, address: int, order: str, scope: str) -> None:
        """An atomic operation that reads and writes: `order` is relaxed, acquire, release or acq_rel."""
        found = self._met(address, progress.rank, scope)
        if order in ("acquire", "acq_rel"):
            progress.acquire(found)
        else:
            progress.hear(found)
        if order == "acq_rel" and scope == "sys":
            progress.fence()
        passed = progress.release() if order in ("release", "acq_rel") else progress.fenced
        for rank in (progress.rank, -1) if scope == "sys" else (progress.rank,):
            before = self._passed.get((address, rank), self._nothing)
            self._passed[address, rank] = np.maximum(before, passed)

    def hear(self, progress: Progress, address: int) -> None:
        """A volatile read of a word."""
        progress.hear(self._met(address, progress.rank, "sys"))

    def _met(self, address: int, rank: int, scope: str) -> Array:
        on_rank = self._passed.get((address, rank), self._nothing)
        if scope != "sys":
            return on_rank
        return np.maximum(on_rank, self._passed.get((address, -1), self._nothing))

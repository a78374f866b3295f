"""The contents of regions while programs run on the host, and conflicts between programs of the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from triton_porting_kit.conformance.rounding import wrap
from triton_porting_kit.conformance.stress.draws import content_at
from triton_porting_kit.conformance.stress.numbers import Datum, as_number
from triton_porting_kit.conformance.stress.program import IllConditioned, Region
from triton_porting_kit.conformance.types import KINDS, Array, Kind

COMBINATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
"""Atomic operations as functions of the old value and the operand."""
MANY = -1
"""Used as a program number in `State.readers`: several programs load the element."""


def combined(kind: Kind, how: str, old: int, new: int) -> int:
    """The result of an atomic operation on two integers, wrapped to the type."""
    return int(wrap(COMBINATIONS[how](int(old), int(new)), kind))


@dataclass
class State:
    """The contents of a region: the initial contents, and what was stored since."""

    region: Region
    values: dict[int, int | float | bool] = field(default_factory=dict)
    errors: dict[int, float] = field(default_factory=dict)
    readers: dict[int, int] = field(default_factory=dict)
    """The program of the grid that loaded an element, or `MANY`, by index of the element."""
    writers: dict[int, int] = field(default_factory=dict)
    """The program of the grid that stored to an element, by index of the element."""
    low: int | None = None
    """The index of the first element accessed."""
    high: int | None = None
    """The index of the last element accessed."""
    rewritten: bool = False
    """Whether elements were stored more than once."""
    described: bool = False
    """Whether elements were accessed through a tensor descriptor."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.region.kind]

    def copy(self) -> State:
        return replace(
            self,
            values={**self.values},
            errors={**self.errors},
            readers={**self.readers},
            writers={**self.writers},
        )

    def content(self, at: Array) -> Array:
        """The initial values of elements, in the host type."""
        return content_at(self.kind, at, self.region.flavour, self.region.seed)

    def load(self, at: Array, mask: Array, other: int, program: int) -> Datum:
        """Load elements where a mask is set, else `other`. Raises `IllConditioned` on a conflict between programs."""
        if self.region.use not in ("load", "store"):
            raise IllConditioned("a load from where programs combine")
        self._touch(at[mask])
        start = self.content(np.where(mask, at, 0))
        value = as_number(self.kind.name, np.where(mask, start, np.asarray(other).astype(self.kind.host)))
        if self.region.use == "load":
            return value
        places = at[mask].tolist()
        self._read(places, program)
        values, errors = value.value.copy(), np.zeros(at.shape)
        if not self.values.keys().isdisjoint(places):
            values[mask] = [*map(self.values.get, places, values[mask].tolist())]
            errors[mask] = [self.errors.get(place, 0.0) for place in places]
        return Datum(self.kind, values, errors if errors.any() else None)

    def store(self, at: Array, mask: Array, datum: Datum, program: int) -> None:
        """Store where a mask is set. Raises `IllConditioned` on a conflict between lanes or between programs."""
        if self.region.use != "store":
            raise IllConditioned("a store where programs do not store")
        self._touch(at[mask])
        found: dict[int, int | float | bool] = {}
        places = at[mask].tolist()
        values = np.broadcast_to(datum.value, at.shape)[mask].tolist()
        errors = np.broadcast_to(datum.errors, at.shape)[mask].tolist()
        if self._are_own(places, program):
            self.rewritten |= not self.values.keys().isdisjoint(places)
            self.writers.update(dict.fromkeys(places, program))
            self.values.update(zip(places, values, strict=True))
            self.errors.update(zip(places, errors, strict=True))
            return
        for place, value, error in zip(places, values, errors, strict=True):
            if place in found and (error or found[place] != value):
                raise IllConditioned("two lanes store into one element")
            self._write(place, program)
            self.rewritten |= place in self.values and place not in found
            found[place] = self.values[place] = value
            self.errors[place] = error

    def combine(self, at: Array, mask: Array, datum: Datum, how: str) -> None:
        """Apply an atomic operation where a mask is set. Raises `IllConditioned` for another kind than the region's."""
        if self.region.use != how:
            raise IllConditioned("two kinds of operations on one element")
        self._touch(at[mask])
        values = np.broadcast_to(datum.value, at.shape)[mask]
        for place, new in zip(at[mask].tolist(), values.tolist(), strict=True):
            old = self.values.get(place)
            old = self.content(np.asarray(place)).item() if old is None else old
            self.values[place] = combined(self.kind, how, int(old), new)

    def final(self) -> tuple[Array, Array, Array]:
        """The initial elements of the region, and the final ones with their errors (float64 or the host type).

        Raises `IllConditioned` if elements outside of it were accessed.
        """
        region = self.region
        end = region.low + region.size
        if self.low is not None and self.high is not None and not region.low <= self.low <= self.high < end:
            raise IllConditioned("an element that the region does not have")
        initial = self.content(
            region.low + np.arange(region.size)
        )  # `np.arange` to an end of 2^63 would give floats
        values, errors = as_number(region.kind, initial).value.copy(), np.zeros(region.size)
        for place, value in self.values.items():
            values[place - region.low] = value
            errors[place - region.low] = self.errors.get(place, 0.0)
        return initial, values, errors

    def fitted(self) -> Region:
        """The region cut to the elements that were accessed. One of a tensor descriptor starts at element 0, and its
        size is a multiple of 16, so that element 0 is aligned wherever the region is placed. Raises
        `IllConditioned`."""
        low, high = (0, 0) if self.low is None or self.high is None else (self.low, self.high)
        if self.described:
            if low < 0:
                raise IllConditioned("an element before a tensor descriptor's")
            low, high = 0, high | 15
        size = high - low + 1
        return replace(self.region, low=low, size=size, rewritten=self.rewritten, described=self.described)

    def _touch(self, places: Array) -> None:
        if not places.size:
            return
        low, high = int(places.min()), int(places.max())
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        if self.high - self.low >= self.region.span:
            raise IllConditioned("elements that are too far apart")

    def _read(self, places: list[int], program: int) -> None:
        if not {None, program}.issuperset(map(self.writers.get, places)):
            raise IllConditioned("a program loads what another stores")
        for place in {*places}:
            if self.readers.setdefault(place, program) != program:
                self.readers[place] = MANY

    def _are_own(self, places: list[int], program: int) -> bool:
        """Whether all places differ, and no other program has loaded or stored one of them."""
        if len({*places}) < len(places):
            return False
        before = {*map(self.writers.get, places), *map(self.readers.get, places)}
        return before <= {None, program}

    def _write(self, place: int, program: int) -> None:
        if self.writers.setdefault(place, program) != program:
            raise IllConditioned("two programs store into one element")
        if self.readers.get(place, program) != program:
            raise IllConditioned("a program stores what another loads")


States = dict[int, State]
"""The state of each region, by number."""


def states_of(regions: tuple[Region, ...]) -> States:
    """The states of regions before a launch."""
    return {region.number: State(region) for region in regions}

"""Moves that load and store, with indices, masks and pointers that exist in the program or are created for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from triton_porting_kit.conformance.stress.indices import COMPARISONS, LITERALS, Indices
from triton_porting_kit.conformance.stress.numbers import Pointers, as_number
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.addressing import INDICES
from triton_porting_kit.conformance.stress.operations.base import INTEGERS
from triton_porting_kit.conformance.stress.operations.memory import flavour
from triton_porting_kit.conformance.stress.program import (
    Carried,
    Fetch,
    Loop,
    Put,
    Region,
    Type,
)
from triton_porting_kit.conformance.stress.typing import ATOMIC_TYPES, ATOMICS
from triton_porting_kit.conformance.types import KINDS

FAR = (2**32 + 5, -(2**33) - 2, 2**40 + 3, 2**31)
NARROW = ("u8", "u16")
ON_DATA = tuple(
    (OPERATIONS[name], 1.0)
    for name in (
        "+", "-", "*", "tl.where", "tl.where", "cast", "tl.minimum", "tl.maximum", "tl.abs", "tl.sum", "tl.max",
        "tl.argmax", "tl.argmin", "tl.cumsum", "tl.broadcast_to", "tl.trans", "tl.flip", "literal", "[:, None]",
    )
)  # fmt: skip


@dataclass
class MemoryMoves(Indices):
    """A body that grows by memory accesses."""

    weights = ON_DATA

    def region(self, kind: str, uses: Sequence[str]) -> Region:
        """A new region, or an existing one with the same element type and one of the given uses."""
        draws = self.draws
        fitting = [r for r in self.shared.regions.values() if r.kind == kind and r.use in uses]
        if fitting and draws.chance(0.35):
            return draws.choose(fitting)
        some = ("index", "index", "distinct", "small", "edges", "full")
        content = draws.choose(some) if kind in INTEGERS else flavour(draws, kind)
        origin = "argument" if draws.chance(0.15) else "literal"
        return self.shared.region(kind, content, draws.below(1 << 30), use=draws.choose(uses), origin=origin)

    def address(self, index: int, region: Region) -> int | None:
        second = self.draws.chance(0.25 if region.use == "store" else 0.05)
        return self.let("address", index, region=region.number, kind=region.kind, second=second)

    def pointer(self, fits: Callable[[Type, Region], bool]) -> int | None:
        """An existing pointer value for which `fits` holds with every region that it points into."""
        return self.recent([
            v for v, t in self.types.items() if t.is_pointer and all(fits(t, r) for r in self.regions_of(v))
        ])  # fmt: skip

    def regions_of(self, pointers: int) -> list[Region]:
        """The regions that a value's pointers point into, sorted by number."""
        found: set[int] = set()
        for environment in self.environments:
            datum = environment[pointers]
            assert isinstance(datum, Pointers)
            found.update(np.unique(datum.region).tolist())
        return [self.shared.regions[number] for number in sorted(found)]

    def kind(self) -> str:
        """Draw an element type for a load."""
        draws = self.draws
        common = [k for k in ("i32", "i32", "i32", "i64", "fp32", "fp32") if k in self.vocabulary]
        return draws.choose(common) if draws.chance(0.6) else draws.choose(self.vocabulary)

    def load(self) -> None:
        """Add a load from an existing pointer, or from an address computed from an integer."""
        draws = self.draws
        index, pointer = None, None
        if draws.chance(0.3):
            pointer = self.pointer(lambda t, region: region.use in ("load", "store"))
        if pointer is None:
            index = self.position() if draws.chance(0.4) else self.number()
            if index is None or self.types[index].kind_name not in INDICES:
                return
            pointer = self.address(index, self.region(self.kind(), ("load", "load", "load", "store")))
        if pointer is not None and "i64" in self.vocabulary and draws.chance(0.08):
            far = self.let("argument", kind="i64", value=draws.choose(FAR))
            pointer = None if far is None else self.let("advance", pointer, far)
        if pointer is not None:
            self.fetch(pointer, index)

    def narrow(self) -> None:
        """Add a load whose index is computed with 8-bit or 16-bit unsigned arithmetic."""
        draws = self.draws
        kinds = [kind for kind in NARROW if kind in self.vocabulary]
        index = self.number() if kinds else None
        if index is None:
            return
        value = self.let("cast", index, to=draws.choose(kinds))
        for _ in range(draws.between(1, 3)):
            symbol = draws.choose(("*", "*", "+", "-", "%", "//", ">>", "^"))
            literal = draws.choose([n for n in LITERALS[symbol] if 0 < n < 256])
            changed = None if value is None else self.let("literal", value, symbol=symbol, literal=literal)
            value = value if changed is None else changed
        if value is not None and draws.chance(0.5):
            value = self.let("cast", value, to="i32")
        pointer = None if value is None else self.address(value, self.region(self.kind(), ("load",)))
        if pointer is not None:
            self.fetch(pointer, value)

    def walking(self) -> None:
        """Add a loop that advances pointers or indices and accumulates the elements that it loads."""
        draws, index = self.draws, self.position()
        if index is None or self.types[index].kind_name not in INDICES:
            return
        shape = self.types[index].shape
        held = self.any(lambda t: t.shape == shape and t.kind_name != "i1")
        if held is None:
            return
        region = self.region(self.types[held].kind_name, ("load", "load", "store"))
        start = self.address(index, region)
        if start is None:
            return
        inner, counter, moved, sums = (
            self.nested(),
            self.shared.value(),
            self.shared.value(),
            self.shared.value(),
        )
        first = as_number("i32", np.ones((), np.int32))
        inner.define(counter, Type("i32"), lambda environment: first)
        by_index = draws.chance(0.4)
        carried = index if by_index else start
        inner.define(sums, self.types[held], itemgetter(held))
        inner.define(moved, self.types[carried], itemgetter(carried))
        pointer = inner.address(moved, region) if by_index else moved
        if pointer is None:
            return
        guard = inner.guard(moved) if by_index and draws.chance(0.6) else None
        mask = guard if draws.chance(0.5) else inner.mask_of(shape)
        loaded = self.shared.value()
        if not inner.add(Fetch(loaded, pointer, mask, inner.other_of(pointer))):
            return
        total = inner.let(draws.choose(("+", "+", "-", "tl.maximum")), sums, loaded)
        follow = inner.changed(moved)
        if total is None or follow == moved:
            return
        if draws.chance(0.3):
            inner.grow(1)
        carry = (Carried(sums, held, total), Carried(moved, carried, follow))
        style = draws.choose(("range", "range", "stepped", "argument", "static", "while"))
        self.add(Loop(counter, style, draws.between(1, 5), None, carry, tuple(inner.body)))

    def block(self) -> None:
        """Add a load of a block of a matrix, masked by row and by column; the elements often have 64 bits."""
        draws = self.draws
        kinds = [k for k in ("i64", "fp64", "u64", "fp32") if k in self.vocabulary]
        if len(self.tile) != 2 or not kinds or len({self.types[v].kind_name for v in self.sides}) > 1:
            return
        start = self.let("literal", self.sides[0], symbol="*", literal=self.tile[1])
        index = None if start is None else self.let("+", start, self.sides[1])
        inside = [
            self.attempt_limit(side, "<", size // 2) if draws.chance(0.5) else self.limit(side, "<")
            for side, size in zip(self.sides, self.tile, strict=True)
        ]
        if index is None or inside[0] is None or inside[1] is None:
            return
        mask = self.let("&", inside[0], inside[1])
        pointer = self.address(index, self.region(draws.choose(kinds), ("load",)))
        if pointer is not None:
            self.add(Fetch(self.shared.value(), pointer, mask, draws.choose((0, 1, 3))))

    def roles(self) -> None:
        """Use one integer three times: in a mask, in the address of the load with that mask, and as a stored value."""
        draws = self.draws
        index = self.position() if draws.chance(0.5) else self.number()
        if index is None or self.types[index].kind_name not in INDICES:
            return
        mask = self.limit(index, draws.choose(COMPARISONS))
        bounds = self.bounds() if draws.chance(0.3) else None
        if mask is not None and bounds is not None:
            mask = self.attempt("&", mask, bounds) or mask
        pointer = self.address(index, self.region(self.kind(), ("load",)))
        if (
            mask is not None
            and pointer is not None
            and self.add(Fetch(self.shared.value(), pointer, mask, self.other_of(pointer)))
        ):
            self.kept = (*self.kept, index)

    def chain(self) -> None:
        """Add a chain of accesses: a masked load gives the mask of the next load, and often also indices.

        The loaded value may be the index of the second load and the index of a final store or atomic operation.
        """
        draws = self.draws
        index = self.position() if draws.chance(0.7) else self.number(("i32",))
        if index is None or self.types[index].kind_name not in INDICES:
            return
        mask = self.bounds() if draws.chance(0.6) else self.mask_of(self.types[index].shape)
        content = draws.choose(("index", "distinct", "distinct", "small", "edges"))
        first = self.shared.region("i32", content, draws.below(1 << 30))
        pointer, loaded = self.address(index, first), self.shared.value()
        if pointer is None or not self.add(Fetch(loaded, pointer, mask, 0 if draws.chance(0.7) else None)):
            return
        inside = self.limit(loaded, draws.choose(("<", "<", ">=", "!=")))
        if inside is not None and mask is not None and draws.chance(0.7):
            inside = self.attempt("&", inside, mask)
        if inside is None:
            return
        where = index if draws.chance(0.5) else loaded
        second = self.address(where, self.region(self.kind(), ("load",)))
        value = self.shared.value()
        if second is None or not self.add(Fetch(value, second, inside, self.other_of(second))):
            return
        if draws.chance(0.4):
            self.combined(value)
        if draws.chance(0.6):
            way = draws.choose(("store", "store", draws.choose(ATOMICS)))
            kind = self.types[value].kind_name
            region = self.shared.region(
                kind, "small", draws.below(1 << 30), use=way if kind in ATOMIC_TYPES else "store"
            )
            target = self.address(loaded if draws.chance(0.7) else index, region)
            if target is not None:
                self.attempt_put(Put(target, value, inside, region.use))

    def other_of(self, pointer: int) -> int | None:
        """Draw the value that a load gives to inactive lanes; None: the load has no `other`."""
        draws, name = self.draws, self.types[pointer].pointee
        if draws.chance(0.2):
            return None
        signed = KINDS[name].is_signed or KINDS[name].is_float
        return draws.choose((0, 0, 1, 3, -1 if signed else 2)) if name != "i1" else draws.below(2)

    def fetch(self, pointer: int, index: int | None) -> None:
        draws, type_ = self.draws, self.types[pointer]
        guarded = index is not None and self.depth > 0 and draws.chance(0.5)
        mask = None if draws.chance(0.25) else self.mask_of(type_.shape)
        other = self.other_of(pointer)
        if (not guarded and self.add(Fetch(self.shared.value(), pointer, mask, other))) or index is None:
            return
        both = self.guard(index)
        if both is not None and mask is not None and draws.chance(0.6):
            both = self.let("&", both, mask)
        if both is not None:
            self.add(Fetch(self.shared.value(), pointer, both, other))

    def guard(self, index: int) -> int | None:
        """A boolean: whether an integer is at least 0 and below a small bound. None if it cannot be computed."""
        low = self.let("limit", index, symbol=">=", literal=0)
        high = self.let("limit", index, symbol="<", literal=self.draws.choose((1, 7, 16, 40, 100)))
        return None if low is None or high is None else self.let("&", low, high)

    def put(self) -> None:
        """Add a store or an atomic operation to a region that may be loaded from before and after it."""
        draws = self.draws
        value = self.any(lambda t: self.fits(t) and t.count <= 256)
        if value is None:
            return
        own = self.types[value]
        ways = (
            "store",
            "store",
            "store",
            *([draws.choose(ATOMICS)] if own.kind_name in ATOMIC_TYPES else []),
        )
        for _ in range(3):
            pointer = None
            if draws.chance(0.4):
                pointer = self.pointer(lambda t, region: t.pointee == own.kind_name and region.use in ways)
            if pointer is None:
                index = self.any(lambda t: t.kind_name in INDICES and t.rank > 0 and self.fits(t))
                pointer = None if index is None else self.address(index, self.region(own.kind_name, ways))
            if pointer is None:
                continue
            mask = self.mask_of(self.types[pointer].shape) if draws.chance(0.6) else None
            first = self.regions_of(pointer)[0]
            if self.attempt_put(Put(pointer, value, mask, first.use)):
                if first.use == "store" and draws.chance(0.5):
                    found = self.pointer(lambda t, r, n=first.number: r.number == n)  # type: ignore[misc]
                    self.fetch(pointer if found is None else found, None)
                return

    def attempt_put(self, put: Put) -> bool:
        """Add a store and return whether it is valid. A mask may help where several lanes store to one element."""
        if self.add(put):
            return True
        mask = self.mask_of(self.types[put.pointer].shape)
        return mask is not None and self.add(replace(put, mask=mask))

    def step(self) -> None:
        """Advance an existing pointer."""
        pointer = self.pointer(lambda t, region: True)
        if pointer is not None:
            self.moved(pointer)

    def moved(self, pointer: int) -> int | None:
        draws = self.draws
        scalar = self.any(
            lambda t: t.kind_name in ("i32", "i64") and (t.rank == 0 or draws.chance(0.1)) and self.fits(t)
        )
        if scalar is not None and draws.chance(0.3):
            return self.attempt("advance", pointer, scalar)
        step = draws.choose((1, 2, 3, 8, *self.tile, math.prod(self.tile)))
        return self.let("step", pointer, step=step if draws.chance(0.5) else -step)

    def combined(self, value: int) -> None:
        """Reduce a tile along an axis, and combine the tile with the result."""
        draws = self.draws
        if not self.types[value].rank or self.types[value].kind_name in ("i1", "u8", "u16"):
            return
        name = draws.choose(("tl.sum", "tl.sum", "tl.max", "tl.min", "tl.argmax", "tl.argmin"))
        if name.startswith("tl.arg") and not self.is_exact(value):
            return
        axis, rank = draws.below(self.types[value].rank), self.types[value].rank
        found = self.let(name, value, axis=axis, keep_dims=rank < 2 or draws.chance(0.5))
        if found is not None and self.types[found].rank == rank - 1 == 1:
            found = self.let("[:, None]", found, axis=axis)
        if found is not None and self.types[found].kind_name == self.types[value].kind_name:
            self.let(draws.choose(("-", "+", "*")), value, found)

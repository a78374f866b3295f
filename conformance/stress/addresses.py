"""Programs about addresses: they test what compilers infer about indices, masks and pointers.

Indices are sums, products, remainders and differences of existing values, also of numbers near the limits of their
types. Masks combine comparisons of indices and of loaded data. Loaded values serve as masks and addresses of further
loads. One value may be used for several of these, and be stored too. The generator computes every statement while the
program grows, so it adds guards only where a result would be undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from triton_porting_kit.conformance.stress.counting import counting
from triton_porting_kit.conformance.stress.memory_moves import MemoryMoves
from triton_porting_kit.conformance.stress.moves import Undone
from triton_porting_kit.conformance.stress.operations.base import INTEGERS
from triton_porting_kit.conformance.stress.program import (
    Carried,
    Fetch,
    Loop,
    Statement,
    Store,
    Type,
    uses,
    walk,
)

MOST_LEAVES = 4
Move = Callable[["Addresses"], None]


@dataclass
class Addresses(MemoryMoves):
    """A body that grows by moves of a few statements each."""

    family: tuple[tuple[Move, float], ...] = ()
    """The moves of `expressions` and `pointing` with their weights; empty if the program has none of them."""

    def grow(self, count: int) -> None:
        for _ in range(count):
            moves = (*self.family, *MOVES) if self.depth < 2 else MOVES
            self.draws.weighted(moves if self.depth < 2 and self.nests else moves[:-2])(self)

    def counting(self) -> Callable[[int, tuple[Carried, ...], tuple[Statement, ...]], Loop]:
        if self.family and self.draws.chance(0.3):
            with suppress(Undone):
                return counting(self).loop
        return super().counting()

    # --- data ----------------------------------------------------------------------------------------

    def reduced(self) -> None:
        """A tile, and its reduction along an axis."""
        value = self.any(lambda t: t.rank > 0 and t.kind_name not in ("i1", *INTEGERS[4:6]) and self.fits(t))
        if value is not None:
            self.combined(value)

    def normalised(self) -> None:
        """One number per row, and the rows minus their sums."""
        draws = self.draws
        if len(self.tile) != 2 or self.types[self.line].kind_name != self.types[self.sides[1]].kind_name:
            return
        kind = draws.choose([k for k in ("fp32", "fp32", "i32", "i64") if k in self.vocabulary])
        region = self.region(kind, ("load",))
        width = self.tile[1] if draws.chance(0.8) else self.tile[1] + 3
        rows = self.let("[:, None]", self.line, axis=1)
        start = None if rows is None else self.let("literal", rows, symbol="*", literal=width)
        index = None if start is None else self.let("+", start, self.sides[1])
        found = []
        for at in (self.line, index):
            pointer = None if at is None else self.address(at, region)
            mask = self.bounds() if at == index and draws.chance(0.4) else None
            if pointer is None or not self.add(Fetch(self.shared.value(), pointer, mask, 0)):
                return
            found.append(self.shared.values - 1)
        scale = self.let("[:, None]", found[0], axis=1)
        product = None if scale is None else self.let("*", found[1], scale)
        total = None if product is None else self.let("tl.sum", product, axis=1, keep_dims=False)
        total = None if total is None else self.let("[:, None]", total, axis=1)
        if scale is None or product is None or total is None:
            return
        rest = self.let("-", product, total)
        last = self.let("*", scale, rest) if rest is not None and draws.chance(0.7) else rest
        if last is not None:
            self.add(Store(self.shared.output(), last, None, self.types[last].shape))

    def paired(self) -> None:
        """Two values of one type that broadcast together; often one of them has a single row or column."""
        draws = self.draws
        value = self.any(lambda t: t.kind_name != "i1" and t.rank > 0 and self.fits(t))
        other = None if value is None else self.beside(self.types[value].kind_name, value)
        if value is not None and other is not None:
            self.let(draws.choose(("*", "*", "+", "-")), value, other)

    def data(self) -> None:
        self.operation()

    # --- loops and branches --------------------------------------------------------------------------

    def carriable(self) -> int | None:
        draws = self.draws
        match draws.weighted((("index", 4.0), ("pointer", 3.0), ("any", 3.0))):
            case "index":
                return self.number()
            case "pointer":
                return self.pointer(lambda t, region: True)
        return self.any(self.fits)

    def follows(self, param: int, made: list[int]) -> int:
        own = self.types[param]
        if own.is_pointer or (own.kind_name in INTEGERS and self.draws.chance(0.5)):
            return self.changed(param)
        return super().follows(param, made)

    def changed(self, value: int) -> int:
        draws, own = self.draws, self.types[value]
        if own.is_pointer:
            found = self.moved(value)
            return value if found is None or self.types[found] != own else found
        scalar = self.any(lambda t: t == Type(own.kind_name))
        if own.kind_name in INTEGERS and scalar is not None and draws.chance(0.5):
            return self.let(draws.choose("+-"), value, scalar) or value
        return super().changed(value)

    def ending(self) -> None:
        """Store the values that nothing reads, and some values from which addresses and masks are computed."""
        read = {v for statement in walk(tuple(self.body)) for v in uses(statement)}
        values = [v for v, t in self.types.items() if not t.is_pointer]
        leaves = [v for v in values if v not in read and v not in self.kept]
        used = [v for v in values if v in read and self.types[v].rank > 0 and v not in self.kept]
        for value in (*leaves[-MOST_LEAVES:], *dict.fromkeys(v for v in self.kept if v in self.types)):
            self.store(value)
        for _ in range(self.draws.between(1, 3)):
            if used:
                self.store(used.pop(self.draws.below(len(used))))


MOVES: tuple[tuple[Callable[[Addresses], object], float], ...] = (
    (Addresses.scalar, 1.0),
    (Addresses.arithmetic, 4.0),
    (Addresses.mask, 3.0),
    (Addresses.load, 4.0),
    (Addresses.roles, 1.5),
    (Addresses.chain, 1.5),
    (Addresses.block, 1.6),
    (Addresses.narrow, 0.7),
    (Addresses.walking, 1.2),
    (Addresses.put, 2.0),
    (Addresses.step, 0.7),
    (Addresses.reduced, 1.2),
    (Addresses.normalised, 0.8),
    (Addresses.paired, 1.5),
    (Addresses.data, 1.0),
    (Addresses.loop, 1.3),
    (Addresses.branch, 0.8),
)
"""The last two moves create loops and branches with arbitrary bodies."""

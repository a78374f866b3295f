"""Indices and masks: integers from which addresses are computed, and booleans that select elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triton_porting_kit.conformance.stress.builder import Builder
from triton_porting_kit.conformance.stress.operations.addressing import INDICES
from triton_porting_kit.conformance.stress.operations.base import INTEGERS, partner
from triton_porting_kit.conformance.stress.program import (
    Malformed,
    Type,
)
from triton_porting_kit.conformance.types import KINDS

ARGUMENTS = {
    "i32": (-(2**31), -(2**31), 2**31 - 1, 2**31 - 1, 0, -1, 2, 3, 7, 8, 10, 16, 33, 100),
    "i64": (2**32 + 5, -(2**33) - 2, 2**40 + 3, 2**31, -(2**63), 2**63 - 1, -1, 0, 3, 7),
}
"""The values of run-time numbers."""
LITERALS: dict[str, tuple[int, ...]] = {
    "%": (2, 3, 4, 5, 7, 8, 10, 16, 17, 100, -3, -7),
    "//": (2, 3, 4, 5, 7, 8, 16, -2, -5),
    "*": (2, 3, 4, 5, 7, 8, 16, 37, -1, -2),
    "+": (1, 2, 3, 7, 16, 100, 2**31 - 1),
    "-": (1, 2, 3, 7, 16, 100),
    "&": (1, 3, 6, 7, 15),
    "|": (1, 2, 4, 9),
    "^": (1, 2, 5, 8),
    "<<": (1, 2, 3),
    ">>": (1, 2, 3),
}
REMAINDERS = ("%", "%", "%", "//")
SYMBOLS = (*REMAINDERS, "*", "+", "-", "&", "|", "^", "<<", ">>")
WITH_SCALARS = ("plain %", "plain %", "plain //", "+", "-", "*", "tl.minimum", "tl.maximum", "&", "^")
WITH_TILES = ("+", "-", "*", "&", "|", "^", "tl.minimum", "tl.maximum")
COMPARISONS = ("<", "<", "<=", ">", ">=", "==", "!=")


@dataclass
class Indices(Builder):
    """A body whose statements are computed from indices along the dimensions of a tile."""

    tile: tuple[int, ...] = ()
    """The largest shape of operands."""
    sides: tuple[int, ...] = ()
    """The indices along each dimension."""
    nests: bool = True
    """Whether it has arbitrary loops and branches."""
    line: int = 0
    """The indices along the first dimension, as a one-dimensional value."""
    kept: tuple[int, ...] = ()
    """Values to be stored, even if they are also used otherwise."""

    def fits(self, t: Type) -> bool:
        """Whether a value is a scalar, or broadcasts to the tile."""
        return t.shape == () or (
            t.rank == len(self.tile) and all(a in (1, b) for a, b in zip(t.shape, self.tile, strict=True))
        )

    def beside(self, kind: str, *values: int) -> int | None:
        """A value of a kind that broadcasts with others within the tile."""
        return partner(self, [self.types[v] for v in values], kind, also=self.fits)

    def mask_of(self, shape: Sequence[int]) -> int | None:
        """A mask that broadcasts to a shape; a new one if none exists."""

        def fits(t: Type) -> bool:
            if t.kind_name != "i1" or t.rank not in (0, len(shape)):
                return False
            return t.rank == 0 or all(a in (1, b) for a, b in zip(t.shape, shape, strict=True))

        found = self.any(fits)
        if found is None or self.draws.chance(0.3):
            self.mask()
            found = self.any(fits)
        return found

    # --- numbers -------------------------------------------------------------------------------------

    def beginning(self) -> None:
        """Create the first indices: along each dimension, linear in the tile, and, in larger grids, across tiles."""
        draws, shape = self.draws, self.tile
        along = []
        for axis, size in enumerate(shape):
            index = self.let("tl.arange", start=draws.choose((0, 0, 0, 0, 0, 5)), size=size)
            assert index is not None
            if "i64" in self.vocabulary and draws.chance(0.2):
                index = self.let("cast", index, to="i64") or index
            self.line = index if axis == 0 else self.line
            if len(shape) == 2:
                index = self.let("[:, None]", index, axis=1 - axis) or index
            along.append(index)
        self.sides = tuple(along)
        if len(shape) == 2:
            rows = self.let("literal", along[0], symbol="*", literal=shape[1])
            kinds = {self.types[v].kind_name for v in along}
            if rows is not None and len(kinds) == 1:
                self.let("+", rows, along[1])
        if self.program.programs > 1:
            number = self.let("tl.program_id", axis=0)
            if len(self.grid) > 1 and number is not None:
                other = self.let(
                    "literal", self.let("tl.program_id", axis=1) or number, symbol="*", literal=self.grid[0]
                )
                number = number if other is None else self.let("+", number, other)
            first = None if number is None else self.let("literal", number, symbol="*", literal=shape[0])
            if first is not None and draws.chance(0.7) and self.types[along[0]].kind_name == "i32":
                row, line = self.let("+", first, along[0]), self.let("+", first, self.line)
                if row is not None and line is not None:
                    self.sides, self.line = (row, *self.sides[1:]), line
            start = (
                None if number is None else self.let("literal", number, symbol="*", literal=math.prod(shape))
            )
            whole = self.any(lambda t: t == Type("i32", shape))
            if start is not None and whole is not None:
                self.let("+", whole, start)

    def number(self, kinds: Sequence[str] = ("i32", "i64")) -> int | None:
        """An integer that broadcasts to the tile, mostly of a type that indices have."""
        some = kinds if self.draws.chance(0.85) else INTEGERS
        found = self.any(lambda t: t.kind_name in some and t.rank > 0 and self.fits(t))
        return self.any(lambda t: t.kind_name in INTEGERS and self.fits(t)) if found is None else found

    def scalar(self, kind: str = "") -> int | None:
        """A new scalar: mostly an argument."""
        draws = self.draws
        kind = kind or ("i64" if "i64" in self.vocabulary and draws.chance(0.25) else "i32")
        if kind not in ARGUMENTS or (kind == "i32" and draws.chance(0.15)):
            return self.let("tl.program_id", axis=draws.below(2))
        own = (*self.tile, math.prod(self.tile))
        value = draws.choose(ARGUMENTS[kind]) if draws.chance(0.75) else draws.choose(own)
        return self.let("argument", kind=kind, value=value)

    def arithmetic(self) -> None:
        """An operation of an integer with a literal, a scalar or another tile, or its conversion to another type."""
        draws, value = self.draws, self.number()
        if value is None:
            return
        kind = self.types[value].kind_name
        match draws.weighted(
            (("literal", 5.0), ("scalar", 5.0), ("tile", 3.0), ("cast", 1.5), ("minus", 0.5))
        ):
            case "literal":
                symbol = draws.choose(SYMBOLS)
                literal = draws.choose(
                    (*LITERALS[symbol], *(n for n in self.tile if n > 1 and symbol in "%//*"))
                )
                if KINDS[kind].lowest <= literal <= KINDS[kind].highest:
                    self.let("literal", value, symbol=symbol, literal=literal)
            case "scalar":
                scalar = self.any(lambda t: t == Type(kind))
                if scalar is None or draws.chance(0.4):
                    scalar = self.scalar(kind)
                if scalar is not None and self.types[scalar].kind_name == kind:
                    pair = (value, scalar) if draws.chance(0.75) else (scalar, value)
                    self.let(draws.choose(WITH_SCALARS), *pair)
            case "tile":
                other, mask = (
                    self.beside(kind, value),
                    self.any(lambda t: t.kind_name == "i1" and self.fits(t)),
                )
                if other is None:
                    return
                if mask is not None and draws.chance(0.4):
                    self.attempt("tl.where", mask, value, other)
                else:
                    self.let(draws.choose(WITH_TILES), value, other)
            case "cast":
                self.let("cast", value, to=draws.choose([k for k in INDICES if k in self.vocabulary]))
            case "minus":
                self.let("unary -", value)

    def attempt(self, name: str, *args: int) -> int | None:
        """Try a statement whose operands may not fit."""
        try:
            return self.let(name, *args)
        except Malformed:
            return None

    def along(self, axis: int) -> int | None:
        """The indices along a dimension of the tile, or values that address other elements along it."""
        draws, shape = self.draws, tuple(n if d == axis else 1 for d, n in enumerate(self.tile))
        index = (
            self.sides[axis]
            if draws.chance(0.6)
            else self.any(lambda t: t.shape == shape and t.kind_name == "i32")
        )
        if index is None or draws.chance(0.4):
            return index
        for _ in range(draws.between(1, 2)):
            kind = self.types[index].kind_name
            scalar = None
            if draws.chance(0.25):
                scalar = self.any(lambda t, k=kind: t == Type(k))  # type: ignore[misc]
            elif draws.chance(0.4):
                scalar = self.let("argument", kind=kind, value=draws.choose((2, 3, 5, 7, 8, *self.tile)))
            form = draws.choose(("%", "%", "+", "-", "//", "*"))
            if scalar is not None:
                pair = (scalar, index) if form == "-" or draws.chance(0.1) else (index, scalar)
                found = self.let(f"plain {form}" if form in "%//" else form, *pair)
            else:
                found = self.let(
                    "literal", index, symbol=form, literal=draws.choose((2, 3, 5, 6, 7, self.tile[axis] + 1))
                )
            index = index if found is None else found
        return index

    def wrapped(self, axis: int) -> int | None:
        """The indices along a dimension, modulo a number smaller than its size."""
        draws, index = self.draws, self.sides[axis]
        period = max(self.tile[axis] - draws.between(1, 4), 2)
        if draws.chance(0.5):
            return self.let("literal", index, symbol="%", literal=period)
        number = self.let("argument", kind=self.types[index].kind_name, value=period)
        return None if number is None else self.let("plain %", index, number)

    def position(self) -> int | None:
        """The index of an element, computed from its row and its column."""
        if len(self.tile) == 1:
            return self.along(0)
        rows, columns = (
            (self.wrapped(0), self.wrapped(1)) if self.draws.chance(0.2) else (self.along(0), self.along(1))
        )
        if rows is None or columns is None or self.types[rows].kind_name != self.types[columns].kind_name:
            return None
        width = self.draws.choose((self.tile[1], self.tile[1], self.tile[1] + 3, 1, 10, 64))
        start = self.let("literal", rows, symbol="*", literal=width)
        if start is None:
            return None
        return self.let("+", *((start, columns) if self.draws.chance(0.8) else (columns, start)))

    def bounds(self) -> int | None:
        """A mask that keeps a part of the tile in each dimension."""
        draws, mask = self.draws, None
        for axis in draws.permutation(len(self.tile)):
            if mask is not None and draws.chance(0.25):
                continue
            index = self.sides[axis] if draws.chance(0.7) else self.along(axis)
            if index is None:
                continue
            scalar = self.any(lambda t, v=index: t == Type(self.types[v].kind_name))  # type: ignore[misc]
            if scalar is not None and draws.chance(0.4):
                found = self.let(f"compare {draws.choose(COMPARISONS)}", index, scalar)
            else:
                found = self.limit(index, draws.choose(("<", "<", "<", "<=", ">=", "!=")))
            both = found if mask is None or found is None else self.let(draws.choose("&&&|"), mask, found)
            mask = both if both is not None else mask
        return mask

    # --- masks ---------------------------------------------------------------------------------------

    def mask(self) -> None:
        """A comparison, or two masks combined."""
        draws = self.draws
        form = draws.weighted((("limit", 4.0), ("scalar", 3.0), ("data", 2.0), ("tiles", 1.0), ("both", 3.0),
            ("not", 1.0), ("bounds", 4.0), ("difference", 2.5)))  # fmt: skip
        if form == "bounds":
            self.bounds()
            return
        if form in ("both", "not"):
            mask = self.any(lambda t: t.kind_name == "i1" and self.fits(t))
            other = None if mask is None else self.beside("i1", mask)
            if mask is not None and other is not None:
                if form == "not":
                    self.let("~", mask)
                elif other != mask:
                    self.let(draws.choose(("&", "&", "&", "|", "^")), mask, other)
                return
            form = "limit"
        value = self.any(lambda t: t.kind_name != "i1" and self.fits(t)) if form == "data" else self.number()
        if value is None or not self.is_exact(value):
            return
        kind = self.types[value].kind_name
        if form == "difference":
            scalar = self.scalar(kind)
            pair = (value, scalar) if draws.chance(0.5) else (scalar, value)
            other = None if scalar is None else self.attempt(draws.choose("--+*"), *pair)
            if other is not None:
                near = draws.choose((0, 1, -1, 2, 10))
                self.attempt_limit(other, draws.choose(COMPARISONS), near)
            return
        if form in ("limit", "data"):
            self.limit(value, draws.choose(COMPARISONS))
            return
        other = self.any(lambda t: t == Type(kind)) if form == "scalar" else self.beside(kind, value)
        if other is None and form == "scalar":
            other = self.scalar(kind)
        if other is not None and self.is_exact(other) and self.types[other].kind_name == kind:
            pair = (value, other) if draws.chance(0.7) else (other, value)
            self.let(f"compare {draws.choose(COMPARISONS)}", *pair)

    def limit(self, value: int, symbol: str) -> int | None:
        """A comparison with an existing value or one close to it.

        A literal is a number of float32, also beside float64: Triton 3.6 rounds it to that.
        """
        draws, kind = self.draws, self.types[value].kind
        values = draws.choose(self.environments)[value].value.ravel()
        found = values[draws.below(values.size)].item()
        if kind.is_float:
            with np.errstate(over="ignore"):
                literal = float(np.float32(found))
            return self.let("limit", value, symbol=symbol, literal=literal)
        return self.attempt_limit(value, symbol, int(found) + draws.between(-1, 1))

    def attempt_limit(self, value: int, symbol: str, literal: int) -> int | None:
        """A comparison with a literal, or with the nearest number that the type has."""
        kind = self.types[value].kind
        literal = min(max(literal, kind.lowest), kind.highest)
        return self.let("limit", value, symbol=symbol, literal=literal)

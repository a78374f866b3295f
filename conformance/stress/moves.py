"""Helpers for the moves of the address family: each adds a statement or raises, which ends the move."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from triton_porting_kit.conformance.stress.memory_moves import MemoryMoves
from triton_porting_kit.conformance.stress.operations.addressing import INDICES
from triton_porting_kit.conformance.stress.program import Fetch, Malformed, Region
from triton_porting_kit.conformance.types import KINDS

Builder = TypeVar("Builder", bound=MemoryMoves)


class Undone(Exception):
    """A statement of a move would be undefined, or needs a type that the program does not have."""


def move(function: Callable[[Builder], None]) -> Callable[[Builder], None]:
    """A move that ends where one of its statements cannot be; what it has made by then stays."""

    @functools.wraps(function)
    def attempt(builder: Builder) -> None:
        try:
            function(builder)
        except (Undone, Malformed):
            return

    return attempt


def sure(value: int | None) -> int:
    """Return the value if it exists. Raises `Undone` if it is None."""
    if value is None:
        raise Undone
    return value


def let(builder: MemoryMoves, name: str, *args: int, **attrs: object) -> int:
    """A statement of an operation. Raises `Undone` or `Malformed`."""
    return sure(builder.let(name, *args, **attrs))


def argument(builder: MemoryMoves, value: int, kind: str = "i32") -> int:
    """A number of run time, or the nearest to it that the type has."""
    own = KINDS[kind]
    return let(builder, "argument", kind=kind, value=min(max(value, own.lowest), own.highest))


def literal(builder: MemoryMoves, value: int, symbol: str, number: float) -> int:
    return let(builder, "literal", value, symbol=symbol, literal=number)


def by(builder: MemoryMoves, value: int, symbol: str, number: int) -> int:
    """With a literal, or with a number of run time."""
    if builder.draws.chance(0.4):
        return literal(builder, value, symbol, number)
    other = argument(builder, number, builder.types[value].kind_name)
    return let(builder, f"plain {symbol}" if symbol in "%//" else symbol, value, other)


def cast(builder: MemoryMoves, value: int, kind: str) -> int:
    return value if builder.types[value].kind_name == kind else let(builder, "cast", value, to=kind)


def sides(builder: MemoryMoves) -> tuple[int, ...]:
    """The indices along the dimensions of the tile, of one type."""
    kinds = {builder.types[v].kind_name for v in builder.sides}
    return tuple(cast(builder, v, "i64") if len(kinds) > 1 else v for v in builder.sides)


def side(builder: MemoryMoves) -> int:
    """The indices along a dimension."""
    return builder.draws.choose(sides(builder))


def whole(builder: MemoryMoves, width: int = 0) -> int:
    """The index of each element of a matrix of so wide rows, or else as wide as the tile; of each of a line."""
    along = sides(builder)
    if len(along) == 1:
        return along[0]
    rows = literal(builder, along[0], "*", width or builder.tile[1])
    return let(builder, "+", rows, along[1])


def near(builder: MemoryMoves, value: int) -> int:
    """One of the numbers that an integer is, or one beside it."""
    draws = builder.draws
    values = draws.choose(builder.environments)[value].value.ravel()
    return int(values[draws.below(values.size)].item()) + draws.between(-1, 1)


def compared(builder: MemoryMoves, value: int, symbol: str, number: int) -> int:
    """A comparison with a literal, or with a number of run time on either side."""
    draws, kind = builder.draws, builder.types[value].kind
    number = min(max(number, kind.lowest), kind.highest)
    if draws.chance(0.3):
        return let(builder, "limit", value, symbol=symbol, literal=number)
    if kind.name in ("i32", "i64"):
        other = argument(builder, number, kind.name)
    else:  # arguments are signed
        signed = f"i{kind.bits}"
        bits = number - (1 << kind.bits if number > KINDS[signed].highest else 0)
        other = cast(builder, argument(builder, bits, signed), kind.name)
    pair = (value, other) if draws.chance(0.75) else (other, value)
    return let(builder, f"compare {symbol}", *pair)


def all_of(builder: MemoryMoves, masks: Sequence[int]) -> int | None:
    """The conjunction of up to two masks; None without any."""
    return let(builder, "&", *masks) if len(masks) > 1 else next(iter(masks), None)


def fetch(builder: MemoryMoves, pointer: int, mask: int | None = None) -> int:
    """A load: what is loaded. Raises `Undone`."""
    loaded = builder.shared.value()
    if not builder.add(Fetch(loaded, pointer, mask, builder.other_of(pointer))):
        raise Undone
    return loaded


def address(builder: MemoryMoves, index: int, region: Region) -> int:
    """Pointers. Raises `Undone`."""
    if builder.types[index].kind_name not in INDICES:
        raise Undone
    return sure(builder.address(index, region))


def loads(builder: MemoryMoves) -> Region:
    """A region to load from."""
    return builder.region(builder.kind(), ("load", "load", "load", "store"))

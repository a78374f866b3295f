"""Helpers for the moves of the address family: each adds a statement or raises, which ends the move."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from triton_porting_kit.conformance.stress.operations.addressing import INDICES
from triton_porting_kit.conformance.stress.program import Fetch, Malformed, Region
from triton_porting_kit.conformance.types import KINDS

if TYPE_CHECKING:
    from triton_porting_kit.conformance.stress.addresses import Addresses

Move = Callable[["Addresses"], None]


class Undone(Exception):
    """A statement of a move would be undefined, or needs a type that the program does not have."""


def move(function: Move) -> Move:
    """Decorate a move: it ends at the first statement that cannot be added; earlier statements stay."""

    @functools.wraps(function)
    def attempt(builder: Addresses) -> None:
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


def let(builder: Addresses, name: str, *args: int, **attrs: object) -> int:
    """Add an operation and return its result. Raises `Undone` or `Malformed`."""
    return sure(builder.let(name, *args, **attrs))


def argument(builder: Addresses, value: int, kind: str = "i32") -> int:
    """Add a scalar argument with this value, clamped to the range of the type."""
    own = KINDS[kind]
    return let(builder, "argument", kind=kind, value=min(max(value, own.lowest), own.highest))


def literal(builder: Addresses, value: int, symbol: str, number: int) -> int:
    return let(builder, "literal", value, symbol=symbol, literal=number)


def by(builder: Addresses, value: int, symbol: str, number: int) -> int:
    """Apply a binary operation to a value and a number, which is a literal or a scalar argument."""
    if builder.draws.chance(0.4):
        return literal(builder, value, symbol, number)
    other = argument(builder, number, builder.types[value].kind_name)
    return let(builder, f"plain {symbol}" if symbol in "%//" else symbol, value, other)


def cast(builder: Addresses, value: int, kind: str) -> int:
    return value if builder.types[value].kind_name == kind else let(builder, "cast", value, to=kind)


def sides(builder: Addresses) -> tuple[int, ...]:
    """The indices along each dimension of the tile, cast to i64 where their types differ."""
    kinds = {builder.types[v].kind_name for v in builder.sides}
    return tuple(cast(builder, v, "i64") if len(kinds) > 1 else v for v in builder.sides)


def side(builder: Addresses) -> int:
    """The indices along a random dimension of the tile."""
    return builder.draws.choose(sides(builder))


def whole(builder: Addresses, width: int = 0) -> int:
    """The linear index of each element of the tile. `width` is the row length; by default that of the tile."""
    along = sides(builder)
    if len(along) == 1:
        return along[0]
    rows = literal(builder, along[0], "*", width or builder.tile[1])
    return let(builder, "+", rows, along[1])


def near(builder: Addresses, value: int) -> int:
    """A value that an integer takes in some lane and program of the grid, or that value plus or minus 1."""
    draws = builder.draws
    values = draws.choose(builder.environments)[value].value.ravel()
    return int(values[draws.below(values.size)].item()) + draws.between(-1, 1)


def compared(builder: Addresses, value: int, symbol: str, number: int) -> int:
    """Compare a value with a number: a literal, or a scalar argument on either side."""
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


def fetch(builder: Addresses, pointer: int, mask: int | None = None) -> int:
    """Add a load and return its result. Raises `Undone`."""
    loaded = builder.shared.value()
    if not builder.add(Fetch(loaded, pointer, mask, builder.other_of(pointer))):
        raise Undone
    return loaded


def address(builder: Addresses, index: int, region: Region) -> int:
    """Compute the addresses of elements of a region. Raises `Undone`."""
    if builder.types[index].kind_name not in INDICES:
        raise Undone
    return sure(builder.address(index, region))


def loads(builder: Addresses) -> Region:
    """A region to load from."""
    return builder.region(builder.kind(), ("load", "load", "load", "store"))

"""Offsets and masks of the family of address expressions, which test what compilers infer about integers.

The expressions include: strides, starts and ends known only at run time, negative ones too; products and sums that
leave 32 or 64 bits and come back; unsigned comparisons; offsets of 2^31 and more; differences of large strides; sums of
which one term wraps around; choices between offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_porting_kit.conformance.rounding import wrap
from triton_porting_kit.conformance.stress.indices import COMPARISONS
from triton_porting_kit.conformance.stress.moves import (
    address,
    argument,
    by,
    cast,
    compared,
    fetch,
    let,
    literal,
    loads,
    move,
    near,
    side,
    sides,
    sure,
    whole,
)

if TYPE_CHECKING:
    from triton_porting_kit.conformance.stress.addresses import Addresses, Move

STRIDES = (1, 1, 2, 3, 5, 16, -1, -1, -2, -3, 0)
"""Distances between the elements that lanes access."""
ENDS = (2**31 - 9, -(2**31), 2**31 - 1, -(2**31) + 9)
STARTS = (0, 1, -1, -3, 5, 16, -16, 100, -100, *ENDS)
FACTORS = (0x10001, 1000003, 2**31 - 1, -(2**31) + 1, 0x55555555, 48271)
"""Odd numbers. Their products with indices leave 32 bits, and another multiplication brings them back."""
LARGE = (2**32 + 5, 2**33 - 2, -(2**33) - 2, 2**40 + 3, 2**31, 2**62 + 1, -(2**62) - 3)
"""64-bit strides. Products with the last ones wrap around."""
TOPS = (2**31 - 9, 2**31 - 1, 2**31, 2**31 + 2**30, 2**32 - 600)
"""Offsets that unsigned 32-bit integers hold."""


def _width(builder: Addresses) -> int:
    """The distance of rows that are contiguous or nearly so."""
    return builder.draws.choose((builder.tile[-1], builder.tile[-1], builder.tile[-1] + 3, 10, 33))


def _is_torn(builder: Addresses, value: int) -> bool:
    """Whether a tile of indices wraps around from one end of its type to the other."""
    values = [environment[value].value for environment in builder.environments]
    return any(int(v.max()) - int(v.min()) >= 1 << 31 for v in values)


@move
def stretched(builder: Addresses) -> None:
    """``index * step + start < end``, with all three known only at run time."""
    draws, index = builder.draws, side(builder) if builder.draws.chance(0.6) else whole(builder)
    of_both = len(builder.tile) == 2 and draws.chance(0.45)
    if of_both:
        rows, columns = sides(builder)
        pair = (columns, by(builder, rows, "*", _width(builder)))
        index = let(builder, "-", *(pair if draws.chance(0.6) else pair[::-1]))
    kind = builder.types[index].kind_name
    first = draws.choose(ENDS if of_both and draws.chance(0.5) else STARTS)
    start = argument(builder, first, kind)
    if draws.chance(0.45):  # compilers can round a bound only by a literal step
        scaled = literal(builder, index, "*", draws.choose((2, 3, 5, 7, -2, -3)))
    else:
        step = argument(builder, draws.choose(STRIDES), kind)
        scaled = let(builder, "*", *((index, step) if draws.chance(0.7) else (step, index)))
    value = let(builder, draws.choose("++-"), *((scaled, start) if draws.chance(0.7) else (start, scaled)))
    if _is_torn(builder, value) and draws.chance(0.8):
        beyond = "<" if first > 0 else ">="  # selects what has left the type, or the rest
        mask = compared(builder, value, beyond if draws.chance(0.7) else draws.choose(("<", ">=")), 0)
    else:
        mask = compared(builder, value, draws.choose(COMPARISONS), near(builder, value))
    if draws.chance(0.35):
        low = compared(builder, value, draws.choose((">=", ">", "!=")), near(builder, value))
        mask = let(builder, draws.choose("&&|"), mask, low)
    if draws.chance(0.3):
        builder.kept = (*builder.kept, value)
    at = value if draws.chance(0.6) else whole(builder)
    fetch(builder, address(builder, at, loads(builder)), mask)


@move
def overflowing(builder: Addresses) -> None:
    """Products and sums that leave their type: values that come back to small numbers, and masks of those that do
    not."""
    draws, index = builder.draws, side(builder) if builder.draws.chance(0.5) else whole(builder)
    kind = builder.types[index].kind
    mask = None
    if draws.chance(0.65):
        factor, apart = draws.choose(FACTORS), draws.choose((1, 1, 2, -1, 3))
        back = int(wrap(pow(factor, -1, 1 << kind.bits) * apart, kind))
        first = by(builder, index, "*", factor)
        value = by(builder, first, "*", back)
    else:
        far = draws.choose((2**31 - 1, 2**31 - 8, 2**30 + 5)) << (32 if kind.bits == 64 else 0)
        first = by(builder, index, "+", far)
        value = by(builder, by(builder, first, "+", far), "-", int(wrap(2 * far, kind)))
    if draws.chance(0.6):
        of = first if draws.chance(0.6) else value
        mask = compared(builder, of, draws.choose(COMPARISONS), near(builder, of))
    at = value if draws.chance(0.7) else index
    fetch(builder, address(builder, at, loads(builder)), mask)


@move
def unsigned(builder: Addresses) -> None:
    """An unsigned range check of a value that may be negative, and quotients and shifts of the value."""
    draws, size = builder.draws, builder.tile[-1]
    form = draws.weighted((("plain", 3.0), ("whole", 1.0), ("rest", 3.5), ("quotient", 1.0), ("shift", 0.7)))
    index = side(builder) if form == "rest" or draws.chance(0.7) else whole(builder)
    offset = draws.choose((1, 2, 5) if form == "rest" else (1, 2, 3, -1, size // 2, size, 5))
    moved = by(builder, index, "-", offset)
    if form != "rest" and draws.chance(0.25):
        moved = by(builder, moved, "*", draws.choose((-1, 2, 3)))
    wide = "u64" if builder.types[moved].kind_name == "i64" else "u32"
    plain = cast(builder, moved, wide)
    limit = near(builder, plain) if draws.chance(0.3) else draws.choose((size - 1, size, size // 2, 7, 1))
    mask = compared(builder, plain, draws.choose(("<", "<", "<=", ">=", ">")), max(limit, 0))
    at = moved
    match form:
        case "whole":
            at = whole(builder)
        case "quotient":
            at = by(builder, plain, "//", draws.choose((3, 7, 2**24)))
        case "shift":
            at = literal(builder, plain, ">>", draws.choose((1, 24, 28)))
        case "rest":
            at = by(builder, plain, "%", draws.choose((3, 7, 16, 100)))
    if builder.types[at].kind_name == "u64":
        at = cast(builder, at, "i64")
    # The check lets through what is not beyond the signs: others find out what the rest became.
    needed: int | None = mask
    if at not in (moved, plain) and draws.chance(0.3):
        needed = compared(builder, index, draws.choose(COMPARISONS), near(builder, index))
    elif at not in (moved, plain) and draws.chance(0.4):
        needed = None
    fetch(builder, address(builder, at, loads(builder)), needed)


@move
def high(builder: Addresses) -> None:
    """Large offsets: 2^31 elements and more in u32 and i64; in i32, fewer elements, of often more than 2^31 bytes."""
    draws, index = builder.draws, side(builder) if builder.draws.chance(0.5) else whole(builder)
    kind = draws.choose([k for k in ("u32", "u32", "i64", "i32") if k in builder.vocabulary])
    value = cast(builder, index, kind)
    match kind:
        case "u32":
            value = literal(builder, value, "+", draws.choose(TOPS))
        case "i64":
            value = let(builder, "+", value, argument(builder, draws.choose(LARGE[:5]), "i64"))
        case _:
            last = max(int(e[value].value.max()) for e in builder.environments)
            value = by(builder, value, "+", draws.choose((2**31 - 1, 2**30 + 3, 2**29 + 1)) - max(last, 0))
    mask = None
    if draws.chance(0.5):
        mask = compared(builder, value, draws.choose(COMPARISONS), near(builder, value))
    fetch(builder, address(builder, value, loads(builder)), mask)


@move
def cancelled(builder: Addresses) -> None:
    """A row stride that is the difference of two large numbers; or a large row stride with a single active row."""
    draws = builder.draws
    rows, columns = (cast(builder, v, "i64") for v in (sides(builder)[0], sides(builder)[-1]))
    large, apart = (
        draws.choose(LARGE),
        _width(builder) if len(builder.tile) == 2 else draws.choose((1, 2, -1)),
    )
    first = argument(builder, large, "i64")
    form = draws.choose(("products", "products", "strides", "pointers", "row", "row"))
    region = loads(builder)
    if form == "row":
        at = let(builder, "*", rows, first)
        at = at if len(builder.tile) == 1 else let(builder, "+", at, columns)
        mask = compared(builder, rows, "==", near(builder, rows))
        if draws.chance(0.4):
            bounds = builder.bounds()
            mask = mask if bounds is None else let(builder, "&", mask, bounds)
        fetch(builder, address(builder, at, region), mask)
        return
    if form == "strides":
        second = argument(builder, large - apart, "i64")
        steps = let(builder, "*", rows, let(builder, "-", first, second))
        at = steps if len(builder.tile) == 1 else let(builder, "+", steps, columns)
    elif form == "products":
        second = argument(builder, large - apart, "i64")
        there, back = let(builder, "*", rows, first), let(builder, "*", rows, second)
        if len(builder.tile) == 2:
            there = let(builder, "+", there, columns)
        at = let(builder, "-", there, back)
    else:
        second = argument(builder, apart - large, "i64")
        pointer = address(builder, columns if len(builder.tile) == 2 else cast(builder, rows, "i64"), region)
        for stride in (first, second):
            pointer = let(builder, "advance", pointer, let(builder, "*", rows, stride))
        fetch(builder, pointer, builder.mask_of(builder.types[pointer].shape) if draws.chance(0.4) else None)
        return
    inside = (
        compared(builder, at, draws.choose(COMPARISONS), near(builder, at)) if draws.chance(0.5) else None
    )
    fetch(builder, address(builder, at, region), inside)


def _period(builder: Addresses, size: int) -> int:
    return builder.draws.choose((size - 1, size, size + 1, size // 2, size // 2 + 1, size - size // 4 + 1, 3))


@move
def terms(builder: Addresses) -> None:
    """``(row % M) * stride + column % N``, with one or both remainders; ``a % M + b``, ``a // M * stride + a % M``."""
    draws, along = builder.draws, sides(builder)
    lines = []
    for index in along:
        moved = (
            by(builder, index, draws.choose("++-"), draws.choose((1, 2, 3, 5)))
            if draws.chance(0.3)
            else index
        )
        lines.append(moved)
    width = _width(builder)
    if len(along) == 1:
        (index,), size = lines, builder.tile[0]
        rest = by(builder, index, "%", max(_period(builder, size), 2))
        if draws.chance(0.5):
            other = by(builder, index, "//", max(_period(builder, size), 2))
            other = by(builder, other, "*", width)
        else:
            kind = builder.types[index].kind_name
            other = index if draws.chance(0.5) else argument(builder, draws.choose(STARTS[:7]), kind)
        pair = (rest, other) if draws.chance(0.5) else (other, rest)
        at = let(builder, "+", *pair)
    else:
        which = draws.choose(((True, False), (False, True), (True, True)))
        ends = [
            by(builder, v, "%", max(_period(builder, size), 2)) if wraps else v
            for v, wraps, size in zip(lines, which, builder.tile, strict=True)
        ]
        rows = by(builder, ends[0], "*", width)
        at = let(builder, "+", *((rows, ends[1]) if draws.chance(0.7) else (ends[1], rows)))
    mask = None
    if draws.chance(0.5):
        mask = builder.bounds() if draws.chance(0.5) else None
        mask = compared(builder, at, draws.choose(COMPARISONS), near(builder, at)) if mask is None else mask
    if draws.chance(0.3):
        builder.kept = (*builder.kept, at)
    fetch(builder, address(builder, at, loads(builder)), mask)


@move
def chosen(builder: Addresses) -> None:
    """An offset that ``tl.where`` selects from two, or one changed by arithmetic or bitwise operations."""
    draws, index = builder.draws, side(builder) if builder.draws.chance(0.5) else whole(builder)
    if draws.chance(0.4):
        other = literal(builder, index, draws.choose("&&|^"), draws.choose((1, 3, 6, 7, 12, -2)))
    else:
        other = by(builder, index, draws.choose("+-*"), draws.choose((1, 2, 3, 7)))
    of = draws.choose((index, other))
    condition = compared(builder, of, draws.choose(COMPARISONS), near(builder, of))
    pair = (index, other) if draws.chance(0.5) else (other, index)
    at = let(builder, "tl.where", condition, *pair) if draws.chance(0.8) else other
    mask = None
    if draws.chance(0.5):
        mask = condition if draws.chance(0.3) else sure(builder.mask_of(builder.types[at].shape))
    fetch(builder, address(builder, at, loads(builder)), mask)


EXPRESSIONS: tuple[tuple[Move, float], ...] = (
    (stretched, 3.0),
    (overflowing, 2.5),
    (unsigned, 6.0),
    (high, 3.0),
    (cancelled, 2.5),
    (terms, 3.0),
    (chosen, 2.0),
)

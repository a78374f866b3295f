"""The products of tiles: one dot, a batched dot, or a dot with scales for groups of terms."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.matrices.tiling import upright
from triton_porting_kit.conformance.stress.moves import address, fetch, let, literal

FORMS = (("one", 8.0), ("rows", 1.0), ("terms", 1.0))
"""With weights: one dot of two dimensions; two dots, batched, each of half the rows or of half the terms."""
SMALLEST = 16


def dot(builder: Addresses, left: int, right: int, total: int | None = None) -> int:
    """The product of two tiles, plus `total`."""
    (m, k), n = builder.types[left].shape, builder.types[right].shape[1]
    least = 2 * SMALLEST if builder.types[left].kind_name == "i8" else SMALLEST
    form = builder.draws.weighted(FORMS)
    more = () if total is None else (total,)
    if form == "rows" and m >= 2 * SMALLEST:
        halves = let(builder, "tl.reshape", left, shape=(2, m // 2, k))
        twice = let(
            builder, "tl.broadcast_to", let(builder, "tl.expand_dims", right, axis=0), shape=(2, k, n)
        )
        sums = tuple(let(builder, "tl.reshape", v, shape=(2, m // 2, n)) for v in more)
        return let(builder, "tl.reshape", let(builder, "tl.dot", halves, twice, *sums), shape=(m, n))
    if form == "terms" and k >= 2 * least:
        halves = let(builder, "tl.reshape", left, shape=(m, 2, k // 2))
        halves = let(builder, "tl.permute", halves, order=(1, 0, 2))
        below = let(builder, "tl.reshape", right, shape=(2, k // 2, n))
        both = let(builder, "tl.sum", let(builder, "tl.dot", halves, below), axis=0, keep_dims=False)
        return both if total is None else let(builder, "+", total, both)
    return let(builder, "tl.dot", left, right, *more)


# --- products with scales ------------------------------------------------------------------------

STORED = ("u8", "u8", "fp8e4nv", "fp8e5", "bf16")
"""Types of factors with scales: u8 stands for two numbers of four bits."""


def dot_scaled(builder: Addresses, m: int, n: int, k: int, start: int, total: int) -> int:
    """A product of loaded factors with scales for groups of 32 terms, plus `total`. `start`: the first term."""
    draws = builder.draws
    first, second = draws.choose(STORED), draws.choose(STORED)
    both = second != "bf16" and draws.chance(0.7)
    left, scales = _factor(builder, first, m, k, 1, start), _scales(builder, m, k, start)
    right = _factor(builder, second, n, k, 0, start)
    more = (_scales(builder, n, k, start),) if both else ()
    return let(builder, "tl.dot_scaled", left, right, scales, *more, total, both=both)


def _factor(builder: Addresses, kind: str, lines: int, k: int, axis: int, start: int) -> int:
    """A tile of a factor. `axis`: the dimension that the product sums over."""
    if kind == "u8":
        k, start = k // 2, literal(builder, start, "//", 2)
    flavour = "full" if kind == "u8" else "small"
    return _loaded(builder, kind, flavour, (lines, k), axis, start)


def _scales(builder: Addresses, lines: int, k: int, start: int) -> int:
    """Scales from 1/16 to 32, as biased exponents."""
    at = literal(builder, start, "//", 32)
    return literal(builder, _loaded(builder, "u8", "whole", (lines, k // 32), 1, at), "+", 123)


def _loaded(
    builder: Addresses, kind: str, flavour: str, shape: tuple[int, int], axis: int, start: int
) -> int:
    """A tile whose `axis` has the terms, from `start` on. They are contiguous, and those of a row overlap with those of
    the next one."""
    draws, (lines, terms) = builder.draws, shape
    region = builder.shared.region(kind, flavour, draws.below(1 << 30))
    rows = upright(builder, let(builder, "tl.arange", start=0, size=lines), 1 - axis)
    along = let(builder, "+", let(builder, "tl.arange", start=0, size=terms), start)
    width = terms + draws.choose((0, 3, 32))
    index = let(builder, "+", literal(builder, rows, "*", width), upright(builder, along, axis))
    return fetch(builder, address(builder, index, region))

"""How a loop sums up matrix products, and what else each iteration does with the factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.matrices.dots import dot, dot_scaled
from triton_porting_kit.conformance.stress.matrices.factors import Reading
from triton_porting_kit.conformance.stress.matrices.tiling import Sizes, Tile, upright
from triton_porting_kit.conformance.stress.moves import (
    Undone,
    address,
    argument,
    cast,
    fetch,
    let,
    literal,
)
from triton_porting_kit.conformance.stress.program import Branch, Merged, Store


@dataclass(frozen=True)
class Iteration:
    """What an iteration multiplies."""

    tile: Tile
    left: int
    right: int
    start: int
    """The index of the first term."""
    read: tuple[Reading, Reading]

    @property
    def sizes(self) -> Sizes:
        return self.tile.sizes

    def sum_of(self, builder: Addresses, value: int) -> int:
        """A value in the type of the sums."""
        return cast(builder, value, self.sizes.sums)

    def line(self, builder: Addresses) -> int:
        """The rows of the result plus the first term, as a column of indices."""
        return upright(builder, let(builder, "+", self.tile.rows, self.start), 0)


# --- how the products are added up ---------------------------------------------------------------

Way = Callable[[Addresses, Iteration, int], int]
"""A function of the builder, of the iteration and of a carried value: its next value."""


def _accumulated(builder: Addresses, at: Iteration, total: int) -> int:
    return dot(builder, at.left, at.right, total)


def _added(builder: Addresses, at: Iteration, total: int) -> int:
    pair = (total, dot(builder, at.left, at.right))
    return let(builder, "+", *(pair if builder.draws.chance(0.7) else pair[::-1]))


def _subtracted(builder: Addresses, at: Iteration, total: int) -> int:
    return let(builder, "-", total, dot(builder, at.left, at.right))


def _rescaled(builder: Addresses, at: Iteration, total: int) -> int:
    """The signs of rows change first, as the sums of attention are scaled."""
    sign = literal(builder, literal(builder, at.line(builder), "&", 2), "-", 1)
    scaled = let(builder, "*", total, at.sum_of(builder, sign))
    return _accumulated(builder, at, scaled) if builder.draws.chance(0.6) else _added(builder, at, scaled)


def _scaled(builder: Addresses, at: Iteration, total: int) -> int:
    one = at.sum_of(builder, argument(builder, builder.draws.choose((1, 1, -1, 2))))
    return _added(builder, at, let(builder, "*", total, one))


def _chosen(builder: Addresses, at: Iteration, total: int) -> int:
    """Some rows only."""
    rest = literal(builder, at.line(builder), "%", 3)
    mask = let(builder, "limit", rest, symbol=builder.draws.choose(("!=", "<")), literal=1)
    return let(builder, "tl.where", mask, _added(builder, at, total), total)


def _branched(builder: Addresses, at: Iteration, total: int) -> int:
    """In some iterations only."""
    rest = literal(builder, at.start, "%", 2 * at.sizes.k)
    symbol = builder.draws.choose(("<", ">="))
    condition = let(builder, "limit", rest, symbol=symbol, literal=at.sizes.k)
    then = builder.nested()
    merged = Merged(
        builder.shared.value(), builder.draws.choose((_added, _accumulated))(then, at, total), total
    )
    if not builder.add(Branch(condition, tuple(then.body), (), (merged,))):
        raise Undone
    return merged.out


def _watched(builder: Addresses, at: Iteration, total: int) -> int:
    """Stored in each iteration, so that the sums are needed in memory."""
    after = _added(builder, at, total)
    builder.add(Store(builder.shared.output(), after, None, builder.types[after].shape))
    return after


WAYS: tuple[tuple[Way, float], ...] = (
    (_accumulated, 2.0),
    (_added, 3.0),
    (_subtracted, 1.0),
    (_rescaled, 1.5),
    (_scaled, 1.0),
    (_chosen, 1.0),
    (_branched, 1.5),
    (_watched, 0.7),
)

# --- what else is computed -----------------------------------------------------------------------


Values = tuple[int, ...]


@dataclass(frozen=True)
class Beside:
    """Further values that the loop carries, of the type of the sums."""

    shapes: Callable[[Sizes], tuple[tuple[int, ...], ...]]
    next: Callable[[Addresses, Iteration, Values], Values]


def one(shape: Callable[[Sizes], tuple[int, ...]], way: Way) -> Beside:
    """A single further value."""
    return Beside(lambda of: (shape(of),), lambda builder, at, totals: (way(builder, at, totals[0]),))


def _product(left: Callable[[Addresses, int], int], right: Callable[[Addresses, int], int]) -> Way:
    """A product of what is computed from the factors."""

    def next(builder: Addresses, at: Iteration, total: int) -> int:
        pair = (
            cast(builder, left(builder, at.left), at.sizes.kind),
            cast(builder, right(builder, at.right), at.sizes.kind),
        )
        if builder.draws.chance(0.5):
            return dot(builder, *pair, total)
        return let(builder, "+", total, dot(builder, *pair))

    return next


def _plain(builder: Addresses, value: int) -> int:
    return value


def _more(builder: Addresses, value: int) -> int:
    return literal(builder, value, *builder.draws.choose((("+", 1), ("*", 2))))


def _turned(builder: Addresses, value: int) -> int:
    return let(builder, "tl.trans", value)


def _swapped(builder: Addresses, at: Iteration, total: int) -> int:
    """The transposed product."""
    factors = _turned(builder, at.right), _turned(builder, at.left)
    return dot(builder, *factors, total)


def _with_others(builder: Addresses, at: Iteration, total: int) -> int:
    """The left factor times other columns of the right one."""
    own = at.read[1]
    lines = let(builder, "plain %", literal(builder, own.lines, "+", 1), at.tile.ends.columns)
    other = Reading(own.factor, own.tile, lines, own.depth)
    right = other.load(builder, other.pointers(builder, at.start), at.start)
    return dot(builder, at.left, right, total)


def _chained(builder: Addresses, at: Iteration, total: int) -> int:
    """The product as the left factor of another one, as in attention."""
    of = at.sizes
    first = dot(builder, at.left, at.right)
    if of.sums == "i32":
        first = literal(builder, first, "%", 3)
    return dot(builder, cast(builder, first, of.kind), _square(builder, of), total)


def _square(builder: Addresses, of: Sizes) -> int:
    """A loaded matrix of n x m elements."""
    region = builder.shared.region(of.kind, "small", builder.draws.below(1 << 30))
    rows = upright(builder, let(builder, "tl.arange", start=0, size=of.n), 0)
    columns = upright(builder, let(builder, "tl.arange", start=0, size=of.m), 1)
    index = let(builder, "+", literal(builder, rows, "*", of.m), columns)
    return fetch(builder, address(builder, index, region))


def _with(change: Callable[[Addresses, int], int], left: bool) -> Way:
    """The sum of what is computed from a factor."""

    def next(builder: Addresses, at: Iteration, total: int) -> int:
        value = at.sum_of(builder, at.left if left else at.right)
        return let(builder, "+", total, change(builder, value))

    return next


def _reshaped(builder: Addresses, at: Iteration, total: int) -> int:
    value = let(builder, "tl.reshape", at.left, shape=(2 * at.sizes.k, at.sizes.m // 2))
    return let(builder, "+", total, at.sum_of(builder, value))


def _centred(builder: Addresses, value: int) -> int:
    sums = let(builder, "tl.sum", value, axis=1, keep_dims=True)
    return let(builder, "-", value, sums)


def _running(builder: Addresses, value: int) -> int:
    return let(builder, "tl.cumsum", value, axis=builder.draws.below(2), reverse=False)


def _flipped(builder: Addresses, value: int) -> int:
    return let(builder, "tl.flip", value, axis=builder.draws.below(2))


def _row_sums(builder: Addresses, value: int) -> int:
    return let(builder, "tl.sum", value, axis=1, keep_dims=False)


def _column_maxima(builder: Addresses, at: Iteration, total: int) -> int:
    value = at.sum_of(builder, at.right)
    return let(builder, "tl.maximum", total, let(builder, "tl.max", value, axis=0, keep_dims=False))


def _stored(builder: Addresses, at: Iteration, total: int) -> int:
    """A factor as it is, of the last iteration."""
    value = builder.draws.choose((at.left, at.right))
    builder.add(Store(builder.shared.output(), value, None, builder.types[value].shape))
    return literal(builder, total, "+", 1)


def _attended(builder: Addresses, at: Iteration, totals: Values) -> Values:
    """The maxima of rows, the sums of their exponentials, and a product of these: attention."""
    of, (most, weight, total) = at.sizes, totals
    if of.kind != "fp32":
        raise Undone  # too little would be known of the sums
    scores = literal(builder, dot(builder, at.left, at.right), "*", 0.0625)
    now = let(builder, "tl.maximum", most, let(builder, "tl.max", scores, axis=1, keep_dims=False))
    below = let(builder, "-", scores, upright(builder, now, 0))
    shares = let(builder, "tl.exp2", below)
    decay = let(builder, "tl.exp2", let(builder, "-", most, now))
    sums = let(builder, "tl.sum", shares, axis=1, keep_dims=False)
    weight = let(builder, "+", let(builder, "*", weight, decay), sums)
    scaled = let(builder, "*", total, upright(builder, decay, 0))
    return now, weight, dot(builder, shares, _square(builder, of), scaled)


def _with_scales(builder: Addresses, at: Iteration, total: int) -> int:
    """A product of other factors, with scales; without the types that it needs, the same product once more."""
    of = at.sizes
    if not {"u8", "bf16", "fp8e5"} <= set(builder.vocabulary) or of.sums != "fp32":
        return _accumulated(builder, at, total)
    return dot_scaled(builder, of.m, of.n, max(of.k, 64), at.start, total)


BESIDE: tuple[Beside, ...] = (
    one(lambda s: (s.m, s.n), _product(_plain, _plain)),
    one(lambda s: (s.m, s.n), _product(_more, _plain)),
    one(lambda s: (s.m, s.n), _product(_plain, _more)),
    one(lambda s: (s.n, s.m), _swapped),
    one(lambda s: (s.m, s.n), _with_others),
    one(lambda s: (s.m, s.m), _chained),
    one(lambda s: (s.m, s.k), _with(_plain, left=True)),
    one(lambda s: (s.k, s.n), _with(_plain, left=False)),
    one(lambda s: (s.k, s.m), _with(_turned, left=True)),
    one(lambda s: (s.n, s.k), _with(_turned, left=False)),
    one(lambda s: (s.m, s.k), _with(_centred, left=True)),
    one(lambda s: (s.m, s.k), _with(_running, left=True)),
    one(lambda s: (s.k, s.n), _with(_flipped, left=False)),
    one(lambda s: (s.m,), _with(_row_sums, left=True)),
    one(lambda s: (s.n,), _column_maxima),
    one(lambda s: (s.m, s.n), _with_scales),
    one(lambda s: (s.m, s.n), _with_scales),
    one(lambda s: (2 * s.k, s.m // 2), _reshaped),
    one(lambda s: (), _stored),
    Beside(lambda s: ((s.m,), (s.m,), (s.m, s.m)), _attended),
    Beside(lambda s: ((s.m,), (s.m,), (s.m, s.m)), _attended),
)

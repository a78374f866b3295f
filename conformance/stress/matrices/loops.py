"""The loops over the terms of the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.matrices.factors import Reading
from triton_porting_kit.conformance.stress.matrices.sums import Iteration, Values
from triton_porting_kit.conformance.stress.matrices.tiling import Tile
from triton_porting_kit.conformance.stress.moves import Undone, argument, let, literal
from triton_porting_kit.conformance.stress.program import BETWEEN, Loop
from triton_porting_kit.conformance.stress.repeating import counted, repeated

Next = Callable[[Addresses, Iteration, Values], Values]
Body = Callable[[Addresses, int, Mapping[int, int]], Mapping[int, int]]
"""A function of the builder, of the index of the first term, and of the carried values: the next ones."""


@dataclass(frozen=True)
class Span:
    """A part of the terms, between two scalars."""

    start: int
    end: int
    whole: bool = False
    """Whether it has all terms."""


def summed(
    builder: Addresses,
    tile: Tile,
    read: tuple[Reading, Reading],
    wanted: Sequence[tuple[Values, Next]],
) -> dict[int, int]:
    """Loops over all terms. `wanted`: groups of values, and how an iteration changes each group. Returns the values
    after the loops, by the values before them."""
    zero = let(builder, "tl.full", kind="i32", shape=(), value=0)
    fixed = {s: s.load(builder, s.pointers(builder, None), zero) for s in read if s.factor.fixed}
    pointers = {s: s.pointers(builder, None) for s in read if s.moves and s not in fixed}

    def iteration(inner: Addresses, start: int, at: Mapping[int, int]) -> dict[int, int]:
        tiles, after = [], {}
        for side in read:
            if side in fixed:
                tiles.append(fixed[side])
                continue
            own = at[pointers[side]] if side in pointers else side.pointers(inner, start)
            tiles.append(side.load(inner, own, start))
            if side in pointers:
                after[pointers[side]] = _forward(inner, own, side.factor.step(tile.sizes.k))
        found = Iteration(tile, tiles[0], tiles[1], start, read)
        for values, next in wanted:
            after |= zip(values, next(inner, found, tuple(at[v] for v in values)), strict=True)
        return after

    at: Mapping[int, int] = {v: v for v in (*(v for values, _ in wanted for v in values), *pointers.values())}
    for span in _spans(builder, tile, zero):
        at = _through(builder, tile, at, iteration, span)
    return dict(at)


def _forward(builder: Addresses, pointers: int, by: int) -> int:
    if builder.draws.chance(0.5):
        return let(builder, "step", pointers, step=by)
    return let(builder, "advance", pointers, argument(builder, by))


def _spans(builder: Addresses, tile: Tile, zero: int) -> tuple[Span, ...]:
    """All terms at once; or whole tiles, then the rest; or those up to the tile's first row, as causal kernels have."""
    draws, end, k = builder.draws, tile.ends.depth, tile.sizes.k
    match draws.weighted((("whole", 5.0), ("rest", 1.0), ("causal", 1.0))):
        case "rest":
            middle = literal(builder, literal(builder, end, "//", k), "*", k)
            return Span(zero, middle), Span(middle, end)
        case "causal":
            after = literal(builder, tile.first, "+", draws.choose((k, k, 1)))
            return (Span(zero, let(builder, "tl.minimum", end, after)),)
    return (Span(zero, end, whole=True),)


def _through(
    builder: Addresses, tile: Tile, initial: Mapping[int, int], body: Body, span: Span
) -> dict[int, int]:
    """A loop over a part of the terms, in tiles, or a loop over pairs of tiles around one."""
    of, draws = tile.sizes, builder.draws
    iterations = -(-of.depth // of.k)
    styles: tuple[str, ...] = (BETWEEN, BETWEEN, "pairs")
    if span.whole:
        styles = (*styles, "argument", "argument")
    if span.whole and iterations != 1:
        # Triton turns a loop of one iteration into straight-line code and adds later addends first: other roundings.
        styles = (*styles, "range", "range", "while", "static")
    style = draws.choose(styles)

    def between(stride: int) -> Loop:
        step = argument(builder, stride) if draws.chance(0.3) else None
        return Loop(-1, BETWEEN, iterations, span.end, (), (), span.start, step, 1 if step else stride)

    def scaled(inner: Addresses, counter: int, at: Mapping[int, int]) -> Mapping[int, int]:
        return body(inner, literal(inner, counter, "*", of.k), at)

    def pair(outer: Addresses, first: int, at: Mapping[int, int]) -> Mapping[int, int]:
        def one(inner: Addresses, counter: int, own: Mapping[int, int]) -> Mapping[int, int]:
            return body(inner, let(inner, "+", first, literal(inner, counter, "*", of.k)), own)

        return _done(repeated(outer, counted(draws.choose(("range", "argument")), 2), at, one))

    if style == "pairs":
        return _done(repeated(builder, between(2 * of.k), initial, pair))
    if style == BETWEEN:
        return _done(repeated(builder, between(of.k), initial, body))
    return _done(repeated(builder, counted(style, iterations), initial, scaled))


def _done(found: dict[int, int] | None) -> dict[int, int]:
    """The values after a loop. Raises `Undone` if there is no loop."""
    if found is None:
        raise Undone
    return found

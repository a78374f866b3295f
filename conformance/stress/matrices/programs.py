"""Whole programs about tiled matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Limits
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.growing import grown
from triton_porting_kit.conformance.stress.matrices.endings import finished, kept
from triton_porting_kit.conformance.stress.matrices.factors import factor, reading
from triton_porting_kit.conformance.stress.matrices.loops import Next, summed
from triton_porting_kit.conformance.stress.matrices.sums import BESIDE, WAYS, Values
from triton_porting_kit.conformance.stress.matrices.tiling import (
    Ends,
    Sizes,
    sizes,
    tile_at,
)
from triton_porting_kit.conformance.stress.moves import Undone, argument, let
from triton_porting_kit.conformance.stress.operations.base import EVERY
from triton_porting_kit.conformance.stress.program import BETWEEN, Loop, Program, Store
from triton_porting_kit.conformance.stress.repeating import repeated

MINIFLOATS = ("fp8e4nv", "fp8e5")
"""Types of stored factors in programs that have all other types."""
BESIDES = ((0, 3.0), (1, 3.0), (2, 2.0), (3, 1.0))
"""How many more values the loop over the terms carries, with weights."""


def multiplying(draws: Draws, seed: int, vocabulary: tuple[str, ...]) -> Program:
    """A program that multiplies matrices in tiles."""

    def plan(limits: Limits) -> tuple[Sizes, int]:
        of = sizes(draws, vocabulary, limits)
        tiles = math.prod(of.grid)
        return of, draws.between(1, tiles) if of.persistent else tiles

    types = (*vocabulary, *MINIFLOATS) if vocabulary == EVERY else vocabulary
    return grown(draws, seed, types, plan, _tiles)


def _tiles(builder: Addresses, of: Sizes) -> None:
    """The tiles of one program of the grid. Raises `Undone` or `Malformed`."""
    ends = Ends(*(argument(builder, size) for size in (of.rows, of.columns, of.depth)))
    number, zeros = let(builder, "tl.program_id", axis=0), _filled(builder, of, (of.m, of.n), 0)
    if not of.persistent:
        _tile(builder, of, ends, number, zeros)
        return
    tiles, step = argument(builder, math.prod(of.grid)), let(builder, "tl.num_programs", axis=0)
    together = builder.draws.choose(("apart", "apart", "added", "continued"))

    def body(inner: Addresses, counter: int, at: Mapping[int, int]) -> Mapping[int, int]:
        total = _tile(inner, of, ends, counter, at[zeros] if together == "continued" else zeros)
        if together == "apart":
            return {}
        return {zeros: total if together == "continued" else let(inner, "+", at[zeros], total)}

    loop = Loop(-1, BETWEEN, math.prod(of.grid), tiles, (), (), number, step)
    found = repeated(builder, loop, {zeros: zeros} if together != "apart" else {}, body)
    if found is None:
        raise Undone
    if together != "apart":
        builder.add(Store(builder.shared.output(), found[zeros], None, (of.m, of.n)))


def _tile(builder: Addresses, of: Sizes, ends: Ends, number: int, zeros: int) -> int:
    """One tile of the result, whose sums start with `zeros`. Returns the sums."""
    draws, tile = builder.draws, tile_at(builder, number, of, ends)
    left = factor(builder, of, 1)
    read = reading(builder, left, tile), reading(builder, factor(builder, of, 0, left), tile)
    way = draws.weighted(WAYS)
    wanted: list[tuple[Values, Next]] = [((zeros,), lambda inner, at, totals: (way(inner, at, totals[0]),))]
    for beside in [draws.choose(BESIDE) for _ in range(draws.weighted(BESIDES))]:
        starts = tuple(_filled(builder, of, shape, draws.choose((0, 0, 0, 1))) for shape in beside.shapes(of))
        wanted.append((starts, beside.next))
    found = summed(builder, tile, read, wanted)
    finished(builder, tile, found[zeros])
    for values, _ in wanted[1:]:
        for value in values:
            kept(builder, number, found[value])
    return found[zeros]


def _filled(builder: Addresses, of: Sizes, shape: tuple[int, ...], value: int) -> int:
    return let(builder, "tl.full", kind=of.sums, shape=shape, value=value)

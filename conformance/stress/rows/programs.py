"""Whole programs about rows."""

from __future__ import annotations

from collections.abc import Mapping

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Limits
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.growing import grown
from triton_porting_kit.conformance.stress.moves import Undone, address, argument, let
from triton_porting_kit.conformance.stress.program import BETWEEN, Loop, Program, Put
from triton_porting_kit.conformance.stress.repeating import repeated
from triton_porting_kit.conformance.stress.rows.layout import Band, Sizes, band, sizes
from triton_porting_kit.conformance.stress.rows.passes import pass_through, turn_halves

PASSES = ((1, 1.0), (2, 3.0), (3, 2.0))
"""How often a program goes through its rows, with weights."""


def row_by_row(draws: Draws, seed: int, vocabulary: tuple[str, ...]) -> Program:
    """A program that goes through the rows of matrices."""

    def plan(limits: Limits) -> tuple[Sizes, int]:
        of = sizes(draws, vocabulary, limits)
        return of, draws.between(1, min(of.groups, 4)) if of.persistent else of.groups

    return grown(draws, seed, vocabulary, plan, _rows)


def _rows(builder: Addresses, of: Sizes) -> None:
    """The rows of one program of the grid. Raises `Undone` or `Malformed`."""
    ends = argument(builder, of.rows), argument(builder, of.columns)
    number = let(builder, "tl.program_id", axis=0)
    if not of.persistent:
        _group(builder, band(builder, number, of, ends))
        return
    groups, step = argument(builder, of.groups), let(builder, "tl.num_programs", axis=0)

    def body(inner: Addresses, counter: int, at: Mapping[int, int]) -> Mapping[int, int]:
        _group(inner, band(inner, counter, of, ends))
        return {}

    if repeated(builder, Loop(-1, BETWEEN, of.groups, groups, (), (), number, step), {}, body) is None:
        raise Undone


def _group(builder: Addresses, of: Band) -> None:
    """The passes through a group of rows; then the numbers that they reduced rows to are stored."""
    count = builder.draws.weighted(PASSES)
    for turn in range(count):
        if builder.draws.chance(0.15):
            turn_halves(builder, of)
        pass_through(builder, of, last=turn == count - 1)
    for fact in of.facts:
        region = builder.shared.region(of.sizes.kind, "small", builder.draws.below(1 << 30), use="store")
        mask = None
        if of.sizes.height > 1:
            mask = let(builder, "compare <", of.rows, of.ends[0])
        if not builder.add(Put(address(builder, of.rows, region), fact, mask)):
            raise Undone

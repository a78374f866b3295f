"""Programs that follow a plan, drawn again until they are well-defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TypeVar

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Limits, Shared
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.moves import Undone
from triton_porting_kit.conformance.stress.operations.base import LARGEST_TILE
from triton_porting_kit.conformance.stress.oracle import fitted
from triton_porting_kit.conformance.stress.program import MOST_SPAN, PLACES, Malformed, Program
from triton_porting_kit.conformance.stress.rewriting import tidy

Plan = TypeVar("Plan")


LIMITS = ((Limits(), 2.0), (Limits(8 * LARGEST_TILE, 16 * MOST_SPAN), 1.0))
"""With weights: small tiles, and tiles as large as those of users."""


def grown(
    draws: Draws,
    seed: int,
    vocabulary: tuple[str, ...],
    plan: Callable[[Limits], tuple[Plan, int]],
    body: Callable[[Addresses, Plan], None],
) -> Program:
    """The program of a seed, with some types. `plan` draws a plan and the number of programs of the grid, within
    limits; `body` adds the statements, and raises `Undone` or `Malformed` for a plan that cannot be followed."""
    for _ in count():
        limits = draws.weighted(LIMITS)
        own, programs = plan(limits)
        program = Program((), (programs,), draws.choose((1, 2, 4, 4)), seed, place=draws.choose(PLACES))
        builder = Addresses(draws, program, Shared(limits), {}, [{} for _ in range(programs)])
        builder.vocabulary = vocabulary
        try:
            body(builder, own)
        except (Undone, Malformed):
            continue
        regions = tuple(builder.shared.regions.values())
        return fitted(tidy(replace(program, body=tuple(builder.body), regions=regions)))
    raise AssertionError("unreachable")

"""Programs that follow a plan, drawn again until they are well-defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TypeVar

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Shared
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.moves import Undone
from triton_porting_kit.conformance.stress.oracle import fitted
from triton_porting_kit.conformance.stress.program import PLACES, Malformed, Program
from triton_porting_kit.conformance.stress.rewriting import tidy

Plan = TypeVar("Plan")


def grown(
    draws: Draws,
    seed: int,
    vocabulary: tuple[str, ...],
    plan: Callable[[], tuple[Plan, int]],
    body: Callable[[Addresses, Plan], None],
) -> Program:
    """The program of a seed, with some types. `plan` draws a plan and the number of programs of the grid; `body` adds
    the statements, and raises `Undone` or `Malformed` for a plan that cannot be followed."""
    for _ in count():
        own, programs = plan()
        program = Program((), (programs,), draws.choose((1, 2, 4, 4)), seed, place=draws.choose(PLACES))
        builder = Addresses(draws, program, Shared(), {}, [{} for _ in range(programs)])
        builder.vocabulary = vocabulary
        try:
            body(builder, own)
        except (Undone, Malformed):
            continue
        regions = tuple(builder.shared.regions.values())
        return fitted(tidy(replace(program, body=tuple(builder.body), regions=regions)))
    raise AssertionError("unreachable")

"""Loops from one run-time number to another, with a run-time or literal step."""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.conformance.stress.memory_moves import MemoryMoves
from triton_porting_kit.conformance.stress.moves import (
    argument,
    let,
)
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Carried,
    Loop,
    Statement,
)
from triton_porting_kit.conformance.types import KINDS

STEPS = (1, 1, 2, 3, 5, 16)
FIRSTS = (0, 0, 1, -1, -3, -7, 2, 10, 100)
MOST_TURNS = 8


@dataclass(frozen=True)
class Counting:
    """A loop of style ``between``: its bounds and its step."""

    start: int
    bound: int
    step: int | None
    stride: int
    far: bool
    """Whether it runs from one end of the type to the other."""

    def loop(self, index: int, carried: tuple[Carried, ...], body: tuple[Statement, ...]) -> Loop:
        stride = 1 if self.step is not None else self.stride
        return Loop(index, BETWEEN, MOST_TURNS, self.bound, carried, body, self.start, self.step, stride)


def counting(builder: MemoryMoves, kind: str = "i32") -> Counting:
    """A loop from one run-time number to another, up or down, with a run-time or literal step."""
    draws, turns = builder.draws, builder.draws.choose((0, 1, 2, 2, 3, 4, 5))
    runs = draws.chance(0.5)
    sign = 1 if runs or draws.chance(0.5) else -1
    step, first, own = draws.choose(STEPS), draws.choose(FIRSTS), KINDS[kind]
    if draws.chance(0.15):
        first = own.lowest if sign > 0 else own.highest - 7
    far = draws.chance(0.1)
    if far:
        first, step, turns = own.lowest if sign > 0 else own.highest, 1 << (own.bits - 2), 3
    # The last step may go past the end.
    end = (
        first + sign * (turns * step - draws.below(min(step, 8)))
        if turns
        else first - sign * draws.choose((0, 3))
    )
    start = argument(builder, first, kind)
    if kind == "i32" and not far and draws.chance(0.2):
        start = let(builder, "+", start, let(builder, "tl.program_id", axis=0))
    stride = argument(builder, step, kind) if runs else None
    return Counting(start, argument(builder, end, kind), stride, sign * step, far)

"""Runs: how a tensor of integers goes on from one lane of a chunk to the next.

Programs that flatten the dimensions of an array into one index get the positions along each back by divisions and
remainders. Within a chunk of lanes that crosses no multiple of the divisor, the quotient is the same in all lanes and
the remainder counts up with the dividend. So one lane tells the others: quotients, and what is loaded or computed from
them, are scalars, and addresses are consecutive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
    from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor


class Break(NamedTuple):
    """A run ends where `dividend`, an unsigned integer, passes a multiple of `divisor`.

    `span` is the difference of the dividend between the last lane of `point` and the first.
    """

    dividend: Tensor
    point: Point
    divisor: int
    span: int

    def implies(self, other: Break) -> bool:
        """Whether a chunk that does not cross this break does not cross the other one either."""
        same = self.dividend is other.dividend and self.point == other.point and self.span == other.span
        return same and other.divisor % self.divisor == 0

    def is_excluded(self, evaluation: Evaluation) -> bool:
        """Whether no chunk crosses the break: chunks begin at multiples of a power of two."""
        first = evaluation.first(self.dividend, self.point)
        return self.span < math.gcd(1 << evaluation.builder.zeros(first), self.divisor)

    def condition(self, evaluation: Evaluation) -> Value:
        """i1: this chunk does not cross the break."""
        builder = evaluation.builder
        first = evaluation.first(self.dividend, self.point)
        place = builder.binary("arith.remui", first, builder.constant(self.divisor, first.type))
        last = builder.constant(self.divisor - 1 - self.span, first.type)
        inside = builder.compare("ule", place, last)
        if self.divisor & (self.divisor - 1) == 0:
            return inside
        # The dividend of the last lanes may be beyond the type's range.
        largest = builder.constant((1 << types.BITS[first.type]) - 1 - self.span, first.type)
        return builder.logical_and(inside, builder.compare("ule", first, largest))


class Run(NamedTuple):
    """The elements of a chunk are first, first + step, ..., unless the chunk crosses one of the breaks."""

    step: int
    breaks: tuple[Break, ...] = ()

    def with_break(self, dividend: Tensor, point: Point, divisor: int, span: int) -> Run | None:
        """The run with another break; None if every chunk crosses it."""
        if span >= divisor:
            return None
        return Run(self.step, _strongest([*self.breaks, Break(dividend, point, divisor, span)]))


UNIFORM = Run(0)


def uniform(runs: Iterable[Run]) -> Run:
    """The run of what is computed from tensors whose elements are all equal in a chunk."""
    breaks = tuple(one for run in runs for one in run.breaks)
    return Run(0, _strongest(breaks)) if breaks else UNIFORM


def _strongest(breaks: Iterable[Break]) -> tuple[Break, ...]:
    found: list[Break] = []
    for new in breaks:
        if not any(old.implies(new) for old in found):
            found = [*(old for old in found if not new.implies(old)), new]
    return tuple(found)


def broken_at_sign(tensor: Tensor, run: Run, point: Point) -> Run | None:
    """The run of a sign- or zero-extended tensor: its elements must not pass the ends of the narrow type's ranges."""
    if run.step == 0:
        return run
    span = run.step * (point.width - 1)
    return run.with_break(tensor, point, 1 << (types.BITS[tensor.element] - 1), span) if span > 0 else None


# --- element-wise operations ---------------------------------------------------------------------

Rule = Callable[["Tensor", "Point", Sequence["Tensor"], Sequence[Run]], "Run | None"]
"""Takes a tensor, the point, its operands, and their runs."""


def _joined(step: int, runs: Sequence[Run]) -> Run:
    return Run(step, _strongest(one for run in runs for one in run.breaks))


def _sum(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    return _joined(runs[0].step + runs[1].step, runs)


def _difference(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    return _joined(runs[0].step - runs[1].step, runs)


def _product(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    for here, other in ((0, 1), (1, 0)):
        factor = operands[other].constant
        if factor is not None:
            return _joined(runs[here].step * factor, runs)
    return None


def _extended(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    return broken_at_sign(operands[0], runs[0], point)


def _quotient(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    return _divided(0, point, operands, runs)


def _remainder(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    return _divided(runs[0].step, point, operands, runs)


def _divided(step: int, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    divisor, span = operands[1].constant, runs[0].step * (point.width - 1)
    if divisor is None or divisor <= 0 or span <= 0:
        return None
    return Run(step, runs[0].breaks).with_break(operands[0], point, divisor, span)


def _compared(tensor: Tensor, point: Point, operands: Sequence[Tensor], runs: Sequence[Run]) -> Run | None:
    """Comparing with a limit gives the same in all lanes of a chunk that does not cross a multiple of the limit."""
    limit, span = operands[1].constant, runs[0].step * (point.width - 1)
    if limit is None or limit <= 0 or span <= 0 or runs[1].step:
        return None
    return Run(0, runs[0].breaks).with_break(operands[0], point, limit, span)


RULES: dict[str, Rule] = {
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.extsi": _extended,
    "arith.extui": _extended,
    "arith.divui": _quotient,
    "arith.remui": _remainder,
    "arith.cmpi below": _compared,
}
"""Where the elements of operands are not all equal: by the operation's name; comparisons are `x < c` and `x >= c`."""

DIVIDES = frozenset({"arith.divui", "arith.remui"})
"""Operations whose results are simpler in a run than elsewhere."""


def counted(builder: LoopBuilder, first: Value, step: int, lanes: int) -> Value:
    """The lanes first, first + step, ..."""
    steps = builder.iota(lanes, first.type)
    if step != 1:
        steps = builder.mul(steps, builder.constant(step, steps.type))
    return builder.add(builder.broadcast(first, lanes), steps)

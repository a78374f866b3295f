"""Intervals of integers: what a compiler can prove about a kernel, and what it leaves to the launch.

Triton's integers wrap around. If a compiler cannot prove that a sum fits 32 bits, because it depends on arguments or on
the grid, the launcher can: it knows them. The compiler emits a list of steps, each of which gives an interval;
`Launch.fits` evaluates them. The launcher's native code implements the same steps (`launcher/native/guard.h`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

Interval = tuple[int, int]
"""The smallest and the largest value."""


class Op(enum.IntEnum):
    """The operation of a step on its operands `a` and `b`. The native code uses the same numbers."""

    CONSTANT = 0
    """The number `a`."""
    INTEGER = 1
    """Any signed integer of `a` bits."""
    ARGUMENT = 2
    """The kernel's parameter number `a`, a signed integer of `b` bits."""
    PROGRAM = 3
    """The index of a program along axis `a`."""
    PROGRAMS = 4
    """The size of the grid along axis `a`."""
    ADD = 5
    SUBTRACT = 6
    MULTIPLY = 7
    DIVIDE = 8
    """Rounded toward zero."""
    REMAINDER = 9
    """With the sign of the dividend."""
    MINIMUM = 10
    MAXIMUM = 11
    UNION = 12
    """The union of both operands."""
    WRAPPED = 13
    """Step `a` wrapped around to `b` signed bits."""
    UNSIGNED = 14
    """The signed integer `a` of `b` bits, reinterpreted as unsigned."""
    COUNTER = 15
    """A counter that starts at `a` and stays below `b`."""
    INDEX = 16
    """The remainder modulo `b` of values that start at `a` and increase."""
    FITS = 17
    """The condition that step `a` is a signed integer of `b` bits."""

    __hash__ = int.__hash__  # the hash of an enumeration is implemented in Python


Step = tuple[Op, int, int]

OPERANDS = dict.fromkeys(Op, 2) | {
    Op.CONSTANT: 0, Op.INTEGER: 0, Op.ARGUMENT: 0, Op.PROGRAM: 0, Op.PROGRAMS: 0,
    Op.WRAPPED: 1, Op.UNSIGNED: 1, Op.FITS: 1,
}  # fmt: skip
"""How many of `a` and `b`, starting with the first, are numbers of earlier steps."""

MOST_PROGRAMS = (1 << 31) - 1
_TOLD: Interval = (-(1 << 62), 1 << 62)
"""Bounds beyond these count as unknown, so that native code can use 64-bit arithmetic."""


def limits(bits: int) -> Interval:
    """The range of a signed integer."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def plus(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def times(a: Interval, b: Interval) -> Interval:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def wrapped(a: Interval, bits: int) -> Interval:
    whole = limits(bits)
    return a if within(a, whole) else whole


def index(start: Interval, size: Interval) -> Interval:
    """Bounds of a remainder, from the bounds of its first value and of the divisor."""
    last = max(abs(size[0]), abs(size[1]), 1) - 1
    return (0 if start[0] >= 0 else -last), last


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        far = max(abs(a[0]), abs(a[1]))
        return -far, far
    quotients = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(quotients), max(quotients)


def _remainder(a: Interval, b: Interval) -> Interval:
    last = max(abs(b[0]), abs(b[1]), 1) - 1
    return min(0, max(a[0], -last)), max(0, min(a[1], last))


BINARY: dict[Op, Callable[[Interval, Interval], Interval]] = {
    Op.ADD: plus,
    Op.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Op.MULTIPLY: times,
    Op.DIVIDE: _quotient,
    Op.REMAINDER: _remainder,
    Op.MINIMUM: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Op.MAXIMUM: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Op.UNION: lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    Op.COUNTER: lambda a, b: (a[0], max(a[0], b[1] - 1)),
    Op.INDEX: index,
}
UNARY: dict[Op, Callable[[Interval, int], Interval]] = {
    Op.WRAPPED: wrapped,
    Op.UNSIGNED: lambda a, bits: a if a[0] >= 0 else (0, (1 << bits) - 1),
}


class Launch:
    """What is known of a launch: bounds of its integer arguments, and of the grid's sizes."""

    def __init__(self, argument: Callable[[int, int], Interval], programs: Callable[[int], Interval]) -> None:
        self._argument = argument
        """The bounds of a parameter, by its number and bits."""
        self._programs = programs
        """The bounds of the grid's size along an axis."""

    def interval(self, step: Step, before: Sequence[Interval]) -> Interval:
        """The interval of a step other than `FITS`, from those of the steps `before` it."""
        op, a, b = step
        if op in BINARY:
            return BINARY[op](before[a], before[b])
        if op in UNARY:
            return UNARY[op](before[a], b)
        if op == Op.CONSTANT:
            return a, a
        if op == Op.INTEGER:
            return limits(a)
        if op == Op.ARGUMENT:
            return self._argument(a, b)
        low, high = self._programs(a)
        return (low, high) if op == Op.PROGRAMS else (0, max(high - 1, 0))

    def intervals(
        self, steps: Sequence[Step], before: Sequence[Interval | None] = ()
    ) -> list[Interval | None]:
        """The intervals of all steps after those in `before`; None if nothing is known, or a step does not fit."""
        found: list[Any] = list(before)
        for step in steps[len(before) :]:
            op, a, b = step
            told = all(found[operand] is not None for operand in (a, b)[: OPERANDS[op]])
            if told and op == Op.FITS:
                interval = found[a] if within(found[a], limits(b)) else None
            else:
                interval = self.interval(step, found) if told else None
            found.append(interval if interval is not None and within(interval, _TOLD) else None)
        return found[len(before) :]

    def fits(self, steps: Sequence[Step]) -> bool:
        """Whether all conditions among the steps hold."""
        return None not in self.intervals(steps)


ANY_LAUNCH = Launch(lambda number, bits: limits(bits), lambda axis: (1, MOST_PROGRAMS))
MODEST_LAUNCH = Launch(lambda number, bits: (0, 16), lambda axis: (1, 16))
"""A launch in which everything is small: a promise that fails here would almost always fail."""


def needed(steps: Sequence[Step], asked: Sequence[int]) -> list[Step]:
    """The steps that those numbered `asked` depend on, renumbered, with a 32-bit `FITS` for each of the latter."""
    numbers: dict[int, int] = {}
    wanted, pending = set[int](), list(asked)
    while pending:
        number = pending.pop()
        if number not in wanted:
            wanted.add(number)
            op, *operands = steps[number]
            pending += operands[: OPERANDS[op]]
    found: list[Step] = []
    for number in sorted(wanted):
        op, *operands = steps[number]
        count = OPERANDS[op]
        a, b = [numbers[operand] for operand in operands[:count]] + operands[count:]
        numbers[number] = len(found)
        found.append((op, a, b))
    return found + [(Op.FITS, numbers[number], 32) for number in asked]

"""Intervals: against the values that they are to hold."""

from __future__ import annotations

import random

import pytest

from triton_porting_kit.abi.intervals import (
    ANY_LAUNCH,
    BINARY,
    MODEST_LAUNCH,
    OPERANDS,
    UNARY,
    Interval,
    Launch,
    Op,
    Step,
    index,
    limits,
    needed,
    within,
)

SMALL = [(low, high) for low in range(-4, 5) for high in range(low, 5)]


def values(interval: Interval) -> range:
    return range(interval[0], interval[1] + 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATIONS = {
    Op.ADD: lambda a, b: a + b,
    Op.SUBTRACT: lambda a, b: a - b,
    Op.MULTIPLY: lambda a, b: a * b,
    Op.DIVIDE: lambda a, b: truncated(a, b) if b else None,
    Op.REMAINDER: lambda a, b: a - b * truncated(a, b) if b else None,
    Op.MINIMUM: min,
    Op.MAXIMUM: max,
    Op.UNION: lambda a, b: a,
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_an_interval_holds_all_values(op: Op) -> None:
    for a in SMALL:
        for b in SMALL:
            found = [OPERATIONS[op](x, y) for x in values(a) for y in values(b)]
            kept = [value for value in found if value is not None]
            low, high = BINARY[op](a, b)
            assert all(low <= value <= high for value in kept), (op, a, b)
            if kept and op not in (Op.DIVIDE, Op.REMAINDER, Op.UNION):
                assert (low, high) == (min(kept), max(kept))


def test_a_division_by_what_is_positive_is_told_exactly() -> None:
    for a in SMALL:
        for b in [(1, 1), (1, 3), (2, 4)]:
            found = [truncated(x, y) for x in values(a) for y in values(b)]
            assert BINARY[Op.DIVIDE](a, b) == (min(found), max(found))


def test_a_counter_and_an_index() -> None:
    for a in SMALL:
        for b in SMALL:
            counted = [i for first in values(a) for end in values(b) for i in range(first, end)]
            low, high = BINARY[Op.COUNTER](a, b)
            assert all(low <= i <= high for i in counted)
            low, high = index(a, b)
            remainders = [
                (start + i) - size * truncated(start + i, size)
                for start in values(a) for size in values(b) if size for i in range(5)
            ]  # fmt: skip
            assert all(low <= i <= high for i in remainders)


def test_narrow_integers() -> None:
    assert UNARY[Op.WRAPPED]((-4, 7), 4) == (-4, 7)
    assert UNARY[Op.WRAPPED]((-4, 8), 4) == limits(4) == (-8, 7)
    assert UNARY[Op.UNSIGNED]((0, 7), 4) == (0, 7)
    assert UNARY[Op.UNSIGNED]((-1, 7), 4) == (0, 15)


def test_every_operation_is_known() -> None:
    leaves = {Op.CONSTANT, Op.INTEGER, Op.ARGUMENT, Op.PROGRAM, Op.PROGRAMS, Op.FITS}
    assert BINARY.keys() | UNARY.keys() | leaves == set(Op)
    assert {op for op in Op if OPERANDS[op] == 2} == BINARY.keys()


#: program_id(0) * 64 * (parameter 1), in 32 bits.
STEPS: list[Step] = [
    (Op.PROGRAM, 0, 0),
    (Op.CONSTANT, 64, 0),
    (Op.MULTIPLY, 0, 1),
    (Op.ARGUMENT, 1, 32),
    (Op.INTEGER, 32, 0),
    (Op.MULTIPLY, 2, 3),
]


def launch(stride: int, programs: int) -> Launch:
    return Launch(lambda number, bits: (stride, stride), lambda axis: (programs, programs))


def test_a_launch_is_asked() -> None:
    steps = needed(STEPS, [5])
    assert (Op.INTEGER, 32, 0) not in steps
    assert steps[-1] == (Op.FITS, 4, 32)
    assert launch(2**20, 32).fits(steps)
    assert launch(-(2**20), 33).fits(steps)  # the last one begins at -2**31
    assert not launch(2**20, 33).fits(steps)
    assert launch(2**31 - 1, 1).fits(steps)
    assert MODEST_LAUNCH.fits(steps)
    assert not ANY_LAUNCH.fits(steps)


def test_what_is_asked_twice_is_computed_once() -> None:
    steps = needed(STEPS, [5, 2])
    assert steps[:5] == [
        (Op.PROGRAM, 0, 0),
        (Op.CONSTANT, 64, 0),
        (Op.MULTIPLY, 0, 1),
        (Op.ARGUMENT, 1, 32),
        (Op.MULTIPLY, 2, 3),
    ]
    assert steps[5:] == [(Op.FITS, 4, 32), (Op.FITS, 2, 32)]


@pytest.mark.parametrize("far", [(Op.CONSTANT, 2**62 + 1, 0), (Op.INTEGER, 64, 0)])
def test_nothing_is_told_of_what_is_far_away(far: Step) -> None:
    back: list[Step] = [far, (Op.SUBTRACT, 0, 0), (Op.FITS, 1, 32)]
    assert not ANY_LAUNCH.fits(back)


def random_steps(rng: random.Random, parameters: int) -> list[Step]:
    """Steps that use all operations, with a question at their end."""
    steps: list[Step] = []
    for _ in range(rng.randint(2, 14)):
        choices = [op for op in Op if op != Op.FITS and (steps or not OPERANDS[op])]
        op = rng.choice(choices)
        operands = [rng.randrange(len(steps)) for _ in range(OPERANDS[op])]
        if op == Op.CONSTANT:
            operands = [rng.choice((0, 1, -1, 64, rng.randint(-(2**33), 2**33)))]
        elif op == Op.ARGUMENT:
            operands = [rng.randrange(parameters), 32]
        elif op == Op.INTEGER:
            operands = [rng.choice((8, 32))]
        elif op in (Op.PROGRAM, Op.PROGRAMS):
            operands = [rng.randrange(3)]
        elif op in UNARY:
            operands.append(rng.choice((8, 32)))
        steps.append((op, *[*operands, 0][:2]))  # type: ignore[arg-type]
    return [*steps, (Op.FITS, rng.randrange(len(steps)), 32)]


def test_all_values_of_a_launch_fit_where_it_says_so() -> None:
    """Random steps, computed with the numbers of one program each."""
    rng = random.Random(0)
    asked = 0
    for _ in range(3000):
        steps = random_steps(rng, 3)
        arguments = [rng.choice((0, 1, -1, 5, -(2**31), 2**31 - 1)) for _ in range(3)]
        grid = [rng.choice((1, 2, 7, 2**31 - 1)) for _ in range(3)]
        told = Launch(
            lambda number, bits, given=arguments: (given[number],) * 2,  # type: ignore[misc]
            lambda axis, given=grid: (given[axis],) * 2,  # type: ignore[misc]
        )
        if told.fits(steps):
            asked += 1
            for _ in range(5):
                value = evaluate(rng, steps, arguments, grid)
                assert value is None or within((value, value), limits(32)), steps
    assert asked > 500


def evaluate(rng: random.Random, steps: list[Step], arguments: list[int], grid: list[int]) -> int | None:
    """The value that is asked for, of some program; None where a division by zero, or no iteration, comes first."""
    found: list[int] = []
    for op, a, b in steps:
        if op == Op.FITS:
            return found[a]
        value: int | None
        if op == Op.CONSTANT:
            value = a
        elif op == Op.INTEGER:
            value = rng.choice((*limits(a), 0, rng.randint(*limits(a))))
        elif op == Op.ARGUMENT:
            value = arguments[a]
        elif op in (Op.PROGRAM, Op.PROGRAMS):
            value = grid[a] if op == Op.PROGRAMS else rng.choice((0, grid[a] - 1, rng.randrange(grid[a])))
        elif op == Op.WRAPPED:
            value = (found[a] + (1 << (b - 1))) % (1 << b) - (1 << (b - 1))
        elif op == Op.UNSIGNED:
            value = found[a] if found[a] >= 0 else found[a] % (1 << b)
        elif op == Op.COUNTER:
            value = None if found[a] >= found[b] else rng.choice((found[a], found[b] - 1))
        elif op == Op.INDEX:
            start = found[a] + rng.randrange(1000)
            value = None if not found[b] else start - found[b] * truncated(start, found[b])
        elif op == Op.UNION:
            value = found[rng.choice((a, b))]
        else:
            value = OPERATIONS[op](found[a], found[b])
        if value is None:
            return None
        found.append(value)
    raise AssertionError("nothing is asked")

"""Bounds over all programs, against every program's own values."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from native_functions import host, link

from triton_porting_kit.compiler.loops.arithmetic.mode import Mode
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.module_data import ModuleData
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation, Type
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.interval_analysis import Polynomial, Range, Ranges, plus
from triton_porting_kit.compiler.loops.state import Grid, Rules

COUNT = 40
"""Programs."""

MEANING: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "arith.remsi": lambda a, b: a - b * MEANING["arith.divsi"](a, b),
}


class Kernel:
    """Scalars of a kernel with i32 parameters, as they are read from the structured form."""

    def __init__(self, parameters: int) -> None:
        self.builder = LoopBuilder()
        data = ModuleData(self.builder)
        mode = Mode(True, False, data)
        grid = Grid([Value("%count", "i32", 0)] * 3)
        scratch = Value("%scratch", "!llvm.ptr", 0)
        self.lowering = Lowering(self.builder, host(), mode, Rules({}), scratch, grid)
        self.body = Block([])
        self.pid = self._operation("tpk.program_id", [], "i32", axis=SimpleNamespace(value=0))
        self.parameters = []
        for index in range(parameters):
            definition = Def(Type("i32", None), self.body, None)
            place = self.builder.address(Value("%args", "!llvm.ptr", 0), [self.builder.i64(index)], "i32")
            value = self.builder.read(f"llvm.load {place.name} : !llvm.ptr -> i32", "i32", (place,), floor=0)
            self.lowering.scalars[definition] = value
            self.parameters.append(definition)

    def constant(self, value: int, type: str = "i32") -> Def:
        definition = Def(Type(type, None), self.body, None)
        self.lowering.scalars[definition] = self.builder.constant(value, type)
        return definition

    def compute(self, name: str, *operands: Def) -> Def:
        type = "i64" if name == "arith.extsi" else operands[0].type.element
        return self._operation(name, list(operands), type)

    def _operation(self, name: str, operands: list[Def], type: str, **attributes: Any) -> Def:
        handle = SimpleNamespace(attributes=attributes)
        operation = Operation(name, operands, [], [], self.body, handle, 0)
        return Def(Type(type, None), self.body, operation)

    def evaluate(self, values: list[Value], arguments: list[int]) -> list[int]:
        """What these values are before the first of `COUNT` programs."""
        lines = []
        for index, value in enumerate(values):
            wide = self.builder.cast("arith.extui", value, "i64")
            lines.append((index, wide.name))
        text = [*self.builder.text(), "%out = llvm.getelementptr %args[256] : (!llvm.ptr) -> !llvm.ptr, i8"]
        for index, name in lines:
            text.append(f"%o{index} = llvm.getelementptr %out[{8 * index}] : (!llvm.ptr) -> !llvm.ptr, i8")
            text.append(f"llvm.store {name}, %o{index} : i64, !llvm.ptr")
        function = "module { llvm.func @bounds(%args: !llvm.ptr, %count: i32) {\n"
        code = link(function + "\n".join(text) + "\nllvm.return } }", ["bounds"])
        memory = (ctypes.c_int64 * 64)()
        ctypes.memmove(memory, (ctypes.c_int32 * len(arguments))(*arguments), 4 * len(arguments))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.addresses["bounds"])(memory, COUNT)
        return list(memory[32 : 32 + len(values)])


def value_of(kernel: Kernel, definition: Def, pid: int, arguments: list[int]) -> int:
    """What one program computes; integers do not wrap."""
    if definition is kernel.pid:
        return pid
    if definition in kernel.parameters:
        return arguments[kernel.parameters.index(definition)]
    if definition.owner is None:
        return int(kernel.lowering.scalars[definition].constant or 0)
    parts = [value_of(kernel, operand, pid, arguments) for operand in definition.owner.operands]
    return parts[0] if len(parts) == 1 else MEANING[definition.owner.name](*parts)


def grouped(kernel: Kernel) -> tuple[Def, Def]:
    """The row and the column of tiles, in groups of 8 rows: what the tutorials compute. Parameters: how many."""
    rows, columns = kernel.parameters
    eight = kernel.constant(8)
    size = kernel.compute("arith.muli", columns, eight)
    first = kernel.compute("arith.muli", kernel.compute("arith.divsi", kernel.pid, size), eight)
    height = kernel.compute("arith.minsi", kernel.compute("arith.subi", rows, first), eight)
    within = kernel.compute("arith.remsi", kernel.pid, size)
    row = kernel.compute("arith.addi", first, kernel.compute("arith.remsi", within, height))
    return row, kernel.compute("arith.divsi", within, height)


@pytest.mark.parametrize(("rows", "columns"), [(8, 5), (2, 20), (40, 1), (16, 3), (10, 4), (9, 5), (20, 2)])
def test_tiles_in_groups(rows: int, columns: int) -> None:
    kernel = Kernel(2)
    row, column = grouped(kernel)
    ranges = Ranges(kernel.lowering)
    found = [ranges.of(row), ranges.of(column)]
    assert all(found)
    ends = [end for range in found if range is not None for end in (range.low, range.high)]
    *bounds, holds = kernel.evaluate([*ends, ranges.holds], [rows, columns])
    assert holds
    places = [
        (value_of(kernel, row, pid, [rows, columns]), value_of(kernel, column, pid, [rows, columns]))
        for pid in range(COUNT)
    ]
    assert bounds[0] == bounds[2] == 0
    highest = [max(place[i] for place in places) for i in range(2)]
    assert bounds[1] >= highest[0]
    assert bounds[3] >= highest[1]
    if rows % 8 == 0 or rows < 8:  # no group is smaller than the others
        assert rows * columns < COUNT or [bounds[1], bounds[3]] == [rows - 1, columns - 1] == highest


def random_scalar(kernel: Kernel, choose: random.Random, depth: int) -> Def:
    if depth == 0 or choose.random() < 0.15:
        return choose.choice([kernel.pid, *kernel.parameters, kernel.constant(choose.randint(-3, 9))])
    name = choose.choice(list(MEANING))
    return kernel.compute(
        name, random_scalar(kernel, choose, depth - 1), random_scalar(kernel, choose, depth - 1)
    )


@pytest.mark.parametrize("seed", range(160))
def test_no_program_is_beyond_the_bounds(seed: int) -> None:
    choose = random.Random(seed)
    kernel = Kernel(3)
    scalar = random_scalar(kernel, choose, 4)
    ranges = Ranges(kernel.lowering)
    found = ranges.of(scalar)
    assert found is not None
    arguments = [choose.randint(-2, 6), choose.randint(1, 50), choose.randint(1, 7)]
    low, high, holds = kernel.evaluate([found.low, found.high, ranges.holds], arguments)
    if holds:
        values = [value_of(kernel, scalar, pid, arguments) for pid in range(COUNT)]
        assert low <= min(values)
        assert max(values) <= high


def test_most_random_bounds_hold() -> None:
    """So that the test above does not pass for want of bounds."""
    held = 0
    for seed in range(60):
        choose = random.Random(seed)
        kernel = Kernel(3)
        ranges = Ranges(kernel.lowering)
        assert ranges.of(random_scalar(kernel, choose, 4)) is not None
        arguments = [choose.randint(-2, 6), choose.randint(1, 50), choose.randint(1, 7)]
        held += kernel.evaluate([ranges.holds], arguments)[0]
    assert held >= 15


def test_numbers_that_do_not_fit_have_no_bounds() -> None:
    kernel = Kernel(1)
    ranges = Ranges(kernel.lowering)
    ranges.of(kernel.compute("arith.muli", kernel.pid, kernel.parameters[0]))
    fits, wraps = (
        kernel.evaluate([ranges.holds], [factor])[0] for factor in (2**31 // COUNT, 2**31 // (COUNT - 1) + 1)
    )
    assert (fits, wraps) == (1, 0)


def test_a_divisor_of_zero_is_survived() -> None:
    for name in ("arith.divsi", "arith.remsi"):
        kernel = Kernel(1)
        ranges = Ranges(kernel.lowering)
        found = ranges.of(kernel.compute(name, kernel.pid, kernel.parameters[0]))
        assert isinstance(found, Range)
        values = [found.low, found.high, ranges.holds]
        assert kernel.evaluate(values, [0])[-1] == 0
        assert kernel.evaluate(values, [3])[-1] == 1


def test_what_is_not_followed_has_no_bounds() -> None:
    kernel = Kernel(0)
    carried = Def(Type("i32", None), kernel.body, None)
    for definition in (
        carried,
        kernel.compute("arith.xori", kernel.pid, kernel.pid),
        kernel.compute("arith.addi", kernel.pid, carried),
    ):
        assert Ranges(kernel.lowering).of(definition) is None


def test_equal_parts_of_two_sums_cancel() -> None:
    """row * pitch + (count - row) * pitch is count * pitch, wherever row is."""
    kernel = Kernel(2)
    row = kernel.compute("arith.extsi", kernel.compute("arith.muli", kernel.pid, kernel.constant(32)))
    count, pitch = (kernel.compute("arith.extsi", p) for p in kernel.parameters)
    ranges = Ranges(kernel.lowering)
    offset = ranges.expand(kernel.compute("arith.muli", row, pitch))
    left = ranges.expand(kernel.compute("arith.subi", count, row))
    total = plus(offset, ranges.product(left, ranges.expand(pitch)))
    assert total == ranges.product({(count,): 1}, {(pitch,): 1})
    least, most = ranges.least(total), ranges.most(total)
    assert least is not None
    assert most is not None
    assert kernel.evaluate([least, most, ranges.holds], [100, 70]) == [7000, 7000, 1]


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_within_their_bounds(seed: int) -> None:
    choose = random.Random(seed)
    kernel = Kernel(2)
    wide = [kernel.compute("arith.extsi", d) for d in (kernel.pid, *kernel.parameters)]
    terms: Polynomial = {}
    for _ in range(4):
        factors = tuple(sorted(choose.choices(wide, k=choose.randint(0, 2)), key=wide.index))
        terms = plus(terms, {factors: choose.randint(-5, 5)})
    ranges = Ranges(kernel.lowering)
    least, most = ranges.least(terms), ranges.most(terms)
    assert least is not None
    assert most is not None
    arguments = [choose.randint(0, 9), choose.randint(0, 9)]
    low, high, holds = kernel.evaluate([least, most, ranges.holds], arguments)
    assert holds
    values = []
    for pid in range(COUNT):
        total = 0
        for factors, count in terms.items():
            for factor in factors:
                count *= value_of(kernel, factor, pid, arguments)
            total += count
        values.append(total)
    assert low <= min(values)
    assert max(values) <= high
    if sum((wide[0] in factors) for factors in terms) <= 1:
        assert (low, high) == (min(values), max(values))


def test_the_order_of_factors_is_that_in_which_they_are_met() -> None:
    """And not that of their places in memory: the same kernel is compiled to the same text."""
    kernel = Kernel(0)
    ranges = Ranges(kernel.lowering)
    met = [kernel.constant(number, "i64") for number in range(2, 40)]
    random.Random(1).shuffle(met)
    for first, second in pairwise(met):
        assert list(ranges.product({(first,): 1}, {(second,): 1})) == [(first, second)]
        assert list(ranges.product({(second,): 1}, {(first,): 1})) == [(first, second)]

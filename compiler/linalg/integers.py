"""Integers of a structured kernel as polynomials, and the promises of a launch under which they are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from triton_porting_kit.abi.intervals import (
    ANY_LAUNCH,
    MODEST_LAUNCH,
    Interval,
    Op,
    Step,
    limits,
    needed,
    within,
)
from triton_porting_kit.compiler.dialect import operations as tpk
from triton_porting_kit.compiler.structured.poly import Poly
from triton_porting_kit.toolchain.mlir import ir

from .nests import Nest, constant


class Unknown(Exception):
    """A value, or a bound, is not of a form that can be proved."""


_SUMS: Mapping[str, Callable[[Poly, Poly], Poly]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
}
_QUOTIENTS: Mapping[str, Callable[[int, int], int]] = {
    "arith.divsi": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.floordivsi": lambda a, b: a // b,
}
_CASTS = ("arith.extsi", "arith.index_cast")


class Integers:
    """Scalars as polynomials of values that are computed outside of a nest.

    Sums of i64 are taken for exact, as the structured form's own. Those of i32 that the nest looks into are exact
    if `wrapping` do not wrap around; others are names.
    """

    def __init__(self, nest: Nest, symbols: Iterable[Any]) -> None:
        self._nest = nest
        self._names = {value: number for number, value in enumerate(symbols)}
        self.wrapping: dict[Any, None] = {}
        """Sums of i32 that are taken for exact."""

    @property
    def symbols(self) -> list[Any]:
        """The values that polynomials have numbers for."""
        return list(self._names)

    def symbol(self, value: Any) -> Poly:
        return Poly.scalar(self._names.setdefault(value, len(self._names)))

    def poly(self, value: Any, counters: Mapping[Any, int], made: dict[Any, Poly]) -> Poly:
        """A scalar, where loops have these counters. `made` keeps what was asked for them. Raises `Unknown`."""
        found = made.get(value)
        if found is None:
            found = made[value] = self._made(value, counters, made)
        return found

    def _made(self, value: Any, counters: Mapping[Any, int], made: dict[Any, Poly]) -> Poly:
        if value in counters:
            return Poly.constant(counters[value])
        number = constant(value)
        if number is not None:
            return Poly.constant(number)
        if value in self._names or isinstance(value.owner, ir.Block):
            return self._named(value)
        operation = value.owner.operation
        seen, wide = self._nest.sees(value), str(value.type) in ("i64", "index")
        if operation.name in _CASTS and wide:
            return self.poly(operation.operands[0], counters, made)
        if operation.name in _SUMS and (wide or (seen and str(value.type) == "i32")):
            a, b = (self.poly(operand, counters, made) for operand in operation.operands)
            total = _SUMS[operation.name](a, b)
            if not wide and total.value is None:
                self.wrapping[value] = None
            return total
        if operation.name in _QUOTIENTS and seen:
            x, y = (self.poly(operand, counters, made).value for operand in operation.operands)
            if x is not None and y is not None and x >= 0 and y > 0:
                return Poly.constant(_QUOTIENTS[operation.name](x, y))
        return self._named(value)

    def _named(self, value: Any) -> Poly:
        if value in self._nest.inside and value not in self._names:
            raise Unknown
        return self.symbol(value)


_BINARY = {
    "arith.addi": Op.ADD, "arith.subi": Op.SUBTRACT, "arith.muli": Op.MULTIPLY, "arith.divsi": Op.DIVIDE,
    "arith.remsi": Op.REMAINDER, "arith.minsi": Op.MINIMUM, "arith.maxsi": Op.MAXIMUM,
}  # fmt: skip
DEPTH = 60
"""Most operations to follow from a value to its operands."""


class Promises:
    """Steps (see `abi.intervals`) with which a launch verifies that sums of a structured kernel fit 32 bits."""

    def __init__(self, kernel: Any) -> None:
        self._arguments = list(kernel.regions[0].blocks[0].arguments)
        self._steps: list[Step] = []
        self._bounds: list[Interval] = []
        self._numbers: dict[Step, int] = {}
        self._values: dict[Any, int] = {}

    def of(self, values: Iterable[Any]) -> list[Step]:
        """The steps that verify that none of these sums of i32 wraps around, without those that never can.

        Raises `Unknown` if a modest launch would not fulfil them.
        """
        asked = [self._exact(value, 0) for value in values]
        asked = [number for number in asked if not within(self._bounds[number], limits(32))]
        modest = MODEST_LAUNCH.intervals(self._steps)
        for number in asked:
            found = modest[number]
            if found is None or not within(found, limits(32)):
                raise Unknown
        return needed(self._steps, asked) if asked else []

    def _step(self, op: Op, a: int = 0, b: int = 0) -> int:
        step = (op, a, b)
        if step not in self._numbers:
            self._numbers[step] = len(self._steps)
            self._steps.append(step)
            self._bounds.append(ANY_LAUNCH.interval(step, self._bounds))
        return self._numbers[step]

    def _exact(self, value: Any, depth: int) -> int:
        """The step of a value, if it does not wrap around."""
        if value not in self._values:
            self._values[value] = self._made(value, depth)
        return self._values[value]

    def _made(self, value: Any, depth: int) -> int:
        bits = 64 if str(value.type) == "index" else ir.IntegerType(value.type).width
        number = constant(value)
        if number is not None:
            return self._step(Op.CONSTANT, number)
        if isinstance(value.owner, ir.Block):
            return self._argument(value, bits, depth)
        operation = value.owner.operation
        if depth < DEPTH:
            if operation.name in _BINARY:
                return self._step(_BINARY[operation.name], *(self._of(v, depth) for v in operation.operands))
            if operation.name == tpk.ProgramId.OPERATION_NAME:
                return self._step(Op.PROGRAM, tpk.ProgramId(operation).axis)
            if operation.name == tpk.NumPrograms.OPERATION_NAME:
                return self._step(Op.PROGRAMS, tpk.NumPrograms(operation).axis)
            if operation.name in (*_CASTS, "arith.trunci"):
                return self._of(operation.operands[0], depth)
        return self._step(Op.INTEGER, bits)

    def _of(self, value: Any, depth: int) -> int:
        number = self._exact(value, depth + 1)
        bits = 64 if str(value.type) == "index" else ir.IntegerType(value.type).width
        return number if within(self._bounds[number], limits(bits)) else self._step(Op.WRAPPED, number, bits)

    def _argument(self, value: Any, bits: int, depth: int) -> int:
        if value in self._arguments and bits >= 8:
            return self._step(Op.ARGUMENT, self._arguments.index(value), bits)
        holder = value.owner.owner
        if holder.name == "scf.for" and value.arg_number == 0 and depth < DEPTH:
            return self._step(Op.COUNTER, *(self._of(bound, depth) for bound in list(holder.operands)[:2]))
        return self._step(Op.INTEGER, bits)

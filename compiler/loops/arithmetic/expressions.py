"""Arithmetic on scalars and vectors with Python's operators, for functions that take many operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, float_literal, vector_type


class Lanes:
    """A value and the builder that emits operations on it.

    Python numbers become constants of the value's type. Right shifts are logical, integer comparisons signed. Float
    comparisons are ordered (a NaN is neither less, equal nor greater), except ``!=``.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder: LoopBuilder, value: Value) -> None:
        self.builder = builder
        self.value = value

    # --- types -----------------------------------------------------------------------------------

    @property
    def element(self) -> str:
        return self.value.element

    @property
    def is_float(self) -> bool:
        return self.element.startswith("f")

    @property
    def bits(self) -> int:
        """Width of the element type."""
        return int(self.element[1:])

    def constant(self, number: int | float | str) -> Lanes:
        """A constant of this value's type."""
        return Lanes(self.builder, self.builder.constant(number, self.value.type))

    def cast(self, operation: str, element: str) -> Lanes:
        """Convert to another element type by an ``arith`` cast."""
        type = vector_type(element, self.value.lanes)
        return Lanes(self.builder, self.builder.cast(operation, self.value, type))

    def pattern(self) -> Lanes:
        """Bitcast floats to integers, or integers to floats."""
        return self.cast("arith.bitcast", f"{'i' if self.is_float else 'f'}{self.bits}")

    # --- operations ------------------------------------------------------------------------------

    def _lift(self, other: Operand) -> Value:
        return other.value if isinstance(other, Lanes) else self.builder.constant(other, self.value.type)

    def _binary(self, name: str, a: Value, b: Value) -> Lanes:
        return Lanes(self.builder, self.builder.binary(f"arith.{name}", a, b))

    def _arithmetic(self, name: str, other: Operand, swapped: bool = False) -> Lanes:
        a, b = self.value, self._lift(other)
        if swapped:
            a, b = b, a
        return self._binary(name + ("f" if self.is_float else "i"), a, b)

    def __add__(self, other: Operand) -> Lanes:
        return self._arithmetic("add", other)

    def __radd__(self, other: Operand) -> Lanes:
        return self._arithmetic("add", other)

    def __sub__(self, other: Operand) -> Lanes:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: Operand) -> Lanes:
        return self._arithmetic("sub", other, swapped=True)

    def __mul__(self, other: Operand) -> Lanes:
        return self._arithmetic("mul", other)

    def __rmul__(self, other: Operand) -> Lanes:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Operand) -> Lanes:
        return self._arithmetic("div", other)

    def __rtruediv__(self, other: Operand) -> Lanes:
        return self._arithmetic("div", other, swapped=True)

    def __neg__(self) -> Lanes:
        return self.unary("arith.negf") if self.is_float else 0 - self

    def __and__(self, other: Operand) -> Lanes:
        return self._binary("andi", self.value, self._lift(other))

    def __or__(self, other: Operand) -> Lanes:
        return self._binary("ori", self.value, self._lift(other))

    def __xor__(self, other: Operand) -> Lanes:
        return self._binary("xori", self.value, self._lift(other))

    def __invert__(self) -> Lanes:
        return self ^ (1 if self.element == "i1" else -1)

    def __lshift__(self, other: Operand) -> Lanes:
        return self._binary("shli", self.value, self._lift(other))

    def __rshift__(self, other: Operand) -> Lanes:
        return self._binary("shrui", self.value, self._lift(other))

    def shift_signed(self, other: Operand) -> Lanes:
        return self._binary("shrsi", self.value, self._lift(other))

    def compare(self, predicate: str, other: Operand) -> Lanes:
        """``arith.cmpf`` or ``arith.cmpi``."""
        a, b = self.value, self._lift(other)
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        type = vector_type("i1", a.lanes)
        text = f"{name} {predicate}, {a.name}, {b.name} : {a.type}"
        return Lanes(self.builder, self.builder.pure(text, type, (a, b)))

    def __lt__(self, other: Operand) -> Lanes:
        return self.compare("olt" if self.is_float else "slt", other)

    def __le__(self, other: Operand) -> Lanes:
        return self.compare("ole" if self.is_float else "sle", other)

    def __gt__(self, other: Operand) -> Lanes:
        return self.compare("ogt" if self.is_float else "sgt", other)

    def __ge__(self, other: Operand) -> Lanes:
        return self.compare("oge" if self.is_float else "sge", other)

    def equals(self, other: Operand) -> Lanes:
        return self.compare("oeq" if self.is_float else "eq", other)

    def differs(self, other: Operand) -> Lanes:
        return self.compare("une" if self.is_float else "ne", other)

    def is_nan(self) -> Lanes:
        return self.compare("uno", self)

    def select(self, a: Operand, b: Operand) -> Lanes:
        """Lanes of `a` where this boolean is set, else of `b`. At least one of the two must be a `Lanes`."""
        like = a if isinstance(a, Lanes) else b
        assert isinstance(like, Lanes)
        chosen = self.builder.select(self.value, like._lift(a), like._lift(b))
        return Lanes(self.builder, chosen)

    def unary(self, name: str) -> Lanes:
        """An operation of one operand that keeps the type, such as ``math.sqrt``."""
        text = f"{name} {self.value.name} : {self.value.type}"
        return Lanes(self.builder, self.builder.pure(text, self.value.type, (self.value,)))

    def fma(self, b: Operand, c: Operand) -> Lanes:
        """self * b + c, rounded once."""
        operands = (self.value, self._lift(b), self._lift(c))
        text = f"math.fma {', '.join(value.name for value in operands)} : {self.value.type}"
        return Lanes(self.builder, self.builder.pure(text, self.value.type, operands))

    def absolute(self) -> Lanes:
        return self.unary("math.absf" if self.is_float else "math.absi")

    def with_sign_of(self, other: Lanes) -> Lanes:
        text = f"math.copysign {self.value.name}, {other.value.name} : {self.value.type}"
        return Lanes(self.builder, self.builder.pure(text, self.value.type, (self.value, other.value)))

    def smaller(self, other: Operand) -> Lanes:
        """The minimum. If one operand is NaN, the other one."""
        return self._binary("minnumf" if self.is_float else "minsi", self.value, self._lift(other))

    def larger(self, other: Operand) -> Lanes:
        return self._binary("maxnumf" if self.is_float else "maxsi", self.value, self._lift(other))


Operand: TypeAlias = Lanes | int | float


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Evaluate by Horner's scheme; the coefficient of the highest power comes first."""
    result = x.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result.fma(x, coefficient)
    return result


def intrinsic(name: str, result: str, *operands: Lanes) -> Lanes:
    """LLVM's intrinsic `name`, overloaded by the result type and, if it differs, the operand type."""
    builder, lanes = operands[0].builder, operands[0].value.lanes
    type = vector_type(result, lanes)
    suffixes = dict.fromkeys((result, operands[0].element))
    full = name + "".join(f".v{lanes}{s}" if lanes > 1 else f".{s}" for s in suffixes)
    names = ", ".join(operand.value.name for operand in operands)
    types = ", ".join(operand.value.type for operand in operands)
    text = f'llvm.call_intrinsic "{full}"({names}) : ({types}) -> {type}'
    return Lanes(builder, builder.pure(text, type, [operand.value for operand in operands]))


def looked_up(table: Sequence[float], lane: Lanes) -> Lanes:
    """The entries of a table of f32 that fills a register, selected by the lowest bits of each lane.

    By AVX-512's VPERMPS of 16 lanes, or AVX2's of 8 (`CpuTarget.lookup_lanes`).
    """
    builder, lanes = lane.builder, lane.value.lanes
    type = vector_type("f32", lanes)
    literals = ", ".join(float_literal(entry, "f32") for entry in table)
    entries = builder.pure(f"arith.constant dense<[{literals}]> : {type}", type, ())
    instruction = {16: "avx512.permvar.sf.512", 8: "avx2.permps"}[lanes]
    text = (
        f'llvm.call_intrinsic "llvm.x86.{instruction}"({entries.name}, {lane.value.name}) '
        f": ({type}, {lane.value.type}) -> {type}"
    )
    return Lanes(builder, builder.pure(text, type, (entries, lane.value)))

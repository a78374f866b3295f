"""Division and remainder, on scalars and lanes.

CPUs have no division of integer lanes: LLVM takes them apart. Lanes of 32 bits are divided as doubles instead, by a
reciprocal, which is computed once where the divisor is the same for all.

For integers a and b below 2^32, trunc(a * r) with r = (1 + 2^-40) / b, both rounded to doubles, is the quotient. With
the roundings, the product is a / b times a factor between 1 and 1 + 2^-39. If a / b is an integer, the product is not
below it and less than 1 above it. If not, a / b lies 1 / b or more below the next integer, and the product exceeds it
by at most a / b * 2^-39 < 1 / b.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.arithmetic.mode import Emit, Mode
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type

INTEGER_DIVISIONS = (
    "arith.divsi",
    "arith.remsi",
    "arith.divui",
    "arith.remui",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.floordivsi",
)
_ABOVE_ONE = 1 + 2.0**-40
_JUST_ABOVE_ONE = 1 + 2.0**-52
_SLOW_LANES = 16


def division(name: str) -> Emit:
    """Emits the operation `name` of `INTEGER_DIVISIONS`.

    x86 traps on a zero divisor and on the most negative value divided by -1. Lanes whose result is unused may hold
    both, so such divisors are replaced by 1.
    """
    signed = name.endswith("si")
    as_doubles = name in ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")

    def emit(builder: LoopBuilder, mode: Mode, operation: Operation, values: list[Value]) -> list[Value]:
        dividend, divisor = values
        if isinstance(divisor.constant, int) and divisor.constant not in (0, -1):
            return [builder.binary(name, dividend, divisor)]
        type = divisor.type
        bad = builder.compare("eq", divisor, builder.constant(0, type))
        one = builder.constant(1, type)
        wanted = mode.divides_signed if signed else mode.divides_unsigned
        if as_doubles and wanted and dividend.lanes > 1 and dividend.element == "i32":
            return [_of_doubles(builder, name, dividend, builder.select(bad, one, divisor))]
        if signed:
            bad = _or(builder, bad, _overflows(builder, dividend, divisor))
        return [builder.binary(name, dividend, builder.select(bad, one, divisor))]

    return emit


def quotient(builder: LoopBuilder, mode: Mode, a: Value, b: Value) -> Value:
    """The quotient of floats; of vectors of f32 by a scalar from outside the loop, by its reciprocal as a double.

    Rounds as a division does. The quotient of floats of 24 bits is the middle of two neighbouring floats, which happens
    among the subnormals, or differs from it by 2^-49 of itself or more. The product with the reciprocal, which is made
    too large by 2^-52 of itself, is the quotient or exceeds it by less than 2^-50 of itself. Of its first 50 bits, such
    a middle remains, and nothing else comes to lie on one or moves across one.
    """
    divisor = b.scalar
    if not mode.divides_slowly or divisor is None or b.lanes < _SLOW_LANES or b.element != "f32":
        return builder.binary("arith.divf", a, b)
    if divisor.level >= builder.level or a.level < builder.level:
        return builder.binary("arith.divf", a, b)
    wide = vector_type("f64", a.lanes)
    above_one = builder.constant(_JUST_ABOVE_ONE, "f64")
    reciprocal = builder.binary("arith.divf", above_one, builder.cast("arith.extf", divisor, "f64"))
    product = builder.binary(
        "arith.mulf", builder.cast("arith.extf", a, wide), builder.broadcast(reciprocal, a.lanes)
    )
    kept = builder.constant(-8, vector_type("i64", a.lanes))
    bits = builder.binary("arith.andi", builder.cast("arith.bitcast", product, kept.type), kept)
    product = builder.cast("arith.bitcast", bits, wide)
    return builder.cast("arith.truncf", product, a.type)


def _overflows(builder: LoopBuilder, dividend: Value, divisor: Value) -> Value:
    bits = types.BITS[divisor.element] if divisor.element != "i1" else 1
    lowest = builder.compare("eq", dividend, builder.constant(-(1 << (bits - 1)), dividend.type))
    minus_one = builder.compare("eq", divisor, builder.constant(-1, divisor.type))
    type = lowest.type
    return builder.pure(f"arith.andi {lowest.name}, {minus_one.name} : {type}", type, (lowest, minus_one))


def _or(builder: LoopBuilder, a: Value, b: Value) -> Value:
    return builder.pure(f"arith.ori {a.name}, {b.name} : {a.type}", a.type, (a, b))


def _of_doubles(builder: LoopBuilder, name: str, dividend: Value, divisor: Value) -> Value:
    """Quotients or remainders of lanes of i32 by a divisor that is not zero.

    The lowest number divided by -1 leaves the range of the conversion, whose result, on CPUs that are used for this, is
    the lowest number again, or anything; it is undefined in Triton.
    """
    letter = "s" if name.endswith("si") else "u"
    wide = vector_type("f64", dividend.lanes)
    a, b = (builder.cast(f"arith.{letter}itofp", value, wide) for value in (dividend, divisor))
    reciprocal = builder.binary("arith.divf", builder.constant(_ABOVE_ONE, wide), b)
    product = builder.binary("arith.mulf", a, reciprocal)
    quotient = builder.cast(f"arith.fpto{letter}i", product, dividend.type)
    if name.startswith("arith.div"):
        return quotient
    return builder.sub(dividend, builder.mul(quotient, divisor))

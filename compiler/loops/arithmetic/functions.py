"""Elementary functions on f32 scalars and vectors, expanded into arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type

# e^r on |r| <= ln(2)/2: a minimax fit of the relative error (Lawson's algorithm), highest power first. Its last two
# coefficients are 1.
_EXP = (
    0.0013820946915075183,
    0.008368683978915215,
    0.04166826605796814,
    0.1666652113199234,
    0.4999999403953552,
    1.0,
    1.0,
)

# 2^r on |r| <= 1/2: a minimax fit of the relative error (Lawson's algorithm). All coefficients but the last are rounded
# to single precision one after another; the last is 1.
_EXP2 = (
    0.0001532646274426952,
    0.0013390806270763278,
    0.009618505835533142,
    0.05550359934568405,
    0.24022647738456726,
    0.6931471824645996,
    1.0,
)

_INTEGERS = 3.0 * 2**22
"""From this number on, to the next power of two, floats are integers; the lowest 22 bits of its own pattern are 0."""
_BIAS = 127
"""What the exponent of a float is stored with."""
_VANISHING = -150.9
"""A power of two with this exponent is rounded to 0. The exponent is not halfway between two integers."""
_LIFT = 24
"""Results that are not above 1 are computed with exponents that are so much larger. So no factor is denormal."""

_SCALEF_LANES = 16
_ROUNDING_AS_SET = 4
"""The operand of AVX-512 instructions that means: use the current rounding mode."""

# ln(2) in two parts. The first has 16 bits, so its product with an integer up to 2^8 is exact (Cody and Waite, Software
# Manual for the Elementary Functions, 1980).
_LN2_HIGH = 45426 / 65536
_LN2_LOW = math.log(2) - _LN2_HIGH


def _fma(builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
    return builder.pure(f"math.fma {a.name}, {b.name}, {c.name} : {a.type}", a.type, (a, b, c))


def _compare(builder: LoopBuilder, predicate: str, a: Value, b: Value) -> Value:
    type = vector_type("i1", a.lanes)
    return builder.pure(f"arith.cmpf {predicate}, {a.name}, {b.name} : {a.type}", type, (a, b))


def exp(
    builder: LoopBuilder,
    x: Value,
    has_scalef: bool,
    *,
    moderate: bool = False,
    no_positive: bool = False,
) -> Value:
    """e**x, within 1 ulp; 0 below -104, infinity above 88.73, NaN kept.

    `moderate`: |x| is at most 80. `no_positive`: x is not above 0.
    """

    def small(x: Value, whole: Value, unit: float) -> Value:
        r = _fma(builder, whole, builder.constant(-_LN2_HIGH, x.type), x)
        r = _fma(builder, whole, builder.constant(-_LN2_LOW, x.type), r)
        return exp_of_small(builder, r, unit)

    octaves = math.log2(math.e)
    if not moderate:
        return exponential(builder, x, small, octaves, -103.98, 89.0, has_scalef, no_positive=no_positive)
    if _scales(x, has_scalef):
        whole = _whole(builder, x, octaves)
        return _scaled(builder, small(x, whole, 1.0), whole)
    return _by_one_factor(builder, x, small, octaves, 0)


def exp2(builder: LoopBuilder, x: Value, has_scalef: bool, *, no_positive: bool = False) -> Value:
    """2**x, within 1 ulp; 0 below -150, infinity from 128, NaN kept. `no_positive`: x is not above 0."""
    if _scales(x, has_scalef):
        r = _reduced(builder, x)  # 0 for infinity
        power = _scaled(builder, _polynomial(builder, r, _EXP2), builder.binary("arith.subf", x, r))
        stays = _compare(builder, "uge", x, builder.constant(-150.0, x.type))
        return builder.select(stays, power, builder.constant(0.0, x.type))

    def small(x: Value, whole: Value, unit: float) -> Value:
        return _polynomial(builder, builder.binary("arith.subf", x, whole), _EXP2, unit)

    return exponential(builder, x, small, 1.0, -150.0, 128.0, has_scalef, no_positive=no_positive)


def _reduced(builder: LoopBuilder, x: Value) -> Value:
    """What rounding to the nearest integer takes from x; 0 for infinity, NaN kept. By AVX-512's VREDUCEPS."""
    nearest, every = builder.constant(0, "i32"), builder.constant(-1, "i16")
    as_set, type = builder.constant(_ROUNDING_AS_SET, "i32"), x.type
    return builder.pure(
        f'llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"({x.name}, {nearest.name}, {x.name}, '
        f"{every.name}, {as_set.name}) : ({type}, i32, {type}, i16, i32) -> {type}",
        type,
        (x, nearest, every, as_set),
    )


def _shifted(builder: LoopBuilder, x: Value, octaves: float, offset: int, unit: int = 1) -> Value:
    """x * octaves + offset * unit, rounded to a multiple of `unit`, 1 or 2, for products below 2^21.

    The lowest 9 bits of the float hold the quotient by `unit`. From 2^23 on, floats are integers, and from 2^24 on even
    ones: so it takes one operation, and to take the large number off again takes another.
    """
    large = builder.constant((_INTEGERS + offset) * unit, x.type)
    if octaves == 1:
        return builder.binary("arith.addf", x, large)
    return _fma(builder, x, builder.constant(octaves, x.type), large)


def _whole(builder: LoopBuilder, x: Value, octaves: float) -> Value:
    """x * octaves, rounded to an integer where that is below 2^21."""
    return _unshifted(builder, _shifted(builder, x, octaves, 0), 0)


def _unshifted(builder: LoopBuilder, shifted: Value, offset: int) -> Value:
    return builder.binary("arith.subf", shifted, builder.constant(_INTEGERS + offset, shifted.type))


def _polynomial(builder: LoopBuilder, x: Value, coefficients: tuple[float, ...], unit: float = 1.0) -> Value:
    """Evaluate a polynomial times `unit`; the coefficient of the highest power comes first."""
    value = builder.constant(coefficients[0] * unit, x.type)
    for coefficient in coefficients[1:]:
        value = _fma(builder, value, x, builder.constant(coefficient * unit, x.type))
    return value


Small = Callable[[Value, Value, float], Value]
"""``small(x, n, unit)`` is b**x / 2**n * unit, where that is about `unit`, a power of two."""


def exponential(
    builder: LoopBuilder,
    x: Value,
    small: Small,
    octaves: float,
    lowest: float,
    highest: float,
    has_scalef: bool,
    *,
    no_positive: bool = False,
) -> Value:
    """b**x = 2**(octaves x), of which `small` computes what is left without a power of two.

    The result is 0 from `lowest`, or a little below, on. From `highest` on it is the result at `highest`, which is
    infinite. `no_positive`: x is not above 0.
    """
    # Scaling down to a denormal is slow on many CPUs, and masked lanes of a softmax hold -infinity.
    if _scales(x, has_scalef):
        # The select becomes a mask, which costs nothing: lanes with result 0 are not scaled, whatever they hold.
        stays = _compare(builder, "uge", x, builder.constant(lowest, x.type))
        if not no_positive:
            x = _at_most(builder, x, highest)
        whole = _whole(builder, x, octaves)
        power = _scaled(builder, small(x, whole, 1.0), whole)
        return builder.select(stays, power, builder.constant(0.0, x.type))
    # So small that one of the factors below is 0: then nothing denormal occurs.
    least = builder.constant(_VANISHING / octaves, x.type)
    x = builder.select(_compare(builder, "olt", x, least), least, x)
    if no_positive:
        return _by_one_factor(builder, x, small, octaves, _LIFT)
    x = _at_most(builder, x, highest)
    return _by_two_factors(builder, x, small, octaves)


def _at_most(builder: LoopBuilder, x: Value, highest: float) -> Value:
    """The smaller of both; NaN is kept."""
    upper = builder.constant(highest, x.type)
    return builder.select(_compare(builder, "ogt", x, upper), upper, x)


def _by_one_factor(builder: LoopBuilder, x: Value, small: Small, octaves: float, lift: int) -> Value:
    """b**x, where 2**(n + lift), with the integer n nearest to `octaves` x, is a normal number or 2**-127, which
    counts as 0.

    The rest of the power of two is part of the coefficients, so that the result is rounded once, even to a denormal.
    """
    shifted = _shifted(builder, x, octaves, _BIAS + lift)
    value = small(x, _unshifted(builder, shifted, _BIAS + lift), 2.0**-lift)
    return builder.binary("arith.mulf", value, _power(builder, _pattern(builder, shifted)))


def _by_two_factors(builder: LoopBuilder, x: Value, small: Small, octaves: float) -> Value:
    """b**x, where the integer n nearest to `octaves` x is between -151 and 128; 0 if it is -151.

    The factors are 2**(n - m) and 2**m, where m is the integer nearest to n / 2 + 51, give or take one. So 2**m is
    between 2**-24 and 2**116, the other one between 2**-126 and 2**14, or 2**-127, which counts as 0, if n is -151.
    Only the last product rounds, unless n is -150, where the result is 0 or 2**-149.
    """
    shifted = _shifted(builder, x, octaves, 2 * _BIAS)
    half = _shifted(builder, x, octaves, _BIAS + 51, unit=2)
    value = small(x, _unshifted(builder, shifted, 2 * _BIAS), 1.0)
    second = _pattern(builder, half)
    first = builder.binary("arith.subi", _pattern(builder, shifted), second)
    for factor in (first, second):
        value = builder.binary("arith.mulf", value, _power(builder, factor))
    return value


def _pattern(builder: LoopBuilder, value: Value) -> Value:
    return builder.cast("arith.bitcast", value, vector_type("i32", value.lanes))


def _power(builder: LoopBuilder, biased: Value) -> Value:
    """2**n, of the lowest 9 bits of an integer, which hold n + 127."""
    bits = builder.binary("arith.shli", biased, builder.constant(23, biased.type))
    return builder.cast("arith.bitcast", bits, vector_type("f32", biased.lanes))


def exp_of_small(builder: LoopBuilder, r: Value, unit: float) -> Value:
    """e**r * unit for |r| <= log(2)/2."""
    return _polynomial(builder, r, _EXP, unit)


def _scales(value: Value, has_scalef: bool) -> bool:
    """Whether the value fills a register that AVX-512's VSCALEFPS can scale."""
    return has_scalef and value.is_vector and value.lanes == _SCALEF_LANES


def _scaled(builder: LoopBuilder, value: Value, exponent: Value) -> Value:
    """value * 2**exponent by AVX-512's VSCALEFPS, rounded once even if the result is denormal."""
    every, as_set = builder.constant(-1, "i16"), builder.constant(_ROUNDING_AS_SET, "i32")
    type = value.type
    return builder.pure(
        f'llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({value.name}, {exponent.name}, {value.name}, '
        f"{every.name}, {as_set.name}) : ({type}, {type}, {type}, i16, i32) -> {type}",
        type,
        (value, exponent, every, as_set),
    )


def bf16_to_f32(builder: LoopBuilder, value: Value) -> Value:
    """Convert bfloat16 bit patterns (i16) to f32."""
    integers = vector_type("i32", value.lanes)
    bits = builder.cast("arith.extui", value, integers)
    shifted = builder.binary("arith.shli", bits, builder.constant(16, integers))
    return builder.cast("arith.bitcast", shifted, vector_type("f32", value.lanes))


def round_to_bf16(builder: LoopBuilder, value: Value, *, of_bf16: bool = False) -> Value:
    """Round f32 to bfloat16 bit patterns (i16), to nearest even.

    Denormals and NaN are kept; x86's own instruction flushes. `of_bf16`: the value is a sum, difference or product of
    bf16 where `CpuTarget.keeps_payloads`. NaN then has a lower half of zeros, which rounding cannot carry from.
    """
    integers = vector_type("i32", value.lanes)
    bits = builder.cast("arith.bitcast", value, integers)
    sixteen = builder.constant(16, integers)
    odd = builder.binary(
        "arith.andi", builder.binary("arith.shrui", bits, sixteen), builder.constant(1, integers)
    )
    bias = builder.binary("arith.addi", odd, builder.constant(0x7FFF, integers))
    chosen = builder.binary("arith.addi", bits, bias)
    if not of_bf16:
        quiet = builder.binary("arith.ori", bits, builder.constant(0x400000, integers))
        chosen = builder.select(_compare(builder, "uno", value, value), quiet, chosen)
    high = builder.binary("arith.shrui", chosen, sixteen)
    return builder.cast("arith.trunci", high, vector_type("i16", value.lanes))


def upper_half(builder: LoopBuilder, value: Value) -> Value:
    """The upper 16 bits (i16) of f32: the bfloat16 pattern of a number that bfloat16 represents exactly."""
    integers = vector_type("i32", value.lanes)
    bits = builder.cast("arith.bitcast", value, integers)
    high = builder.binary("arith.shrui", bits, builder.constant(16, integers))
    return builder.cast("arith.trunci", high, vector_type("i16", value.lanes))


def f16_to_f32(builder: LoopBuilder, value: Value) -> Value:
    """Convert half-precision bit patterns (i16) to f32."""
    single, integers = vector_type("f32", value.lanes), vector_type("i32", value.lanes)
    if builder.converts_f16:
        return builder.cast(
            "arith.extf", builder.cast("arith.bitcast", value, vector_type("f16", value.lanes)), single
        )
    bits = builder.cast("arith.extui", value, integers)

    def part(mask: int, shift: int) -> Value:
        kept = builder.binary("arith.andi", bits, builder.constant(mask, integers))
        return builder.binary("arith.shli", kept, builder.constant(shift, integers))

    # Move exponent and fraction to their positions in an f32, whose exponent bias is larger by 112.
    scaled = builder.cast("arith.bitcast", part(0x7FFF, 13), single)
    magnitude = builder.binary("arith.mulf", scaled, builder.constant(2.0**112, single))
    magnitude_bits = builder.cast("arith.bitcast", magnitude, integers)
    special = builder.compare("uge", magnitude_bits, builder.constant(0x47800000, integers))
    infinite = builder.binary("arith.ori", magnitude_bits, builder.constant(0x7F800000, integers))
    chosen = builder.select(special, infinite, magnitude_bits)
    return builder.cast("arith.bitcast", builder.binary("arith.ori", chosen, part(0x8000, 16)), single)


def round_to_f16(builder: LoopBuilder, value: Value) -> Value:
    """Round f32 to half-precision bit patterns (i16), to nearest even; denormals and NaN are kept."""
    halves, integers = vector_type("i16", value.lanes), vector_type("i32", value.lanes)
    if builder.converts_f16:
        return builder.cast(
            "arith.bitcast", builder.cast("arith.truncf", value, vector_type("f16", value.lanes)), halves
        )

    def shifted(value: Value, count: int) -> Value:
        return builder.binary("arith.shrui", value, builder.constant(count, integers))

    bits = builder.cast("arith.bitcast", value, integers)
    magnitude = builder.binary("arith.andi", bits, builder.constant(0x7FFFFFFF, integers))
    sign = builder.binary("arith.andi", shifted(bits, 16), builder.constant(0x8000, integers))
    # Normal numbers: subtract 112 from the exponent, and add half a unit of what is cut off (ties: the last bit
    # decides).
    odd = builder.binary("arith.andi", shifted(magnitude, 13), builder.constant(1, integers))
    rebased = builder.binary("arith.addi", magnitude, builder.constant(0xFFF - (112 << 23), integers))
    normal = shifted(builder.binary("arith.addi", rebased, odd), 13)
    # Denormals: adding 0.5, whose last bit is their unit, rounds them.
    small = builder.cast("arith.bitcast", magnitude, value.type)
    sum_bits = builder.cast(
        "arith.bitcast", builder.binary("arith.addf", small, builder.constant(0.5, value.type)), integers
    )
    denormal = builder.binary("arith.subi", sum_bits, builder.constant(0x3F000000, integers))
    is_denormal = builder.compare("ult", magnitude, builder.constant(0x38800000, integers))
    finite = builder.select(is_denormal, denormal, normal)
    is_infinite = builder.compare("uge", magnitude, builder.constant(0x477FF000, integers))
    number = builder.select(is_infinite, builder.constant(0x7C00, integers), finite)
    is_nan = builder.compare("ugt", magnitude, builder.constant(0x7F800000, integers))
    payload = builder.binary("arith.andi", shifted(magnitude, 13), builder.constant(0x3FF, integers))
    nan = builder.binary("arith.ori", payload, builder.constant(0x7E00, integers))
    result = builder.binary("arith.ori", builder.select(is_nan, nan, number), sign)
    return builder.cast("arith.trunci", result, halves)


class NarrowFloat(NamedTuple):
    """How a 16-bit float type, held as i16, is converted to f32 and back."""

    widen: Callable[[LoopBuilder, Value], Value]
    round: Callable[[LoopBuilder, Value], Value]


NARROW = {"f16": NarrowFloat(f16_to_f32, round_to_f16), "bf16": NarrowFloat(bf16_to_f32, round_to_bf16)}


def truncate_to_odd(builder: LoopBuilder, value: Value) -> Value:
    """f64 to f32 toward zero, with the last bit set if that is inexact.

    Rounding the result once more to at most 22 bits gives the same as rounding `value` (Boldo and Melquiond, "When
    double rounding is odd", 2005).
    """
    single, integers = vector_type("f32", value.lanes), vector_type("i32", value.lanes)
    nearest = builder.cast("arith.truncf", value, single)
    back = builder.cast("arith.extf", nearest, value.type)
    bits = builder.cast("arith.bitcast", step_back(builder, nearest, back, value), integers)
    marked = builder.binary("arith.ori", bits, builder.constant(1, integers))
    chosen = builder.select(_compare(builder, "one", back, value), marked, bits)
    return builder.cast("arith.bitcast", chosen, single)


def step_back(builder: LoopBuilder, rounded: Value, back: Value, value: Value) -> Value:
    """`rounded`, or the next number toward zero if `rounded` is farther from zero than `value`, from which it was
    rounded.

    `back` is `rounded` in the type of `value`.
    """
    away = _compare(builder, "ogt", _magnitude(builder, back), _magnitude(builder, value))
    integers = vector_type("i32" if rounded.element == "f32" else rounded.element, value.lanes)
    bits = builder.cast("arith.bitcast", rounded, integers)
    below = builder.binary("arith.subi", bits, builder.constant(1, integers))
    return builder.cast("arith.bitcast", builder.select(away, below, bits), rounded.type)


def _magnitude(builder: LoopBuilder, value: Value) -> Value:
    return builder.pure(f"math.absf {value.name} : {value.type}", value.type, (value,))


def sticky_integer(builder: LoopBuilder, value: Value) -> Value:
    """An i64 of at most 52 significant bits that rounds to the same 16-bit float as `value`.

    If `value` is large, its last 12 bits are combined into the bit above them.
    """
    low = builder.binary("arith.andi", value, builder.constant(0xFFF, value.type))
    none = builder.compare("eq", low, builder.constant(0, value.type))
    zero, unit = builder.constant(0, value.type), builder.constant(0x1000, value.type)
    kept = builder.binary("arith.andi", value, builder.constant(-0x1000, value.type))
    gathered = builder.binary("arith.ori", kept, builder.select(none, zero, unit))
    shifted = builder.binary("arith.addi", value, builder.constant(1 << 51, value.type))
    small = builder.compare("ult", shifted, builder.constant(1 << 52, value.type))
    return builder.select(small, value, gathered)

"""Floating-point formats of 8 and 4 bits, held as i8: exact conversion to f32, and rounding from f32 in integers.

docs/conversions.md has the rounding rules.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from triton_porting_kit.abi.elements import MICROSCALING, OF_MLIR, FloatFormat
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes, looked_up
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type

_INFINITY = 0x7F800000
_NAN = 0x7FC00000


FORMATS: dict[str, FloatFormat] = {
    **{name: element.form for name, element in OF_MLIR.items() if element.form and element.is_minifloat},
    **{name: form for name, form in MICROSCALING.items() if form},
}
"""By MLIR type name. Elements of 4 bits are in the low half of an i8."""


class _Lanes:
    """Integer arithmetic on lanes of i32, with Python integers as constants."""

    def __init__(self, builder: LoopBuilder, lanes: int) -> None:
        self.builder = builder
        self.integers = vector_type("i32", lanes)
        self.single = vector_type("f32", lanes)

    def constant(self, value: int) -> Value:
        return self.builder.constant(value, self.integers)

    def binary(self, name: str, a: Value, b: Value | int) -> Value:
        return self.builder.binary(f"arith.{name}", a, self.constant(b) if isinstance(b, int) else b)

    def compare(self, predicate: str, a: Value, b: Value | int) -> Value:
        return self.builder.compare(predicate, a, self.constant(b) if isinstance(b, int) else b)

    def select(self, condition: Value, a: Value | int, b: Value) -> Value:
        return self.builder.select(condition, self.constant(a) if isinstance(a, int) else a, b)

    def as_float(self, bits: Value) -> Value:
        return self.builder.cast("arith.bitcast", bits, self.single)

    def as_bits(self, value: Value) -> Value:
        return self.builder.cast("arith.bitcast", value, self.integers)

    def float_binary(self, name: str, a: Value, b: float) -> Value:
        return self.builder.binary(f"arith.{name}", a, self.builder.constant(b, self.single))


def widen(builder: LoopBuilder, value: Value, element: str) -> Value:
    """Convert bit patterns (i8) of `element` to f32, exactly."""
    if element == "f8E8M0FNU":
        return _widen_scale(builder, value)
    form = FORMATS[element]
    at = _Lanes(builder, value.lanes)
    if element == "f8E5M2" and builder.converts_f16:
        return _upper_half(builder, value)
    bits = builder.cast("arith.extui", value, at.integers)
    if _fits_register(builder, form, value.lanes):
        number = _looked_up(at, form, bits)
        return at.as_float(number if 2 * form.sign <= value.lanes else _signed(at, form, number, bits))
    magnitude = at.binary("andi", bits, form.sign - 1)
    number = _magnitude_bits(at, form, magnitude)
    if form.infinity is not None:
        special = at.compare("uge", magnitude, form.infinity)
        number = at.select(special, at.binary("ori", number, _INFINITY), number)
    elif form.nan is not None:
        number = at.select(
            at.compare("eq", bits if not form.signed_zero else magnitude, form.nan), _NAN, number
        )
    return at.as_float(_signed(at, form, number, bits))


def is_looked_up(builder: LoopBuilder, element: str) -> bool:
    """Whether the target can select the bf16 of the patterns of a format: see `bfloat16_bytes`."""
    form = FORMATS.get(element)
    return form is not None and form.sign == builder.lookup_bytes and form.signed_zero


def bfloat16_bytes(builder: LoopBuilder, patterns: Value, element: str) -> tuple[Value, Value]:
    """The lower and upper bytes of the bf16 that represent 64 patterns exactly. NaN has one payload.

    Each byte is selected from a table of 128, by the pattern without its sign.
    """
    form = FORMATS[element]
    words = [_bfloat16(form.value(magnitude)) for magnitude in range(form.sign)]
    low, high = (_selected(builder, [word >> shift & 0xFF for word in words], patterns) for shift in (0, 8))
    sign = builder.binary("arith.andi", patterns, builder.constant(form.sign, patterns.type))
    return low, builder.binary("arith.ori", high, sign)


def _bfloat16(number: float) -> int:
    """The bits of a number that bf16 represents, or of NaN."""
    return (_NAN if math.isnan(number) else int.from_bytes(struct.pack("<f", number), "little")) >> 16


def _selected(builder: LoopBuilder, table: Sequence[int], lane: Value) -> Value:
    """The bytes of a table of 128 that the lower seven bits of each lane select, by VPERMI2B."""
    halves = []
    for entries in (table[:64], table[64:]):
        literals = ", ".join(str(entry - ((entry & 0x80) << 1)) for entry in entries)
        halves.append(builder.pure(f"arith.constant dense<[{literals}]> : {lane.type}", lane.type, ()))
    low, high = halves
    text = (
        f'llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"({low.name}, {lane.name}, {high.name}) '
        f": ({lane.type}, {lane.type}, {lane.type}) -> {lane.type}"
    )
    return builder.pure(text, lane.type, (low, lane, high))


def _signed(at: _Lanes, form: FloatFormat, number: Value, bits: Value) -> Value:
    """f32 bit patterns with the signs of bit patterns of a format."""
    shift = 31 - form.exponent - form.mantissa
    return at.binary("ori", number, at.binary("shli", at.binary("andi", bits, form.sign), shift))


def _fits_register(builder: LoopBuilder, form: FloatFormat, lanes: int) -> bool:
    """Whether a register of the target's lookups has `lanes`, and holds all magnitudes of a format without NaN."""
    finite = form.infinity is None and form.nan is None
    return finite and lanes == builder.lookup_lanes and form.sign <= lanes


def _looked_up(at: _Lanes, form: FloatFormat, bits: Value) -> Value:
    """The f32 bit patterns of a format's, or their magnitudes where the register has no room for signs."""
    table = [form.value(pattern) for pattern in range(bits.lanes)]
    return at.as_bits(looked_up(table, Lanes(at.builder, bits)).value)


def _magnitude_bits(at: _Lanes, form: FloatFormat, magnitude: Value) -> Value:
    """Convert bit patterns without sign to f32 bit patterns. Infinity and NaN are read as numbers."""
    shifted = at.binary("shli", magnitude, 23 - form.mantissa)
    normal = at.binary("addi", shifted, (127 - form.bias) << 23)
    # Below the smallest normal number 2**(1 - bias): add that number and subtract it again, which is exact.
    raised = at.as_float(at.binary("addi", shifted, (128 - form.bias) << 23))
    denormal = at.as_bits(at.float_binary("subf", raised, 2.0 ** (1 - form.bias)))
    return at.select(at.compare("ult", magnitude, 1 << form.mantissa), denormal, normal)


def _upper_half(builder: LoopBuilder, value: Value) -> Value:
    """Convert f8E5M2, which is the upper half of an f16."""
    wide = builder.cast("arith.extui", value, vector_type("i16", value.lanes))
    bits = builder.binary("arith.shli", wide, builder.constant(8, wide.type))
    half = builder.cast("arith.bitcast", bits, vector_type("f16", value.lanes))
    return builder.cast("arith.extf", half, vector_type("f32", value.lanes))


def _widen_scale(builder: LoopBuilder, value: Value) -> Value:
    """Convert f8E8M0FNU: powers of two, starting with 2**-127 (pattern 0); 0xFF is NaN."""
    at = _Lanes(builder, value.lanes)
    bits = builder.cast("arith.extui", value, at.integers)
    power = at.binary("maxui", at.binary("shli", bits, 23), 1 << 22)
    return at.as_float(at.select(at.compare("eq", bits, 0xFF), _NAN, power))


def round_f32(
    builder: LoopBuilder,
    value: Value,
    element: str,
    *,
    toward_zero: bool = False,
    keep_infinity: bool = False,
) -> Value:
    """Round f32 to bit patterns (i8) of `element`, to nearest even or toward zero.

    Larger numbers become the largest one.

    Infinity becomes the largest number, too, with two exceptions: `keep_infinity` is set and the format has infinity,
    or the format's only special value is NaN (the ``fnuz`` formats). NaN stays NaN.
    """
    form = FORMATS[element]
    at = _Lanes(builder, value.lanes)
    bits = at.as_bits(value)
    magnitude = at.binary("andi", bits, 0x7FFFFFFF)
    cut = 23 - form.mantissa
    # Add half a unit of what is cut off (ties: the last bit decides), and rebase the exponent.
    odd = at.binary("andi", at.binary("shrui", magnitude, cut), 1)
    half = (1 << (cut - 1)) - 1
    rebased = at.binary("addi", magnitude, half - ((127 - form.bias) << 23))
    normal = at.binary("shrui", at.binary("addi", rebased, odd), cut)
    # Denormals: adding a number whose last bit is their unit rounds them.
    offset = form.unit * 2.0**23
    raised = at.as_bits(at.float_binary("addf", at.as_float(magnitude), offset))
    denormal = at.binary("subi", raised, struct.unpack("<i", struct.pack("<f", offset))[0])
    number = at.select(at.compare("ult", magnitude, (128 - form.bias) << 23), denormal, normal)
    number = at.binary("minui", number, form.largest)
    if toward_zero:
        away = at.compare("ugt", _magnitude_bits(at, form, number), magnitude)
        number = at.select(away, at.binary("subi", number, 1), number)
    if keep_infinity and form.infinity is not None:
        number = at.select(at.compare("eq", magnitude, _INFINITY), form.infinity, number)
    sign = at.binary("andi", at.binary("shrui", bits, 24), form.sign)
    signed = at.binary("ori", number, sign)
    if form.signed_zero:
        assert form.nan is not None
        signed = at.select(at.compare("ugt", magnitude, _INFINITY), form.nan, signed)
    else:
        signed = at.select(at.compare("eq", number, 0), number, signed)
        signed = at.select(at.compare("uge", magnitude, _INFINITY), form.sign, signed)
    return builder.cast("arith.trunci", signed, vector_type("i8", value.lanes))

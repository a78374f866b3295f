"""``cvt``: conversions between integers, floats, and the packed formats of 16, 8 and 4 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import FpToFp

from .floats import flushed, limited
from .instruction import KINDS, MODES, Call, Instruction
from .values import Values, bits_of

SECTION = "Data Movement and Conversion Instructions: cvt"
_ALL_INTEGERS = "[.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64]"
_ROUND_TO_INTEGER = {"rni": "math.roundeven", "rzi": "math.trunc", "rmi": "math.floor", "rpi": "math.ceil"}
_TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_NAMES = {"f32": "float", "f64": "double", "s32": "int", "u32": "uint", "s64": "ll", "u64": "ull"}
"""The types, as the names of libdevice's conversions have them."""
_EIGHT = {"e4m3x2": "f8E4M3FN", "e5m2x2": "f8E5M2"}
_LARGEST = {"f16": 65504.0, "bf16": float.fromhex("0x1.fep127"), "f8E4M3FN": 448.0, "f8E5M2": 57344.0}


def _types(call: Call) -> tuple[str, str]:
    """The type of the result, and that of the source."""
    return call.modifiers[-2], call.modifiers[-1]


# --- integers ----------------------------------------------------------------------------------------------


def _range(name: str) -> tuple[int, int]:
    bits = int(name[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "s" else (0, (1 << bits) - 1)


def _between_integers(call: Call) -> Any:
    v = call.values
    target, source = _types(call)
    value = call.read(0)
    if "sat" in call.modifiers:
        value = _clamped(v, value, source, target)
    narrow = v.resized(value, bits_of(KINDS[target]), signed=source[0] == "s")
    return v.resized(narrow, call.widths[0], signed=target[0] == "s")


def _clamped(v: Values, value: Any, source: str, target: str) -> Any:
    """An integer of one type, clamped to the range of another one."""
    low, high = _range(target)
    first, last = _range(source)
    sign = "si" if source[0] == "s" else "ui"
    if low > first:
        value = v.binary(f"arith.max{sign}", value, low)
    if high < last:
        value = v.binary(f"arith.min{sign}", value, high)
    return value


def _from_integer(call: Call) -> Any:
    v = call.values
    target, source = _types(call)
    if call.mode == "rn":
        name = "arith.sitofp" if source[0] == "s" else "arith.uitofp"
        return limited(call, v.op(name, [call.read(0)], target))
    name = f"{_NAMES[source]}2{_NAMES[target]}_{MODES[call.mode]}"
    return limited(call, v.function(name, [call.read(0)], target))


def _to_integer(call: Call) -> Any:
    """Saturates; NaN gives what libdevice's conversions, whose results are those of PTX, give."""
    v = call.values
    target, source = _types(call)
    value = flushed(call, call.read(0))
    if source in ("f16", "bf16"):
        value, source = v.extended(value, "f32"), "f32"
    narrow = int(target[1:]) < 32
    wide = "s32" if narrow else target
    mode = next(_TO_INTEGER[name] for name in call.modifiers if name in _TO_INTEGER)
    number = v.function(f"{_NAMES[source]}2{_NAMES[wide]}_{mode}", [value], KINDS[wide])
    if narrow:
        number = v.resized(_clamped(v, number, "s32", target), int(target[1:]))
    return v.resized(number, call.widths[0], signed=target[0] == "s")


# --- floats ------------------------------------------------------------------------------------------------


def _between_floats(call: Call) -> Any:
    v = call.values
    target, source = _types(call)
    value = flushed(call, call.read(0))
    if bits_of(target) > bits_of(source):
        return limited(call, v.extended(value, target))
    if target == source:
        name = next((_ROUND_TO_INTEGER[name] for name in call.modifiers if name in _ROUND_TO_INTEGER), None)
        return limited(call, value if name is None else v.op(name, [value], target))
    if call.mode in ("rm", "rp"):
        return limited(call, v.function(f"double2float_{MODES[call.mode]}", [value], target))
    return limited(call, _narrowed(call, value, target))


def _narrowed(call: Call, value: Any, target: str) -> Any:
    """A float rounded to 16 or 32 bits, with ``.satfinite`` never to infinity."""
    v = call.values
    if "satfinite" in call.modifiers:
        value = _finite(v, value, _LARGEST[target])
    return v.rounded(value, target, toward_zero=call.mode == "rz")


def _finite(v: Values, value: Any, largest: float) -> Any:
    """Clamped to the largest numbers of a type; NaN as it is."""
    value = v.select(v.compare("ogt", value, largest), v.constant(largest, v.kind(value)), value)
    return v.select(v.compare("olt", value, -largest), v.constant(-largest, v.kind(value)), value)


def _tf32(call: Call) -> Any:
    """f32 with 10 bits of fraction; the bits below are 0."""
    v = call.values
    bits = call.read(0, "i32")
    half = {"rna": 0x1000, "rz": 0}.get(call.modifiers[0], 0xFFF)
    moved = v.add(bits, half) if half else bits
    if call.modifiers[0] == "rn":
        moved = v.add(moved, v.and_(v.shift("shrui", bits, 13), 1))
    rounded = v.and_(moved, ~0x1FFF)
    exponent = v.and_(bits, 0x7F800000)
    special = v.select(v.compare("eq", v.and_(bits, 0x7FFFFF), 0), bits, 0x7FFFFFFF)
    return v.select(v.compare("eq", exponent, 0x7F800000), special, rounded)


# --- packed formats ----------------------------------------------------------------------------------------

Element = Callable[[Call, Any], Any]
"""Converts one element; the result is an integer of the element's bits."""


def _to_half(call: Call, value: Any) -> Any:
    kind = call.modifiers[-2].removesuffix("x2")
    return call.values.as_bits(limited(call, _narrowed(call, value, kind)))


def _to_eight(call: Call, value: Any) -> Any:
    v = call.values
    kind = _EIGHT[call.modifiers[-2]]
    value = limited(call, v.extended(value, "f32"))
    return v.as_bits(v.op(FpToFp.OPERATION_NAME, [_finite(v, value, _LARGEST[kind])], kind))


def _to_four(call: Call, value: Any) -> Any:
    """E2M1: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, to nearest even; NaN as 6."""
    v = call.values
    value = limited(call, v.extended(value, "f32"))
    size = v.op("math.absf", [value], "f32")
    code = v.constant(0, "i8")
    # The boundaries between neighbours; one that is a tie belongs to the even code.
    for boundary, predicate in ((0.25, "ogt"), (0.75, "oge"), (1.25, "ogt"), (1.75, "oge"), (2.5, "ogt"),
                                (3.5, "oge"), (5.0, "ogt")):  # fmt: skip
        code = v.add(code, v.resized(v.compare(predicate, size, boundary), 8))
    sign = v.resized(v.shift("shrui", v.as_bits(value), 28), 8)
    signed = v.or_(code, v.and_(sign, 8))
    return v.select(v.compare("uno", value, value), v.constant(7, "i8"), signed)


def _to_exponent(call: Call, value: Any) -> Any:
    """UE8M0: the exponent of a power of two, of the absolute value; NaN as 255."""
    v = call.values
    bits = v.as_bits(v.extended(value, "f32"))
    fraction, size = v.and_(bits, 0x7FFFFF), v.and_(bits, 0x7FFFFFFF)
    code = v.shift("shrui", size, 23)
    if call.mode == "rp":
        # Below the normal numbers, 0 stands for 2⁻¹²⁷, which is subnormal.
        limit = v.select(v.compare("eq", code, 0), v.constant(0x400000, "i32"), 0)
        is_above = v.compare("ugt", fraction, limit)
        code = v.add(code, v.resized(is_above, 32))
    if "satfinite" in call.modifiers:
        code = v.binary("arith.minui", code, 254)
    code = v.select(v.compare("ugt", size, 0x7F800000), v.constant(255, "i32"), code)
    return v.resized(code, 8)


def _from_eight(call: Call, bits: Any) -> Any:
    v = call.values
    value = v.as_kind(bits, _EIGHT[call.type])
    return v.as_bits(limited(call, v.extended(value, "f16")))


def _from_four(call: Call, bits: Any) -> Any:
    """E2M1 as f16, by moving its fields: 0 and 0.5 have no exponent."""
    v = call.values
    bits = v.resized(bits, 16)
    size = v.and_(bits, 7)
    normal = v.add(v.shift("shli", size, 9), 14 << 10)
    small = v.select(v.compare("eq", size, 0), v.constant(0, "i16"), 0x3800)
    found = v.select(v.compare("ult", size, 2), small, normal)
    signed = v.or_(found, v.shift("shli", v.and_(bits, 8), 12))
    return v.as_bits(limited(call, v.as_kind(signed, "f16")))


def _from_exponent(call: Call, bits: Any) -> Any:
    v = call.values
    wide = v.resized(bits, 16)
    found = v.select(v.compare("eq", wide, 0), v.constant(0x40, "i16"), v.shift("shli", wide, 7))
    return v.select(v.compare("eq", wide, 255), v.constant(0x7FFF, "i16"), found)


def _pair(element: Element, bits: int = 0) -> Callable[[Call], Any]:
    """Two sources packed into one register: the first in its upper half. `bits`: those of an element, if below 8."""

    def lower(call: Call) -> Any:
        v = call.values
        upper, low = (element(call, call.read(k, "f32")) for k in (0, 1))
        return v.or_(v.shift("shli", upper, bits), low) if bits else v.join([low, upper])

    return lower


def _each_half(element: Element, source: int) -> Callable[[Call], Any]:
    """Both halves of a register of `source` bits, an integer or a 16-bit float each."""

    def lower(call: Call) -> Any:
        v = call.values
        parts: Sequence[Any] = v.split(call.read(0, f"i{source}"), 2)
        kind = call.type.removesuffix("x2")
        if kind in ("f16", "bf16"):
            parts = [v.as_kind(part, kind) for part in parts]
        return v.join([element(call, part) for part in parts])

    return lower


def _halves_to_four(call: Call) -> Any:
    v = call.values
    low, upper = (_to_four(call, v.as_kind(part, call.kind)) for part in v.split(call.read(0, "i32"), 2))
    return v.or_(v.shift("shli", upper, 4), low)


def _each_four(call: Call) -> Any:
    v = call.values
    byte = call.read(0, "i8")
    return v.join([_from_four(call, v.and_(byte, 15)), _from_four(call, v.shift("shrui", byte, 4))])


def _rows() -> tuple[Instruction, ...]:
    def row(forms: str, sources: int, lower: Callable[[Call], Any], meaning: str) -> Instruction:
        return Instruction(tuple(forms.split()), sources, meaning, SECTION, lower)

    to_integer = "[.rni|.rzi|.rmi|.rpi]{.ftz}{.sat}"
    narrow = "[.rn|.rz]{.relu}{.satfinite}"
    return (
        row(f"cvt{{.sat}}{_ALL_INTEGERS}{_ALL_INTEGERS}", 1, _between_integers,
            "an integer of another width; with `.sat` clamped to its range"),
        row(f"cvt.rn{{.sat}}[.f16|.bf16|.f32|.f64]{_ALL_INTEGERS} "
            "cvt[.rz|.rm|.rp]{.sat}.f32[.u32|.s32|.u64|.s64] cvt[.rz|.rm|.rp].f64[.u64|.s64]", 1, _from_integer,
            "an integer as a float"),
        row(f"cvt{to_integer}{_ALL_INTEGERS}[.f16|.bf16|.f32] cvt{to_integer}[.u32|.s32|.u64|.s64].f64", 1, _to_integer,
            "a float as an integer, clamped to its range; NaN as 0, of 64 bits as 2⁶³"),
        row("cvt{.ftz}{.sat}.f32[.f16|.bf16] cvt{.ftz}{.sat}.f64[.f16|.bf16|.f32] "
            "cvt{.ftz}{.sat}[.f32.f32|.f64.f64]", 1, _between_floats, "a float as a wider one"),
        row("cvt[.rni|.rzi|.rmi|.rpi]{.ftz}{.sat}[.f32.f32|.f64.f64]", 1, _between_floats,
            "a float, rounded to an integer"),
        row(f"cvt{narrow}[.f16|.bf16].f32 cvt[.rn|.rz]{{.sat}}[.f16|.bf16].f64 "
            "cvt[.rn|.rz|.rm|.rp]{.ftz}{.sat}.f32.f64", 1, _between_floats,
            "a float as a narrower one; with `.satfinite` never infinite"),
        row("cvt[.rn|.rz|.rna].tf32.f32", 1, _tf32, "a float with 10 bits of fraction; the bits below are 0"),
        row(f"cvt{narrow}[.f16x2|.bf16x2].f32", 2, _pair(_to_half), "two floats as 16-bit ones, a in the upper half"),
        row("cvt.rn.satfinite{.relu}[.e4m3x2|.e5m2x2].f32", 2, _pair(_to_eight),
            "two floats as 8-bit ones, a in the upper half"),
        row("cvt.rn.satfinite{.relu}[.e4m3x2|.e5m2x2][.f16x2|.bf16x2]", 1, _each_half(_to_eight, 32),
            "two 16-bit floats as 8-bit ones"),
        row("cvt.rn{.relu}.f16x2[.e4m3x2|.e5m2x2]", 1, _each_half(_from_eight, 16), "two 8-bit floats as f16"),
        row("cvt.rn.satfinite{.relu}.e2m1x2.f32", 2, _pair(_to_four, 4),
            "two floats as 4-bit ones, a in the upper half; NaN as 6"),
        row("cvt.rn.satfinite{.relu}.e2m1x2[.f16x2|.bf16x2]", 1, _halves_to_four,
            "two 16-bit floats as 4-bit ones; NaN as 6"),
        row("cvt.rn{.relu}.f16x2.e2m1x2", 1, _each_four, "two 4-bit floats as f16"),
        row("cvt[.rz|.rp]{.satfinite}.ue8m0x2.f32", 2, _pair(_to_exponent),
            "the absolute values of two floats as powers of two, a in the upper half; NaN as 255"),
        row("cvt[.rz|.rp]{.satfinite}.ue8m0x2.bf16x2", 1, _each_half(_to_exponent, 32), "the same for two bf16"),
        row("cvt.rn.bf16x2.ue8m0x2", 1, _each_half(_from_exponent, 16), "two powers of two as bf16"),
    )  # fmt: skip


ROWS = _rows()

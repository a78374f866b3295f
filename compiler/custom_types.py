"""Conversions of types that Triton's front end leaves to the backend, as operations of Triton IR.

``float8e4b15`` is not an MLIR type: Triton IR holds it as i8, and asks the backend for the conversions. They are
integer arithmetic here, so any backend that takes Triton IR supports the type.
"""

from __future__ import annotations

from typing import Any

_LARGEST = 0x3F00
"""1.75, the largest float8e4b15 that Triton produces, as a float16 bit pattern."""


def convert_float8e4b15(
    value: Any, target: Any, fp_downcast_rounding: Any = None, _semantic: Any = None
) -> Any:
    """Convert `value` from or to float8e4b15; `target` is Triton's type of the result.

    The bit pattern of a float8e4b15 is that of a float16 without its first exponent bit and its last 7 bits. Numbers
    are rounded to nearest, ties away from zero (or toward zero if requested). Larger numbers than 1.75, infinity and
    NaN become 1.75 with their sign.
    """
    if value.dtype.is_fp8e4b15():
        return _semantic.cast(_to_float16(value, _semantic), target.scalar)
    toward_zero = getattr(fp_downcast_rounding, "name", "") == "RTZ"
    return _from_float16(_float16_toward_zero(value, _semantic), toward_zero, _semantic)


def _to_float16(value: Any, semantic: Any) -> Any:
    from triton.language import float16, uint8, uint16  # not while Triton is imported, as its backends are

    bits = semantic.cast(_seen_as(value, uint8), uint16)
    magnitude = semantic.shl(semantic.and_(bits, 0x7F), 7)
    sign = semantic.shl(semantic.and_(bits, 0x80), 8)
    return semantic.bitcast(semantic.or_(magnitude, sign), float16)


def _float16_toward_zero(value: Any, semantic: Any) -> Any:
    """`value` as float16. Truncation keeps the nearest float8e4b15 the same, including ties."""
    from triton.language import float16, float32

    if value.dtype.is_fp16():
        return value
    if not (value.dtype.is_fp32() or value.dtype.is_fp64()):
        value = semantic.cast(value, float32)
    return semantic.cast(value, float16, "rtz")


def _from_float16(value: Any, toward_zero: bool, semantic: Any) -> Any:
    from triton.language import float8e4b15, uint8, uint16

    bits = semantic.bitcast(value, uint16)
    magnitude = semantic.and_(bits, 0x7FFF)
    magnitude = semantic.where(semantic.less_than(magnitude, _LARGEST), magnitude, _LARGEST)
    if not toward_zero:
        magnitude = semantic.add(magnitude, 0x40, False)
    sign = semantic.and_(semantic.lshr(bits, 8), 0x80)
    pattern = semantic.or_(semantic.lshr(magnitude, 7), sign)
    return _seen_as(semantic.cast(pattern, uint8), float8e4b15)


def _seen_as(value: Any, scalar: Any) -> Any:
    """The same i8 with another of Triton's types."""
    kind = value.type
    return type(value)(value.handle, kind.with_element_ty(scalar) if kind.is_block() else scalar)

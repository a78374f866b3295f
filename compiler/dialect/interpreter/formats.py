"""Elements of the structured form in NumPy, and rounding between floating-point formats.

A value is a NumPy scalar or array. Integers are NumPy's signed ones, booleans its `bool`; f16, f32 and f64 are its
floats. Formats that NumPy lacks (bf16, and floats of 8 and 4 bits) are held as bit patterns in unsigned integers, so
that moving them preserves every bit, including NaN payloads. docs/conversions.md has the rounding rules.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A floating-point format that NumPy lacks: `exponent` bits with a `bias`, and `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    infinity: int | None = None
    """The pattern of +infinity; larger patterns are NaN."""
    nan: int | None = None
    """The pattern of NaN; its sign is ignored unless `signed_zero` is False."""
    signed: bool = True
    signed_zero: bool = True
    """False: the pattern of -0 is the only NaN."""
    saturates: bool = True
    """Whether numbers above the largest one are rounded to it, and not to infinity, when rounding to nearest."""

    @property
    def sign(self) -> int:
        """The sign bit; for formats without one, the bit above the pattern."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def storage(self) -> np.dtype[Any]:
        """The integer type that holds patterns."""
        return np.dtype(np.uint16 if self.exponent + self.mantissa > 8 else np.uint8)

    @property
    def largest(self) -> int:
        """The pattern of the largest number."""
        if self.infinity is not None:
            return self.infinity - 1
        return self.sign - 1 - (self.nan == self.sign - 1)


FORMATS = {
    "bf16": Format(8, 7, 127, infinity=0x7F80, nan=0x7FC0, saturates=False),
    "f8E4M3FN": Format(4, 3, 7, nan=0x7F),
    "f8E5M2": Format(5, 2, 15, infinity=0x7C, nan=0x7F),
    "f8E4M3FNUZ": Format(4, 3, 8, nan=0x80, signed_zero=False),
    "f8E5M2FNUZ": Format(5, 2, 16, nan=0x80, signed_zero=False),
    "f8E4M3B11FNUZ": Format(4, 3, 11, nan=0x80, signed_zero=False),
    "f8E8M0FNU": Format(8, 0, 127, nan=0xFF, signed=False),
    "f4E2M1FN": Format(2, 1, 1),
}
"""The formats held as patterns, by MLIR's names. Elements of 4 bits are in the low half of a byte."""

_NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "!llvm.ptr": np.int64,
}  # fmt: skip

DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in _NUMPY.items()} | {
    name: form.storage for name, form in FORMATS.items()
}
"""The NumPy type of elements of each type, in values and in memory."""


def dtype_of(element: str) -> np.dtype[Any]:
    """The NumPy type of elements. Raises TypeError for a type that the structured form does not have."""
    try:
        return DTYPES[element]
    except KeyError:
        raise TypeError(f"the interpreter knows no elements of type {element}") from None


def is_float(element: str) -> bool:
    """Whether a type of elements is a floating-point type."""
    return element in FORMATS or element in ("f16", "f32", "f64")


def bits_of(element: str) -> int:
    """The bits of an integer type."""
    return 1 if element == "i1" else dtype_of(element).itemsize * 8


# --- patterns to numbers ---------------------------------------------------------------------------


@functools.cache
def _numbers(element: str) -> Array:
    """The float32 of each of the 256 patterns of a format of 8 bits or fewer."""
    form = FORMATS[element]
    pattern = np.arange(256)
    magnitude = pattern & (form.sign - 1)
    exponent, mantissa = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if form.mantissa:
        mantissa = mantissa + np.where(exponent > 0, 1 << form.mantissa, 0)
        exponent = np.maximum(exponent, 1)
    else:  # powers of two alone, without a zero
        mantissa = np.ones_like(mantissa)
    number = np.ldexp(mantissa.astype(np.float64), exponent - form.bias - form.mantissa)
    if form.infinity is not None:
        number = np.where(magnitude == form.infinity, np.inf, number)
        number = np.where(magnitude > form.infinity, np.nan, number)
    elif form.nan is not None:
        number = np.where((magnitude if form.signed_zero else pattern) == form.nan, np.nan, number)
    negative = form.signed & (pattern & form.sign != 0)
    return np.asarray(np.where(negative, -number, number), np.float32)


def widen(value: Any, element: str) -> Any:
    """The numbers of floating-point values, exactly: f64 for f64, f32 for all other types."""
    if element in ("f32", "f64"):
        return value
    if element == "f16":
        return np.asarray(value).astype(np.float32)
    if element == "bf16":
        return (np.asarray(value).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _numbers(element)[np.asarray(value)]


# --- rounding --------------------------------------------------------------------------------------


def narrow(value: Any, element: str, *, toward_zero: bool = False, keep_infinity: bool = True) -> Any:
    """Round f32 or f64 numbers once to a floating-point type, to nearest even or toward zero.

    `keep_infinity`: whether an infinity stays infinite if the format has it; else it becomes the largest number.
    """
    value = np.asarray(value)
    if element in FORMATS:
        return _encode(value.astype(np.float64), FORMATS[element], toward_zero, keep_infinity)
    dtype = dtype_of(element)
    rounded = value.astype(dtype)
    if toward_zero and dtype.itemsize < value.dtype.itemsize:
        away = np.abs(rounded.astype(value.dtype)) > np.abs(value)
        rounded = np.where(away, np.nextafter(rounded, dtype.type(0)), rounded)
    return rounded


def _encode(value: Array, form: Format, toward_zero: bool, keep_infinity: bool) -> Array:
    magnitude = np.where(np.isfinite(value), np.abs(value), 0.0)
    lowest = 1 - form.bias
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, lowest, np.maximum(exponent.astype(np.int64) - 1, lowest))
    units = np.ldexp(magnitude, form.mantissa - exponent)
    units = np.floor(units) if toward_zero else np.rint(units)
    # The exponent is above the units in the pattern, so that one unit more carries into it.
    pattern = ((exponent - lowest) << form.mantissa) + units.astype(np.int64)
    too_large = pattern > form.largest
    beyond = form.largest if form.saturates or toward_zero or form.infinity is None else form.infinity
    pattern = np.where(too_large, beyond, pattern)
    infinite = np.isinf(value)
    if form.infinity is not None and keep_infinity:
        pattern = np.where(infinite, form.infinity, pattern)
    else:
        pattern = np.where(infinite, form.largest, pattern)
    negative = np.signbit(value) & form.signed
    if not form.signed_zero:
        negative = negative & (pattern != 0)
    pattern = np.where(negative, pattern | form.sign, pattern)
    nan = np.isnan(value) if form.signed_zero else ~np.isfinite(value)
    if form.nan is not None:
        pattern = np.where(nan, form.nan, pattern)
    return np.asarray(pattern.astype(form.storage))


def odd(value: Any, error: Any) -> Any:
    """`value`, in f64 or f32, with its last bit set where the rounding `error` is not 0.

    Rounding such a number to any format with at least two bits fewer gives the same as rounding the exact value (S.
    Boldo and G. Melquiond, "When double rounding is odd", 2005).
    """
    value = np.asarray(value)
    bits = value.view(np.int64 if value.dtype == np.float64 else np.int32)
    lacking = (np.asarray(error) != 0) & (bits & 1 == 0) & np.isfinite(value)
    toward = np.where(np.asarray(error) > 0, np.inf, -np.inf).astype(value.dtype)
    return np.where(lacking, np.nextafter(value, toward), value)


def from_integers(value: Any, element: str) -> Any:
    """Integers, rounded once to a floating-point type."""
    value = np.asarray(value)
    if element == "f64" or element == "f32":
        return value.astype(dtype_of(element))
    if value.dtype.itemsize < 8:
        return narrow(value.astype(np.float64), element)
    small = np.abs(value.astype(np.float64)) < 2.0**53
    # A quarter of the value, which fits an i64, with its last bit set where something was cut off.
    rest = (value & value.dtype.type(3)) != 0
    quarter = (value >> value.dtype.type(2)).astype(np.int64) | rest
    number = quarter.astype(np.float64)
    number = odd(number, quarter - number.astype(np.int64)) * 4.0
    return narrow(np.where(small, value.astype(np.float64), number), element)


def convert(value: Any, source: str, target: str, **how: bool) -> Any:
    """Values of one floating-point type converted to another, rounded once; `how` as for `narrow`."""
    if source == target:
        return value
    return narrow(widen(value, source), target, **how)


def bitcast(value: Any, target: str) -> Any:
    """The same bits as values of another type of the same size."""
    value = np.asarray(value)
    dtype = dtype_of(target)
    if value.dtype == np.bool_ or dtype == np.bool_:
        return value.astype(dtype)
    return value.view(dtype) if value.ndim else value[None].view(dtype)[0]

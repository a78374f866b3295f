"""The element types of Triton's language, by its names for them, and their values on the host.

Values of a type are numpy arrays of its `host` type. numpy has no bfloat16 and no 8-bit floating-point types: those are
held in float32 arrays, all of whose values the type has. `to_bits` and `from_bits` are exact and know nothing of the
code under test.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """An element type: Triton's name for it, the device array's, and NumPy's on the host."""

    name: str
    device: str
    host: np.dtype[Any]
    bits: int
    precision: int = 0
    """Bits of the significand, the hidden one included; 0: not a floating-point type."""
    exponent: int = 0
    """Exponent of the largest power of two."""
    bias: int = 0
    """Of the exponent in the bit pattern."""
    has_infinity: bool = True
    only_nan: bool = False
    """Whether the pattern that would be -0 is the only NaN."""

    @property
    def is_float(self) -> bool:
        return self.precision > 0

    @property
    def is_minifloat(self) -> bool:
        """Whether this is one of the 8-bit floating-point types."""
        return self.is_float and self.bits == 8

    @property
    def is_signed(self) -> bool:
        return self.name[0] == "i" and self.bits > 1

    @property
    def is_integer(self) -> bool:
        return not self.is_float and self.bits > 1

    @property
    def language(self) -> str:
        """How a kernel's source names it."""
        if self.bits == 1:
            return "tl.int1"
        return "tl.float8" + self.name[3:] if self.is_minifloat else "tl." + self.device

    @property
    def lowest(self) -> int:
        """The smallest integer."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def highest(self) -> int:
        """The largest integer."""
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def largest(self) -> float:
        """The largest finite number of a floating-point type that Triton's conversions make."""
        if self.name == "fp8e4b15":
            return 1.75  # though 1.875 is one more
        if self.is_minifloat:
            values = minifloat_values(self)
            return float(values[np.isfinite(values)].max())
        return float((2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.exponent)

    @property
    def lowest_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - (self.bias if self.is_minifloat else self.exponent)

    @property
    def storage(self) -> np.dtype[Any]:
        """What one element is in memory."""
        lacking = self.is_minifloat or self.name == "bf16"
        return np.dtype(f"uint{self.bits}") if lacking else self.host

    def __str__(self) -> str:
        return self.name


def _integer(name: str, device: str) -> Kind:
    kind = np.dtype(device)
    return Kind(name, device, kind, kind.itemsize * 8)


_F32 = np.dtype("float32")

KINDS = {
    kind.name: kind
    for kind in (
        Kind("i1", "bool", np.dtype(bool), 1),
        *(_integer(f"i{bits}", f"int{bits}") for bits in (8, 16, 32, 64)),
        *(_integer(f"u{bits}", f"uint{bits}") for bits in (8, 16, 32, 64)),
        Kind("fp16", "float16", np.dtype("float16"), 16, 11, 15, 15),
        Kind("bf16", "bfloat16", _F32, 16, 8, 127, 127),
        Kind("fp32", "float32", _F32, 32, 24, 127, 127),
        Kind("fp64", "float64", np.dtype("float64"), 64, 53, 1023, 1023),
        Kind("fp8e4nv", "float8_e4m3fn", _F32, 8, 4, 8, 7, has_infinity=False),
        Kind("fp8e5", "float8_e5m2", _F32, 8, 3, 15, 15),
        Kind("fp8e4b8", "float8_e4m3fnuz", _F32, 8, 4, 7, 8, has_infinity=False, only_nan=True),
        Kind("fp8e5b16", "float8_e5m2fnuz", _F32, 8, 3, 15, 16, has_infinity=False, only_nan=True),
        Kind("fp8e4b15", "float8e4b15", _F32, 8, 4, 0, 15, has_infinity=False),
    )
}
"""Every element type by name."""

INTEGERS = [kind for kind in KINDS.values() if kind.is_integer]
MINIFLOATS = [kind for kind in KINDS.values() if kind.is_minifloat]
FLOATS = [kind for kind in KINDS.values() if kind.is_float and not kind.is_minifloat]
NUMBERS = INTEGERS + FLOATS


# --- bit patterns --------------------------------------------------------------------------------


@functools.cache
def minifloat_values(kind: Kind) -> Array:
    """The float32 value of each of the 256 patterns of an 8-bit floating-point type."""
    pattern = np.arange(256)
    mantissa_bits = kind.precision - 1
    mantissa, exponent = pattern & ((1 << mantissa_bits) - 1), (pattern & 0x7F) >> mantissa_bits
    significand = mantissa + np.where(exponent > 0, 1 << mantissa_bits, 0)
    values = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - kind.bias - mantissa_bits)
    values = np.where(pattern & 0x80, -values, values)
    if kind.has_infinity:  # as IEEE 754 has them
        top = exponent == exponent.max()
        values[top] = np.where(mantissa[top] == 0, np.copysign(np.inf, values[top]), np.nan)
    elif kind.only_nan:
        values[0x80] = np.nan
    elif kind.name == "fp8e4nv":
        values[[0x7F, 0xFF]] = np.nan  # fp8e4b15 has none
    return np.asarray(values.astype(np.float32))


def to_bits(values: Array, kind: Kind) -> Array:
    """The bit patterns of values, all of which `kind` has, in its `storage` type. NaN has any pattern of a NaN."""
    values = np.ascontiguousarray(values)
    if kind.name == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if not kind.is_minifloat:
        return values.astype(kind.host, copy=False)
    table = minifloat_values(kind)
    grid = np.where(np.isnan(table[:128]), np.inf, table[:128])
    patterns = np.searchsorted(grid, np.where(np.isnan(values), 0, np.abs(values))).astype(np.uint8)
    patterns |= np.where(np.signbit(values) & ~(kind.only_nan & (values == 0)), 0x80, 0).astype(np.uint8)
    nans = np.flatnonzero(np.isnan(table))
    return np.where(np.isnan(values), nans[0] if nans.size else 0, patterns).astype(np.uint8)


def from_bits(patterns: Array, kind: Kind) -> Array:
    """The values of bit patterns in the `storage` type of `kind`."""
    if kind.name == "bf16":
        return (np.asarray(patterns, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.asarray(minifloat_values(kind)[patterns]) if kind.is_minifloat else patterns


def every_value(kind: Kind) -> Array:
    """Every value of a type of at most 16 bits, one NaN of each sign."""
    if kind.bits == 1:
        return np.array([False, True])
    patterns = np.arange(1 << kind.bits, dtype=np.uint32).astype(f"uint{kind.bits}")
    if kind.is_integer or kind.name == "fp16":
        return np.asarray(patterns.view(kind.host))
    return from_bits(patterns, kind)

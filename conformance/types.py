"""The element types of Triton's language by name, and their values on the host.

Values of a type are NumPy arrays of its `host` type. NumPy has no bfloat16 and no 8-bit floating-point types; float32
arrays hold their values exactly. `to_bits` and `from_bits` are exact. Of the code under test they use only the table of
types, `triton_porting_kit.abi.elements`, which the kit's tests check against an independent table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.abi.elements import ELEMENTS, ElementType

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """An element type: Triton's name for it, the device array's, and NumPy's on the host."""

    name: str
    device: str
    host: np.dtype[Any]
    bits: int
    precision: int = 0
    """Bits of the significand, including the hidden bit; 0: not a floating-point type."""
    exponent: int = 0
    """The exponent of the largest power of two."""
    bias: int = 0
    """The bias of the exponent in the bit pattern."""
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
        """The name of the type in a kernel's source."""
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
        """The largest finite number that Triton's conversions to a floating-point type produce."""
        if self.name == "fp8e4b15":
            return 1.75  # although 1.875 is representable
        if self.is_minifloat:
            values = minifloat_values(self)
            return float(values[np.isfinite(values)].max())
        return float((2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.exponent)

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - (self.bias if self.is_minifloat else self.exponent)

    @property
    def storage(self) -> np.dtype[Any]:
        """The NumPy type of one element in memory."""
        lacking = self.is_minifloat or self.name == "bf16"
        return np.dtype(f"uint{self.bits}") if lacking else self.host

    def __str__(self) -> str:
        return self.name


def _kind(element: ElementType) -> Kind:
    form = element.form
    if form is None:
        return Kind(element.name, element.array, np.dtype(element.array), element.bits)
    host = _F32 if element.is_minifloat or element.name == "bf16" else np.dtype(element.array)
    return Kind(
        element.name,
        element.array,
        host,
        element.bits,
        form.precision,
        form.largest_exponent,
        form.bias,
        has_infinity=form.infinity is not None,
        only_nan=not form.signed_zero,
    )


_F32 = np.dtype("float32")

KINDS = {name: _kind(element) for name, element in ELEMENTS.items()}
"""Every element type by name."""

INTEGERS = [kind for kind in KINDS.values() if kind.is_integer]
MINIFLOATS = [kind for kind in KINDS.values() if kind.is_minifloat]
FLOATS = [kind for kind in KINDS.values() if kind.is_float and not kind.is_minifloat]
NUMBERS = INTEGERS + FLOATS


# --- bit patterns --------------------------------------------------------------------------------


@functools.cache
def minifloat_values(kind: Kind) -> Array:
    """The float32 value of each of the 256 patterns of an 8-bit floating-point type."""
    form = ELEMENTS[kind.name].form
    assert form is not None
    return np.array(form.values, np.float32)


def to_bits(values: Array, kind: Kind) -> Array:
    """The bit patterns of values that `kind` can represent, in its `storage` type. NaN becomes any NaN pattern."""
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
    """All values of a type of at most 16 bits, including NaNs."""
    if kind.bits == 1:
        return np.array([False, True])
    patterns = np.arange(1 << kind.bits, dtype=np.uint32).astype(f"uint{kind.bits}")
    if kind.is_integer or kind.name == "fp16":
        return np.asarray(patterns.view(kind.host))
    return from_bits(patterns, kind)

"""Exact rounding to element types, and distances in units in the last place, for oracles."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from triton_porting_kit.conformance.types import Array, Kind, every_value


def round_exact(value: int | float | Fraction, kind: Kind) -> float:
    """Round `value` once, to nearest even, to an IEEE floating-point type."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    power -= Fraction(2) ** power > magnitude
    unit = Fraction(2) ** (max(power, kind.lowest_exponent) - kind.precision + 1)
    quotient, rest = divmod(magnitude, unit)
    if rest * 2 > unit or (rest * 2 == unit and quotient % 2):
        quotient += 1
    result = quotient * unit
    if result >= Fraction(2) ** (kind.exponent + 1):
        rounded_float = float("inf")
    else:
        rounded_float = float(result)
    return -rounded_float if exact < 0 else rounded_float


def rounded(values: Iterable[Any], kind: Kind) -> Array:
    """Round exact values (Python or NumPy numbers) once to `kind`. Returns its host type."""
    numbers = [v.item() if isinstance(v, np.generic) else v for v in values]
    return np.array([round_exact(v, kind) for v in numbers], dtype=np.float64).astype(kind.host)


def on_grid(values: Array, kind: Kind, toward_zero: bool = False) -> Array:
    """Round float64 values to the precision of `kind`, to nearest even or toward zero, without limiting the range."""
    _, power = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(power - 1, kind.lowest_exponent) - kind.precision + 1)
    with np.errstate(all="ignore"):
        steps = values / unit  # exact: division by a power of two, within the range of float64
        return np.where(np.isfinite(values), (np.trunc if toward_zero else np.rint)(steps) * unit, values)


def from_float64(values: Array, kind: Kind) -> Array:
    """Round float64 results to `kind`.

    The float64 values may already be rounded, so this may be a second rounding. Values out of range become infinity, or
    the largest number of an 8-bit type. Infinity is preserved.
    """
    values = np.asarray(values, np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind.is_minifloat:
            near = on_grid(values, kind)
            kept = np.isinf(values) | (np.abs(near) <= np.nanmax(np.abs(every_value(kind))))
            return np.where(kept, near, saturated(near, kind)).astype(kind.host)
        if kind.name == "bf16":
            near = on_grid(values, kind)
            return np.where(np.abs(near) > kind.largest, np.copysign(np.inf, near), near).astype(kind.host)
        return values.astype(kind.host)


def saturated(values: Array, kind: Kind) -> Array:
    """Saturate numbers on the grid of an 8-bit floating-point type as Triton's conversions do.

    Values out of range, including infinity, become the largest number. If the type has a single NaN, infinity becomes
    NaN.
    """
    values = np.where(kind.only_nan & np.isinf(values), np.nan, values)
    values = np.where(np.isnan(values), values, np.clip(values, -kind.largest, kind.largest))
    return np.where(kind.only_nan & (values == 0), 0.0, values).astype(kind.host)


def wrap(value: int, kind: Kind) -> int:
    """Wrap an integer to the range of an integer type."""
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if kind.is_signed and value >> (kind.bits - 1) else value


def wrapped(values: Array, kind: Kind) -> Array:
    """Wrap exact integers (an array of Python integers) to the range of an integer type. Returns its host type."""
    flat = [wrap(int(value), kind) for value in np.asarray(values, object).ravel()]
    return np.array(flat, kind.host).reshape(np.shape(values))


def last_place(values: Array, kind: Kind) -> Array:
    """The unit in the last place of `kind` at each float64 value; at zero and subnormal values, the smallest unit."""
    _, power = np.frexp(values)
    power = np.where(values == 0, kind.lowest_exponent, power - 1)
    return np.asarray(np.ldexp(1.0, np.maximum(power, kind.lowest_exponent) - kind.precision + 1))


def ulp_distance(actual: Array, exact: Array, kind: Kind) -> Array:
    """The distance of `actual` from float64 `exact`, in units in the last place of `kind` at `exact`.

    Two NaNs have distance 0; a NaN and a number have an infinite distance. If `kind` has infinity, infinity counts as
    the number that would follow the largest one.
    """
    actual, exact = np.asarray(actual, np.float64), np.asarray(exact, np.float64)
    with np.errstate(all="ignore"):
        overflowed = np.where(np.abs(exact) > kind.largest, np.copysign(np.inf, exact), exact)
        unit = last_place(exact, kind)
        large = np.abs(exact) > 1
        scale = np.where(
            large, 0.5, 1.0
        )  # at half the scale, the successor of the largest number is representable
        follows = large & np.isinf(actual) & kind.has_infinity
        near = np.where(follows, np.copysign(2.0**kind.exponent, actual), actual * scale)
        distance = np.abs(near - exact * scale) / (unit * scale)
    same = (actual == overflowed) | (np.isnan(actual) & np.isnan(exact))
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))

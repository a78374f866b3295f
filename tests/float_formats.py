"""Floating-point formats by their tables of numbers, and conversion to them by search: an oracle for conversions.

Numbers are float64, which holds every number of every format here and every number halfway between two neighbours
of a format of at most 32 bits.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Format:
    """A type: Triton's name, `exponent` and `mantissa` bits, the exponent's bias, and what its last patterns mean.

    `special`: ``ieee`` has infinities and NaN above them, ``fn`` one NaN for each sign at the top, ``fnuz`` one NaN in
    the place of -0, ``none`` has numbers only.
    """

    name: str
    language: str
    exponent: int
    mantissa: int
    bias: int
    special: str

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def patterns(self) -> np.dtype[Any]:
        return np.dtype(f"uint{self.bits}")

    def __str__(self) -> str:
        return self.name


FORMATS = {
    form.name: form
    for form in (
        Format("fp8e4nv", "float8e4nv", 4, 3, 7, "fn"),
        Format("fp8e5", "float8e5", 5, 2, 15, "ieee"),
        Format("fp8e4b8", "float8e4b8", 4, 3, 8, "fnuz"),
        Format("fp8e5b16", "float8e5b16", 5, 2, 16, "fnuz"),
        Format("fp8e4b15", "float8e4b15", 4, 3, 15, "none"),
        Format("fp16", "float16", 5, 10, 15, "ieee"),
        Format("bf16", "bfloat16", 8, 7, 127, "ieee"),
        Format("fp32", "float32", 8, 23, 127, "ieee"),
        Format("fp64", "float64", 11, 52, 1023, "ieee"),
    )
}
FLOAT8 = [form for form in FORMATS.values() if form.bits == 8]
LARGEST_E4B15 = 1.75
"""The format has 1.875 as well, which Triton never makes."""


def decode(patterns: Array, form: Format) -> Array:
    """The numbers of bit patterns."""
    if form.bits >= 32:
        with np.errstate(invalid="ignore"):  # of signalling NaN
            return patterns.view(f"float{form.bits}").astype(np.float64)
    return _table(form)[patterns]


@functools.cache
def _table(form: Format) -> Array:
    """The number of every pattern."""
    magnitudes = np.arange(1 << (form.bits - 1), dtype=np.int64)
    exponent, fraction = magnitudes >> form.mantissa, magnitudes & ((1 << form.mantissa) - 1)
    numbers = np.where(
        exponent == 0,
        np.ldexp(fraction.astype(np.float64), 1 - form.bias - form.mantissa),
        np.ldexp(1.0 + fraction / (1 << form.mantissa), exponent - form.bias),
    )
    if form.special == "ieee":
        top = exponent == (1 << form.exponent) - 1
        numbers[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    elif form.special == "fn":
        numbers[-1] = np.nan
    both = np.concatenate([numbers, -numbers])
    if form.special == "fnuz":
        both[1 << (form.bits - 1)] = np.nan
    return both


def numbers_of(form: Format) -> Array:
    """The finite numbers from 0 on, in order, of a format of at most 16 bits."""
    numbers = _table(form)[: 1 << (form.bits - 1)]
    return numbers[np.isfinite(numbers)]


def encode(values: Array, form: Format, rounding: str = "rtne") -> Array:
    """Patterns of float64 values, converted as Triton does; NaN becomes any one of the format's."""
    values = np.asarray(values, np.float64)
    if form.bits >= 32:
        return _encode_wide(values, form, rounding)
    numbers = numbers_of(form)
    if form.special == "none":
        numbers = numbers[numbers <= LARGEST_E4B15]
    magnitude = np.abs(values)
    above = np.minimum(np.searchsorted(numbers, magnitude, "right"), len(numbers) - 1)
    below = np.maximum(above - 1, 0)
    past = magnitude >= numbers[-1]
    middle = (numbers[below] + numbers[above]) / 2
    tie_up = np.ones(values.shape, bool) if form.special == "none" else below % 2 == 1
    up = (magnitude > middle) | ((magnitude == middle) & tie_up)
    index = np.where(up & (rounding == "rtne") & ~past, above, below)
    index = np.where(past, len(numbers) - 1, index)
    index = _overflowed(index, magnitude, numbers, form, rounding)
    sign = np.signbit(values) & ((index > 0) | (form.special != "fnuz"))
    pattern = index | (sign.astype(np.int64) << (form.bits - 1))
    nan = {"ieee": (1 << (form.bits - 1)) - 1, "fn": 0x7F, "fnuz": 0x80, "none": 0}[form.special]
    lost = np.isnan(values) | (np.isinf(values) & (form.special == "fnuz"))
    if form.special == "none":  # there is no NaN: the largest number of that sign
        return np.where(lost, len(numbers) - 1 | np.signbit(values) << 7, pattern).astype(form.patterns)
    return np.where(lost, nan, pattern).astype(form.patterns)


def _overflowed(index: Array, magnitude: Array, numbers: Array, form: Format, rounding: str) -> Array:
    """With the pattern of infinity where a 16-bit format overflows, or an 8-bit one that rounds toward zero keeps it."""
    if form.special != "ieee":
        return index
    limit = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    infinite = np.isinf(magnitude)
    if form.bits == 8:
        infinite &= rounding == "rtz"
    elif rounding == "rtne":
        infinite |= magnitude >= limit
    return np.where(infinite, len(numbers), index)


def _encode_wide(values: Array, form: Format, rounding: str) -> Array:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nearest = values.astype(f"float{form.bits}")
        if rounding == "rtz" and form.bits == 32:
            away = np.abs(nearest.astype(np.float64)) > np.abs(values)
            nearest = np.where(away, np.nextafter(nearest, np.float32(0)), nearest)
    return nearest.view(form.patterns)


def around(form: Format, wide: type[np.floating[Any]]) -> Array:
    """Numbers of type `wide` that try every rounding to `form`, of at most 16 bits, of both signs.

    They are every number of it, every number halfway between two, the neighbours of these, and what is too large.
    """
    numbers = numbers_of(form)
    unit = numbers[-1] - numbers[-2]
    halves = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + unit * np.array([0.25, 0.5, 0.75, 1.0, 2.0, 1e3])
    with np.errstate(over="ignore"):
        exact = np.concatenate([numbers, halves, beyond]).astype(wide)
        near = [exact, np.nextafter(exact, wide(0)), np.nextafter(exact, wide(np.inf))]
    values = np.concatenate([*near, np.array([np.inf, np.nan], wide)])
    return np.concatenate([values, -values])

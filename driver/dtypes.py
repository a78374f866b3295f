"""Element types of device arrays, under names that Triton's front end knows, and their form in numpy.

numpy has no bfloat16 and no 8-bit floats: such elements travel as the unsigned integers with the same bits,
and `encode` / `decode` turn float32 into those patterns and back.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.errors import DTypeError


@dataclass(frozen=True)
class Minifloat:
    """A floating-point format that numpy lacks: sign, then `exponent` bits, then `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    infinities: bool
    """IEEE's special values; else the format is finite, with NaN at one pattern per sign or at -0."""
    negative_zero: bool = True
    """False: the pattern of -0 is the only NaN (the ``fnuz`` formats)."""
    has_nan: bool = True
    """False: every pattern is a number."""


@dataclass(frozen=True)
class DType:
    """An element type. There is one object of each; ``str()`` gives the name that Triton reads."""

    name: str
    numpy: np.dtype[Any]
    """The numpy type of the same size: the same type, or unsigned integers where numpy has none."""
    dlpack_code: int
    minifloat: Minifloat | None = None

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        return self.minifloat is not None or self.numpy.kind == "f"

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    # Triton's native specialisation remembers a type's name under its hash.
    def __hash__(self) -> int:
        return hash(self.name)


def _plain(name: str, code: int) -> DType:
    return DType(name, np.dtype(name), code)


bool_ = _plain("bool", 6)
int8, int16, int32, int64 = (_plain(f"int{bits}", 0) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_plain(f"uint{bits}", 1) for bits in (8, 16, 32, 64))
float16, float32, float64 = (_plain(f"float{bits}", 2) for bits in (16, 32, 64))
bfloat16 = DType("bfloat16", np.dtype("uint16"), 4, Minifloat(8, 7, 127, True))
float8_e4m3fn = DType("float8_e4m3fn", np.dtype("uint8"), 10, Minifloat(4, 3, 7, False))
float8_e4m3fnuz = DType("float8_e4m3fnuz", np.dtype("uint8"), 11, Minifloat(4, 3, 8, False, False))
float8_e5m2 = DType("float8_e5m2", np.dtype("uint8"), 12, Minifloat(5, 2, 15, True))
float8_e5m2fnuz = DType("float8_e5m2fnuz", np.dtype("uint8"), 13, Minifloat(5, 2, 16, False, False))
# Triton's own, which DLPack has no code for: it travels as the unsigned integers with its bits.
float8e4b15 = DType("float8e4b15", np.dtype("uint8"), 1, Minifloat(4, 3, 15, False, has_nan=False))

ALL: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8e4b15,
    )
}  # fmt: skip
"""Every element type by name."""


def as_dtype(value: Any) -> DType:
    """The `DType` for a `DType`, its name (``torch.float32`` too), a torch dtype, or a numpy type."""
    if isinstance(value, DType):
        return value
    found = ALL.get(str(value).rpartition(".")[2])
    if found is None:
        with contextlib.suppress(TypeError):
            found = ALL.get(np.dtype(value).name)
    if found is None:
        raise DTypeError(f"no element type {value!r}; the kit knows {', '.join(ALL)}")
    return found


def encode(values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Round float32 values to the nearest `dtype` (ties to even) and give its bit patterns.

    What is too large becomes infinity where the format has one, else NaN where it has that, else the largest number.
    """
    if values.dtype != np.float32 or dtype.minifloat is None:
        raise DTypeError(f"encode takes float32 and a type that numpy lacks, not {values.dtype} and {dtype}")
    if dtype is bfloat16:
        bits = np.ascontiguousarray(values).view(np.uint32)
        rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return (
            np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16).reshape(values.shape)
        )
    table = decode(np.arange(128, dtype=np.uint8), dtype).astype(np.float64)
    finite = np.flatnonzero(np.isfinite(table))
    # Rounding to even may go up to the value behind the largest one: that is where overflow begins.
    top = finite[-1]
    grid = np.append(table[: top + 1], 2 * table[top] - table[top - 1])
    magnitude = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(grid, magnitude), 1, len(grid) - 1)
    low, high = grid[above - 1], grid[above]
    up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (above % 2 == 0))
    index = np.where(up, above, above - 1)
    form = dtype.minifloat
    quiet = 0x7F if form.negative_zero else 0x80  # the largest number where there is no NaN
    overflow = top + 1 if form.infinities else quiet
    pattern = np.where(index > top, overflow, index)
    pattern = np.where(np.isnan(values), quiet, pattern).astype(np.uint8)
    signed = np.signbit(values) & (form.negative_zero | (pattern != 0)) & (pattern != 0x80)
    return np.where(signed, pattern | 0x80, pattern).astype(np.uint8)


def decode(patterns: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The float32 values of bit patterns of a type that numpy lacks; exact."""
    form = dtype.minifloat
    if form is None or patterns.dtype != dtype.numpy:
        raise DTypeError(
            f"decode takes the {dtype.numpy} patterns of a type that numpy lacks, not {patterns.dtype}"
        )
    if dtype is bfloat16:
        return (patterns.astype(np.uint32) << 16).view(np.float32)
    bits = patterns.astype(np.int32)
    mantissa = bits & ((1 << form.mantissa) - 1)
    exponent = (bits >> form.mantissa) & ((1 << form.exponent) - 1)
    normal = exponent > 0
    significand = mantissa + np.where(normal, 1 << form.mantissa, 0)
    values = np.ldexp(
        significand.astype(np.float32), np.maximum(exponent, 1) - form.bias - form.mantissa
    ).astype(np.float32)
    values = np.where(bits & 0x80, -values, values)
    if form.infinities:
        special = exponent == (1 << form.exponent) - 1
        infinity = np.where(bits & 0x80, np.float32(-np.inf), np.float32(np.inf))
        return np.where(special, np.where(mantissa == 0, infinity, np.float32(np.nan)), values).astype(
            np.float32
        )
    nan = (bits & 0x7F) == 0x7F if form.negative_zero else bits == 0x80
    nan &= form.has_nan
    return np.where(nan, np.float32(np.nan), values).astype(np.float32)

"""Element types of device arrays, by names that Triton's front end knows, and their form in numpy.

numpy has no bfloat16 and no 8-bit floats. Such elements are held as unsigned integers with the same bits; `encode` and
`decode` convert float32 to those patterns and back.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.abi.elements import ELEMENTS, ElementType, FloatFormat
from triton_porting_kit.errors import DTypeError


@dataclass(frozen=True)
class DType:
    """An element type. There is one object per type; ``str()`` gives the name that Triton reads."""

    name: str
    numpy: np.dtype[Any]
    """The numpy type of the same size: the same type, or unsigned integers if numpy has none."""
    dlpack_code: int
    minifloat: FloatFormat | None = None
    """The format of a type that numpy lacks."""

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

    # Triton's native specialisation caches a type's name by its hash.
    def __hash__(self) -> int:
        return hash(self.name)


def _dtype(element: ElementType) -> DType:
    lacking = element.array not in _OF_NUMPY
    kind = np.dtype(f"uint{element.bits}" if lacking else element.array)
    return DType(element.array, kind, element.dlpack, element.form if lacking else None)


_OF_NUMPY = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)))

ALL: dict[str, DType] = {element.array: _dtype(element) for element in ELEMENTS.values()}
"""Every element type by name."""

float32, bfloat16 = ALL["float32"], ALL["bfloat16"]


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
    """Round float32 values to the nearest `dtype` (ties to even) and return its bit patterns.

    Values out of range become infinity if the format has one, else NaN if it has that, else the largest number.
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
    # Overflow begins at the midpoint after the largest value, which rounds to even.
    top = finite[-1]
    grid = np.append(table[: top + 1], 2 * table[top] - table[top - 1])
    magnitude = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(grid, magnitude), 1, len(grid) - 1)
    low, high = grid[above - 1], grid[above]
    up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (above % 2 == 0))
    index = np.where(up, above, above - 1)
    form = dtype.minifloat
    quiet = 0x7F if form.signed_zero else 0x80  # the largest number if there is no NaN
    overflow = quiet if form.infinity is None else form.infinity
    pattern = np.where(index > top, overflow, index)
    pattern = np.where(np.isnan(values), quiet, pattern).astype(np.uint8)
    signed = np.signbit(values) & (form.signed_zero | (pattern != 0)) & (pattern != 0x80)
    return np.where(signed, pattern | 0x80, pattern).astype(np.uint8)


def decode(patterns: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The exact float32 values of bit patterns of a type that numpy lacks."""
    form = dtype.minifloat
    if form is None or patterns.dtype != dtype.numpy:
        raise DTypeError(
            f"decode takes the {dtype.numpy} patterns of a type that numpy lacks, not {patterns.dtype}"
        )
    if dtype is bfloat16:
        return (patterns.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(_values(form)[patterns])


@functools.cache
def _values(form: FloatFormat) -> np.ndarray[Any, Any]:
    """The number of each pattern."""
    return np.array(form.values, np.float32)

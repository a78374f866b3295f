"""The element types: their names in Triton, MLIR, C++ and for arrays, their sizes, and the formats of floats."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum


class Special(Enum):
    """Which bit patterns of a floating-point format are not numbers."""

    IEEE = "infinities at the largest exponent, and NaN above them"
    FN = "one NaN of each sign, at the top"
    FNUZ = "one NaN in place of -0, which does not exist"
    NONE = "none"


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point format: a sign, `exponent` bits with a `bias`, and `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    special: Special = Special.IEEE

    @property
    def precision(self) -> int:
        """Bits of the significand, including the hidden bit."""
        return self.mantissa + 1

    @property
    def largest_exponent(self) -> int:
        """Exponent of the largest power of two."""
        return (1 << self.exponent) - 1 - (self.special is Special.IEEE) - self.bias

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int | None:
        """The pattern of +infinity; larger ones are NaN. None if the format has no infinity."""
        return ((1 << self.exponent) - 1) << self.mantissa if self.special is Special.IEEE else None

    @property
    def nan(self) -> int | None:
        """The pattern of a positive NaN, or of the only one; None if there is none."""
        if self.special is Special.NONE:
            return None
        return self.sign if self.special is Special.FNUZ else self.sign - 1

    @property
    def signed_zero(self) -> bool:
        """Whether there is a -0."""
        return self.special is not Special.FNUZ

    @property
    def largest(self) -> int:
        """The pattern of the largest number."""
        if self.infinity is not None:
            return self.infinity - 1
        return self.sign - 1 - (self.nan == self.sign - 1)

    @property
    def unit(self) -> float:
        """The smallest number above 0."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    def value(self, pattern: int) -> float:
        """The number of a pattern; NaN has no sign."""
        magnitude = pattern & (self.sign - 1)
        negative = -1.0 if pattern & self.sign else 1.0
        if pattern == self.nan or (self.signed_zero and magnitude == self.nan):
            return float("nan")
        if self.infinity is not None and magnitude >= self.infinity:
            return negative * float("inf") if magnitude == self.infinity else float("nan")
        exponent, mantissa = divmod(magnitude, 1 << self.mantissa)
        if exponent:
            mantissa += 1 << self.mantissa
        return negative * mantissa * self.unit * 2.0 ** max(exponent - 1, 0)

    def pattern(self, value: float) -> int:
        """The pattern of a number that a format of 8 or fewer bits represents exactly.

        Raises ValueError for any other.
        """
        if value != value and self.nan is not None:
            return self.nan
        for pattern, found in enumerate(self.values):
            if found == value and str(found) == str(value):
                return pattern
        raise ValueError(f"{value} is not a number of {self}")

    @functools.cached_property
    def values(self) -> tuple[float, ...]:
        """The number of each pattern, for formats of 16 or fewer bits."""
        return tuple(self.value(pattern) for pattern in range(2 * self.sign))


@dataclass(frozen=True)
class ElementType:
    """A type of Triton's language. `name` is the one in signatures: ``i32``, ``bf16``, ``fp8e4nv``."""

    name: str
    array: str
    """The name as the type of a device array, as in torch and NumPy."""
    mlir: str
    """The name in Triton IR and MLIR, where integers have no sign; formats that MLIR lacks are integers."""
    bits: int
    dlpack: int
    """DLPack's code of the type."""
    form: FloatFormat | None = None
    """The format of a floating-point type."""

    @property
    def size(self) -> int:
        """Bytes in memory: a boolean takes one."""
        return max(1, self.bits // 8)

    @property
    def is_minifloat(self) -> bool:
        """Whether it is an 8-bit floating-point type."""
        return self.form is not None and self.bits == 8

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.form is None and self.name[0] == "i" and self.bits > 1

    @property
    def cpp(self) -> str:
        """A C++ type that holds it. Booleans, and floats that C++ lacks, are unsigned integers of their bits."""
        if self.form is not None and self.bits >= 32:
            return {32: "float", 64: "double"}[self.bits]
        return f"std::{'' if self.is_signed else 'u'}int{8 * self.size}_t"

    @property
    def packed(self) -> str:
        """The format character for Python's `struct`; floats that it lacks are packed as integers of their bits."""
        if self.form is not None and self.array.startswith("float") and self.bits > 8:
            return {16: "e", 32: "f", 64: "d"}[self.bits]
        letter = {1: "b", 2: "h", 4: "i", 8: "q"}[self.size]
        return letter if self.is_signed else letter.upper()


_INTEGER, _UNSIGNED, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
_FP16, _BF16 = FloatFormat(5, 10, 15), FloatFormat(8, 7, 127)
_FP32, _FP64 = FloatFormat(8, 23, 127), FloatFormat(11, 52, 1023)

ELEMENTS = {
    element.name: element
    for element in (
        ElementType("i1", "bool", "i1", 1, _BOOL),
        *(ElementType(f"i{bits}", f"int{bits}", f"i{bits}", bits, _INTEGER) for bits in (8, 16, 32, 64)),
        *(ElementType(f"u{bits}", f"uint{bits}", f"i{bits}", bits, _UNSIGNED) for bits in (8, 16, 32, 64)),
        ElementType("fp16", "float16", "f16", 16, _FLOAT, _FP16),
        ElementType("bf16", "bfloat16", "bf16", 16, _BFLOAT, _BF16),
        ElementType("fp32", "float32", "f32", 32, _FLOAT, _FP32),
        ElementType("fp64", "float64", "f64", 64, _FLOAT, _FP64),
        ElementType("fp8e4nv", "float8_e4m3fn", "f8E4M3FN", 8, 10, FloatFormat(4, 3, 7, Special.FN)),
        ElementType("fp8e5", "float8_e5m2", "f8E5M2", 8, 12, FloatFormat(5, 2, 15)),
        ElementType("fp8e4b8", "float8_e4m3fnuz", "f8E4M3FNUZ", 8, 11, FloatFormat(4, 3, 8, Special.FNUZ)),
        ElementType("fp8e5b16", "float8_e5m2fnuz", "f8E5M2FNUZ", 8, 13, FloatFormat(5, 2, 16, Special.FNUZ)),
        # Triton's own format, which neither MLIR nor DLPack has: it is passed as an integer of its bits.
        ElementType("fp8e4b15", "float8e4b15", "i8", 8, _UNSIGNED, FloatFormat(4, 3, 15, Special.NONE)),
    )
}
"""Every element type by Triton's name."""

FP8_TYPES = tuple(name for name, element in ELEMENTS.items() if element.is_minifloat)
"""Floating-point types of 8 bits by Triton's name: the kit's lowering converts each of them."""

OF_MLIR: dict[str, ElementType] = {}
"""By MLIR's name. Integers are the signed ones."""
for _element in ELEMENTS.values():
    OF_MLIR.setdefault(_element.mlir, _element)

MICROSCALING = {"f8E8M0FNU": None, "f4E2M1FN": FloatFormat(2, 1, 1, Special.NONE)}
"""Formats of scaled products, by MLIR's name; no array has them.

The first are scales: powers of two, starting with 2**-127, and NaN as the highest pattern. Each element takes a byte.
"""

PARAMETERS = {
    "i1": ELEMENTS["i1"],
    "u1": ELEMENTS["i1"],
    **{name: element for name, element in ELEMENTS.items() if not element.is_minifloat},
    "f32": ELEMENTS["fp32"],
}
"""The types of a kernel's parameters that are not pointers, by Triton's names."""

POINTER_SIZE = 8
"""Bytes of a pointer."""

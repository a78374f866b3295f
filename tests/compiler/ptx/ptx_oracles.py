"""What instructions compute, written from the PTX ISA in Python's integers and in NumPy, one element or array at a
time."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Integer = Callable[..., int]


def signed(value: int, bits: int) -> int:
    """A pattern of bits as a signed integer."""
    return value - (1 << bits) if value >> (bits - 1) else value


def each(function: Integer, bits: int = 32) -> Callable[..., Any]:
    """A function of Python integers, on arrays; the result modulo 2 to the power of `bits`."""

    def compute(*arrays: Any) -> Any:
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        return np.array([function(*row) % (1 << bits) for row in rows], f"u{bits // 8}")

    return compute


def bit_by_bit(function: Callable[[list[int]], int], bits: int = 32) -> Callable[..., int]:
    """An integer whose bit i is a function of the bits i of the operands."""

    def compute(*values: int) -> int:
        return sum(function([value >> i & 1 for value in values]) << i for i in range(bits))

    return compute


def lop3(table: int) -> Integer:
    return bit_by_bit(lambda b: table >> (b[0] << 2 | b[1] << 1 | b[2]) & 1)


def bfe(a: int, b: int, c: int, *, is_signed: bool, msb: int = 31) -> int:
    """The pseudo-code of the specification."""
    pos, length = b & 0xFF, c & 0xFF
    sbit = 0 if not is_signed or length == 0 else a >> min(pos + length - 1, msb) & 1
    return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else sbit) << i for i in range(msb + 1))


def bfi(a: int, b: int, c: int, d: int) -> int:
    """The pseudo-code of the specification."""
    pos, length, f = c & 0xFF, d & 0xFF, b
    for i in range(length):
        if pos + i <= 31:
            f = f & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return f


def shf(a: int, b: int, c: int, *, left: bool, wrap: bool) -> int:
    n = c & 31 if wrap else min(c, 32)
    return (b << n) | (a >> (32 - n)) if left else (b << (32 - n)) | (a >> n)


def prmt(a: int, b: int, c: int) -> int:
    source, found = b << 32 | a, 0
    for place in range(4):
        control = c >> 4 * place & 15
        byte = source >> 8 * (control & 7) & 255
        if control & 8:
            byte = 255 if byte & 128 else 0
        found |= byte << 8 * place
    return found


def dp4a(a: int, b: int, c: int, *, is_signed: bool) -> int:
    parts = [[value >> 8 * k & 255 for k in range(4)] for value in (a, b)]
    if is_signed:
        parts = [[signed(x, 8) for x in four] for four in parts]
    return c + sum(x * y for x, y in zip(*parts, strict=True))


# --- small floats ----------------------------------------------------------------------------------------


def numbers(exponent: int, fraction: int, bias: int, specials: int = 0) -> list[float]:
    """The finite numbers that are not negative of a format; `specials` codes at the end are not finite."""
    found = []
    for code in range((1 << (exponent + fraction)) - specials):
        e, f = code >> fraction, code & ((1 << fraction) - 1)
        scale = 2.0 ** (max(e, 1) - bias - fraction)
        found.append((f + (1 << fraction if e else 0)) * scale)
    return found


E4M3 = numbers(4, 3, 7, 1)
E5M2 = numbers(5, 2, 15, 4)
E2M1 = numbers(2, 1, 1)
HALF = numbers(5, 10, 15, 1 << 10)
BRAIN = numbers(8, 7, 127, 1 << 7)


def nearest(table: list[float], value: float | Fraction, *, mode: str = "rn") -> int:
    """The code of the number nearest to a finite one that is not negative, to even codes; the largest from there on."""
    low = bisect.bisect_right(table, value) - 1
    if mode == "rz" or low == len(table) - 1:
        return low
    below, above = Fraction(value) - Fraction(table[low]), Fraction(table[low + 1]) - Fraction(value)
    if below != above:
        return low if below < above else low + 1
    return low if low % 2 == 0 else low + 1


def small(table: list[float], bits: int, nan: int) -> Callable[[float], int]:
    """A conversion with ``.satfinite``, of one number."""

    def convert(value: float) -> int:
        if math.isnan(value):
            return nan
        sign = (1 << (bits - 1)) if math.copysign(1, value) < 0 else 0
        return sign | nearest(table, min(abs(value), table[-1]))

    return convert


def packed(convert: Callable[[float], int], bits: int) -> Callable[..., Any]:
    """Two floats in one register, the first in its upper half."""
    width = max(2 * bits, 16)

    def compute(a: Any, b: Any) -> Any:
        rows = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([convert(x) << bits | convert(y) for x, y in rows], f"u{width // 8}")

    return compute


def exponent(value: float, *, up: bool) -> int:
    """The code of a power of two, ``.satfinite``."""
    if math.isnan(value):
        return 255
    value = abs(value)
    if value <= 2.0**-127:
        return 0
    power = 254 if math.isinf(value) else math.frexp(value)[1] - 1 + 127
    if up and not math.isinf(value) and value > math.ldexp(1.0, power - 127):
        power += 1
    return min(power, 254)


def halves(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """A function of arrays of float64, on the halves of registers that hold 16-bit floats, rounded once."""

    def compute(*arrays: Any) -> Any:
        found = [
            narrow(function(*(wide(array >> np.uint32(shift), kind) for array in arrays)), kind)
            for shift in (0, 16)
        ]
        return found[0].astype(np.uint32) | found[1].astype(np.uint32) << np.uint32(16)

    return compute


def wide(bits: Any, kind: str) -> Any:
    """16-bit floats as float64."""
    low = np.asarray(bits).astype(np.uint16)
    if kind == "f16":
        return low.view(np.float16).astype(np.float64)
    return (low.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def narrow(values: Any, kind: str, mode: str = "rn") -> Any:
    """The patterns of the 16-bit floats that float64 (or exact fractions) round to; NaN as 0x7fff."""
    table, infinity = (HALF, 0x7C00) if kind == "f16" else (BRAIN, 0x7F80)
    limit = table[-1] + (table[-1] - table[-2]) / 2
    found = []
    for value in np.asarray(values, object).tolist():
        if value != value:
            found.append(0x7FFF)
            continue
        sign = 0x8000 if value < 0 or (value == 0 and math.copysign(1, value) < 0) else 0
        size = abs(value)
        is_infinite = size == math.inf or (mode == "rn" and size >= limit)
        found.append(sign | (infinity if is_infinite else nearest(table, min(size, table[-1]), mode=mode)))
    return np.array(found, np.uint16)


def same_halves(actual: Any, kind: str) -> Any:
    """Patterns of two 16-bit floats, with 0x7fff for every NaN."""
    parts = []
    for shift in (0, 16):
        part = (actual >> np.uint32(shift)).astype(np.uint16)
        parts.append(np.where(np.isnan(wide(part, kind)), np.uint16(0x7FFF), part).astype(np.uint32))
    return parts[0] | parts[1] << np.uint32(16)


# --- single precision ------------------------------------------------------------------------------------


def flush(x: Any) -> Any:
    """Subnormal numbers as zeros of their sign."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def flushing(function: Callable[..., Any]) -> Callable[..., Any]:
    """With ``.ftz``."""
    return lambda *arrays: flush(function(*map(flush, arrays)))


def directed(exact: Fraction, mode: str) -> float:
    """A number other than 0, rounded to float32 toward zero (rz), down (rm) or up (rp)."""
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    away = mode == ("rp" if exact > 0 else "rm")
    count = math.ceil(size / unit) if away else math.floor(size / unit)
    largest = (2 - Fraction(2) ** -23) * 2**127
    rounded = count * unit
    if rounded > largest:
        rounded = largest if not away else Fraction(2) ** 128
    found = math.inf if rounded > largest else float(rounded)
    return found if exact > 0 else -found


def rounded(function: Callable[..., Fraction], mode: str) -> Callable[..., Any]:
    """A function of fractions, rounded to float32; 7.0 stands for operands that are not finite or give 0."""

    def one(*row: float) -> float:
        if not all(map(math.isfinite, row)):
            return 7.0
        try:
            exact = function(*map(Fraction, row))
        except (ZeroDivisionError, ValueError):
            return 7.0
        return directed(exact, mode) if exact else 7.0

    def compute(*arrays: Any) -> Any:
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        return np.array([one(*row) for row in rows], np.float32)

    return compute

"""The functions of ``tpk.function``: those of libdevice that upstream has no operation for.

docs/libdevice.md defines them. A function takes NumPy values of the operands' types, with f16 and bf16 as f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from . import real_functions as real
from .elementwise import high_half, integers, signed, unsigned
from .formats import is_float, narrow, widen
from .program import Operation

Function = Callable[..., Any]


# --- integers and bits -------------------------------------------------------------------------------


def _bit_length(value: Any) -> Any:
    """The number of bits of NumPy's unsigned integers without leading zeros."""
    length = np.zeros(np.shape(value), np.int32)
    for step in (32, 16, 8, 4, 2, 1):
        if step < value.dtype.itemsize * 8:
            large = value >> value.dtype.type(step) != 0
            length += np.where(large, np.int32(step), np.int32(0))
            value = np.where(large, value >> value.dtype.type(step), value)
    return length + (value != 0)


def _clz(x: Any) -> Any:
    x = unsigned(x)
    return x.dtype.itemsize * 8 - _bit_length(x)


def _ffs(x: Any) -> Any:
    x = unsigned(x)
    return _bit_length(x & (~x + x.dtype.type(1)))


def _brev(x: Any) -> Any:
    x = unsigned(x)
    result = np.zeros_like(x)
    for place in range(x.dtype.itemsize * 8):
        bit = (x >> x.dtype.type(place)) & x.dtype.type(1)
        result = result | (bit << x.dtype.type(x.dtype.itemsize * 8 - 1 - place))
    return result


def _byte_perm(x: Any, y: Any, selectors: Any) -> Any:
    """Select four of the eight bytes of y:x. Bit 3 of a selector is ignored."""
    x, y, selectors = (unsigned(value).astype(np.uint64) for value in (x, y, selectors))
    both = x | (y << np.uint64(32))
    result: Any = np.uint64(0)
    for place in range(4):
        selector = selectors >> np.uint64(4 * place)
        byte = (both >> ((selector & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        result = result | (byte << np.uint64(8 * place))
    return result


def _mul24(sees: Function) -> Function:
    def compute(a: Any, b: Any) -> Any:
        eight = np.int32(8)
        a, b = (sees(np.asarray(value) << eight) >> sees(eight) for value in (a, b))
        return a * b

    return compute


def _sad(sees: Function) -> Function:
    def compute(a: Any, b: Any, c: Any) -> Any:
        a, b, c = sees(a), sees(b), sees(c)
        return np.where(a > b, a - b, b - a) + c

    return compute


def _average(sees: Function, up: int) -> Function:
    """The average of 32-bit integers, computed in 64 bits."""

    def compute(a: Any, b: Any) -> Any:
        return (sees(a).astype(np.int64) + sees(b).astype(np.int64) + up) >> 1

    return compute


# --- bits and parts of floats ------------------------------------------------------------------------


def _pattern(x: Any) -> Any:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def _double_of(high: Any, low: Any) -> Any:
    high, low = unsigned(high).astype(np.uint64), unsigned(low).astype(np.uint64)
    return ((high << np.uint64(32)) | low).view(np.float64)


def _saturate(x: Any) -> Any:
    """NaN becomes 0."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1] - 1


def _ilogb(x: Any) -> Any:
    extreme = np.where(np.isinf(x), np.int32(2**31 - 1), np.int32(-(2**31)))
    return np.where(np.isfinite(x) & (x != 0), _exponent(x), extreme)


def _logb(x: Any) -> Any:
    special = np.where(x == 0, -np.inf, np.abs(x))
    return np.where(np.isfinite(x) & (x != 0), _exponent(x), special).astype(x.dtype)


def _remainder(x: Any, y: Any) -> Any:
    kind = np.result_type(x, y)

    def one(a: float, b: float) -> float:
        return math.nan if math.isinf(a) or b == 0.0 else math.remainder(a, b)

    wide = (np.asarray(value).astype(np.float64) for value in (x, y))
    return np.asarray(np.vectorize(one, otypes=[np.float64])(*wide)).astype(kind)


def _positive_difference(x: Any, y: Any) -> Any:
    zero = np.result_type(x, y).type(0)
    return np.where(np.isnan(x) | np.isnan(y), x + y, np.where(x > y, x - y, zero))


# --- conversions -------------------------------------------------------------------------------------

_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def to_integer(rounding: Function, bits: int, *, is_unsigned: bool = False) -> Function:
    """Round to an integer and saturate. NaN gives only the highest bit set, except 0 from f32 to 32 bits."""
    low, high = (0, (1 << bits) - 1) if is_unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def compute(x: Any) -> Any:
        x = np.asarray(x)
        result = integers(real.saturated(rounding(x).astype(np.float64), low, high), f"i{bits}")
        if x.dtype == np.float32 and bits == 32:
            return result
        return np.where(np.isnan(x), result.dtype.type(-(1 << (bits - 1))), result)

    return compute


def _converted(kind: Any, mode: str, sees: Function) -> Function:
    """Convert an integer or a float to a floating-point type, with a rounding mode."""

    def compute(x: Any) -> Any:
        x = sees(x)
        return real.directed(lambda number: number, mode, lambda x: x.astype(kind))(x)

    return compute


def _as_it_is(x: Any) -> Any:
    return np.asarray(x)


# --- arithmetic with a rounding mode -----------------------------------------------------------------


def _root(x: Fraction) -> Fraction | None:
    """The square root, or a number that rounds to the same value in every type and mode."""
    if x < 0:
        return None
    shift = 2 * max(0, 200 + (x.denominator.bit_length() - x.numerator.bit_length()) // 2)
    scaled = (x.numerator << shift) // x.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and (x.numerator << shift) % x.denominator == 0
    return Fraction(2 * root + (not exact), 2 << (shift // 2))


_ARITHMETIC: dict[str, Any] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, lambda a, b: -(-a + -b)),
    "sub": (lambda a, b: a - b, lambda a, b: a - b, lambda a, b: -(-a - -b)),
    "mul": (lambda a, b: a * b, lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a / b if b else None, lambda a, b: a / b, lambda a, b: a / b),
    "rcp": (lambda a: 1 / a if a else None, lambda a: a.dtype.type(1) / a, lambda a: a.dtype.type(1) / a),
    "sqrt": (_root, np.sqrt, np.sqrt),
    "fma": (lambda a, b, c: a * b + c, real.fma_nearly, lambda a, b, c: -real.fma_nearly(-a, b, -c)),
}
"""Each operation computed exactly, by NumPy, and by NumPy with the sign of 0 for rounding down."""


def _directed(name: str, mode: str) -> Function:
    exactly, nearly, down = _ARITHMETIC[name]
    return real.directed(exactly, mode, down if mode == "rd" else nearly)


FUNCTIONS: dict[str, Function] = {
    "clz": _clz,
    "popc": lambda x: np.bitwise_count(unsigned(x)),
    "ffs": _ffs,
    "brev": _brev,
    "byte_perm": _byte_perm,
    "mulhi": lambda a, b: high_half(signed(a), signed(b)),
    "umulhi": lambda a, b: high_half(unsigned(a), unsigned(b)),
    "mul24": _mul24(signed),
    "umul24": _mul24(unsigned),
    "sad": _sad(signed),
    "usad": _sad(unsigned),
    "hadd": _average(signed, 0),
    "uhadd": _average(unsigned, 0),
    "rhadd": _average(signed, 1),
    "urhadd": _average(unsigned, 1),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "saturatef": _saturate,
    "hiloint2double": _double_of,
    "double2loint": lambda x: _pattern(x) & np.uint64(0xFFFFFFFF),
    "double2hiint": lambda x: _pattern(x) >> np.uint64(32),
    "rcp64h": lambda x: (_pattern(1.0 / np.asarray(x)) & np.uint64(0xFFFFFFFF00000000)).view(np.float64),
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "rcp_rn": lambda x: np.asarray(x).dtype.type(1) / x,
    "rsqrt_rn": lambda x: (1 / np.sqrt(np.asarray(x).astype(np.float64))).astype(np.float32),
    "llrint": to_integer(np.rint, 64),
    "llround": to_integer(real.away, 64),
    **{
        f"{source}2{target}_{mode}": to_integer(rounding, bits, is_unsigned=target[0] == "u")
        for source in ("float", "double")
        for target, bits in (("int", 32), ("uint", 32), ("ll", 64), ("ull", 64))
        for mode, rounding in _WHOLE.items()
    },
    **{
        f"{name}_{mode}": _directed(name, mode)
        for name in ("add", "sub", "mul", "div", "rcp", "sqrt", "fma")
        for mode in ("rz", "rd", "ru")
    },
    **{
        f"{name}_{mode}": _converted(kind, mode, sees)
        for name, kind, sees in (
            ("double2float", np.float32, _as_it_is), ("int2float", np.float32, signed),
            ("uint2float", np.float32, unsigned), ("ll2float", np.float32, signed),
            ("ull2float", np.float32, unsigned), ("ll2double", np.float64, signed),
            ("ull2double", np.float64, unsigned),
        )
        for mode in ("rz", "rd", "ru")
    },
    "nextafter": np.nextafter,
    "ldexp": np.ldexp,
    "ilogb": _ilogb,
    "logb": _logb,
    "fmod": np.fmod,
    "remainder": _remainder,
    "fdim": _positive_difference,
    **real.SPECIAL,
    "jn": real.bessel("jn"),
    "yn": real.bessel("yn"),
}  # fmt: skip
"""By the attribute `name` of ``tpk.function``."""


def compute(op: Operation, *values: Any) -> Any:
    """``tpk.function``. Raises `NotInterpreted` for a function that is not in the table."""
    name = op.view.name
    if name not in FUNCTIONS:
        raise op.unknown(
            f"the interpreter has no function {name}", "docs/libdevice.md lists the functions that it has"
        )
    wide = [
        widen(value, element) if is_float(element) else value
        for value, element in zip(values, op.sources, strict=True)
    ]
    result = np.asarray(FUNCTIONS[name](*wide))
    return narrow(result, op.element) if is_float(op.element) else integers(result, op.element)

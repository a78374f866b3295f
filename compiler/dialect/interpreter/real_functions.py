"""Functions of real numbers on NumPy arrays of f32 or f64, accurate to a few units in the last place.

f32 is computed in f64, and f64 in NumPy's longest float. Special functions that NumPy lacks come from the C library, or
are built from its functions here.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .formats import odd

Real = Callable[..., Any]

_LONG = np.longdouble


def _wide(function: Real) -> Real:
    """A function computed in a wider type than that of its arguments, and rounded to theirs."""

    @functools.wraps(function)
    def compute(*values: Any) -> Any:
        kind = np.result_type(*values)
        wide = np.float64 if kind == np.float32 else _LONG
        return np.asarray(function(*(np.asarray(value).astype(wide) for value in values))).astype(kind)

    return compute


def _each(function: Real, *, otherwise: float = math.nan) -> Real:
    """A function of Python's floats; `otherwise` is the result where it is undefined."""

    def one(*values: float) -> float:
        try:
            return float(function(*values))
        except OverflowError:
            return math.inf
        except ValueError:
            return otherwise

    vectorised = np.vectorize(one, otypes=[np.float64])

    def compute(*values: Any) -> Any:
        kind = np.result_type(*values)
        return np.asarray(vectorised(*(np.asarray(value).astype(np.float64) for value in values))).astype(
            kind
        )

    return compute


@functools.cache
def _library(name: str, *kinds: Any) -> Real:
    """A C library function of floats in double precision."""
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype, function.argtypes = ctypes.c_double, list(kinds or (ctypes.c_double,))
    return function  # type: ignore[no-any-return]


def _of_library(name: str) -> Real:
    return _each(lambda *values: _library(name)(*values))


# --- rounding and integers ---------------------------------------------------------------------------


def saturated(number: Any, low: int, high: int) -> Any:
    """Integral f64 numbers as integers, saturated to the range; NaN as 0."""
    number = np.asarray(np.nan_to_num(number, nan=0.0, posinf=np.inf, neginf=-np.inf))
    kind = np.uint64 if high > 1 << 63 else np.int64
    inside = (number > low) & (number < high)
    whole = np.where(inside, number, 0.0).astype(kind)
    return np.where(number >= high, kind(high), np.where(number <= low, kind(low), whole))


def away(x: Any) -> Any:
    """Round to the nearest integer, halves away from zero."""
    down = np.trunc(x)
    return np.copysign(np.where(np.abs(x - down) >= 0.5, down + np.sign(x), down), x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    if np.result_type(a, b, c) == np.float64:
        return directed(_fma_exactly, "rn", fma_nearly)(a, b, c)
    product = np.asarray(a).astype(np.float64) * np.asarray(b).astype(np.float64)  # exact
    c = np.asarray(c).astype(np.float64)
    total = product + c
    other = total - product
    error = (product - (total - other)) + (c - other)
    return odd(total, np.where(np.isfinite(error), error, 0.0)).astype(np.float32)


def fma_nearly(a: Any, b: Any, c: Any) -> Any:
    """The same rounded twice; correct for infinities and NaN."""
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)


def _fma_exactly(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def directed(exactly: Callable[..., Fraction | None], mode: str, nearly: Real) -> Real:
    """A function with a rounding mode: to nearest even (rn), toward zero (rz), down (rd) or up (ru).

    `exactly` gives the exact value for finite numbers, None where it is undefined. `nearly` is the function by NumPy,
    whose result is used for other arguments, and for the sign of 0.
    """

    def compute(*values: Any) -> Any:
        values = np.broadcast_arrays(*values)
        near = np.asarray(nearly(*values))
        result = near.ravel().copy()
        for index, numbers in enumerate(zip(*(value.ravel().tolist() for value in values), strict=True)):
            if all(map(math.isfinite, numbers)):
                value = exactly(*map(Fraction, numbers))
                if value:
                    result[index] = rounded(value, result.dtype, mode)
        return result.reshape(near.shape)

    return compute


def rounded(value: Fraction, kind: np.dtype[Any], mode: str) -> Any:
    """The f32 or f64 that a nonzero number is rounded to."""
    digits, lowest = (24, -149) if kind == np.float32 else (53, -1074)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    whole, rest = divmod(size / unit, 1)
    outward = mode == ("rd" if value < 0 else "ru")
    half = Fraction(1, 2)
    up = rest > 0 if outward else mode == "rn" and (rest > half or (rest == half and whole % 2 == 1))
    found, largest = (whole + up) * unit, Fraction(float(np.finfo(kind).max))
    if found <= largest:
        number = float(found)
    else:
        number = math.inf if outward or mode == "rn" else float(largest)
    return kind.type(-number if value < 0 else number)


# --- elementary functions ----------------------------------------------------------------------------


def power(base: Any, exponent: Any) -> Any:
    """base**exponent in the type of the base."""
    kind = np.asarray(base).dtype
    wide = np.float64 if kind == np.float32 else _LONG
    return np.power(np.asarray(base).astype(wide), np.asarray(exponent).astype(wide)).astype(kind)


@_wide
def exp10(x: Any) -> Any:
    return np.power(x.dtype.type(10), x)


def _of_pi(function: Real, other: Real) -> Real:
    """sin or cos of pi times x: `function` and `other`, by quarter turns."""
    odd_function = function is np.sin

    @_wide
    def compute(x: Any) -> Any:
        turn = np.fmod(np.abs(x), 2)
        quarter: Any = np.rint(turn * 2).astype(np.int64)
        rest = (turn - quarter / np.asarray(2, x.dtype)) * x.dtype.type(_PI)
        straight: Any = np.where(quarter % 2 == 0, function(rest), other(rest))
        negative = quarter % 4 >= 2 if odd_function else (quarter % 4 == 1) | (quarter % 4 == 2)
        zero = (straight == 0) & (quarter % 2 == (0 if odd_function else 1))
        result = np.where(zero, x.dtype.type(0), np.where(negative, -straight, straight))
        return np.where(np.signbit(x), -result, result) if odd_function else result

    return compute


_PI = _LONG("3.14159265358979323846264338327950288")


def _norm(*values: Any) -> Any:
    total = np.sqrt(sum(value * value for value in values))
    infinite = functools.reduce(np.logical_or, map(np.isinf, values))
    return np.where(infinite, np.inf, total)


norm = _wide(_norm)
reciprocal_norm = _wide(lambda *values: 1 / _norm(*values))
hypot = _wide(_norm)


# --- special functions -------------------------------------------------------------------------------


def _erfcx(x: float) -> float:
    """exp(x * x) * erfc(x)."""
    if x < 10.0:
        return float(np.exp(_LONG(x) * _LONG(x)) * _LONG(math.erfc(x)))
    if x > 1e8:
        return 1.0 / (x * math.sqrt(math.pi))
    total = term = _LONG(1)
    for n in range(1, 40):
        following = -term * (2 * n - 1) / (2 * _LONG(x) * _LONG(x))
        if abs(following) >= abs(term):
            break
        term = following
        total += term
    return float(total / (_LONG(x) * np.sqrt(_PI)))


def _erfcinv(y: float) -> float:
    if not 0.0 <= y <= 2.0:
        return math.nan
    if y in (0.0, 2.0):
        return math.inf if y == 0.0 else -math.inf
    if y > 1.0:
        return -_erfcinv(2.0 - y) if y >= 1.5 else -_erfinv(y - 1.0)
    if y > 0.5:
        return _erfinv(1.0 - y)
    x = math.sqrt(max(-math.log(y * math.sqrt(math.pi) * max(math.sqrt(-math.log(y)), 0.5)), 0.2))
    for _ in range(40):  # Newton's iteration for the logarithm, which does not underflow
        scaled = _LONG(_erfcx(x))
        error = np.log(scaled) - _LONG(x) * _LONG(x) - np.log(_LONG(y))
        step = float(error * scaled * np.sqrt(_PI) / 2)
        x += step
        if abs(step) < 1e-17 * x:
            break
    return x


def _erfinv(x: float) -> float:
    if not -1.0 <= x <= 1.0:
        return math.nan
    if abs(x) > 0.5:
        return math.copysign(_erfcinv(1.0 - abs(x)), x)
    if x == 0.0 or abs(x) < 1e-150:
        return float(_LONG(x) * np.sqrt(_PI) / 2)
    y = x * math.sqrt(math.pi) / 2
    for _ in range(8):
        y -= (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


def _normcdf(x: float) -> float:
    """erfc(-x / sqrt(2)) / 2, corrected for the rounding error of erfc's argument."""
    if math.isinf(x) or abs(x) > 40.0:
        return 1.0 if x > 0 else 0.0
    exact = -_LONG(x) / np.sqrt(_LONG(2))
    near = float(exact)
    rest = exact - _LONG(near)
    slope = -2 / np.sqrt(_PI) * np.exp(-_LONG(near) * _LONG(near))
    if near > 20.0:  # erfc has few bits there
        value = _LONG(_erfcx(near)) * np.exp(-exact * exact)
    else:
        value = _LONG(math.erfc(near)) + slope * rest
    return float(value / 2)


def _normcdfinv(p: float) -> float:
    if not 0.0 <= p <= 1.0:
        return math.nan
    if p > 0.75:
        return float(np.sqrt(_LONG(2)) * _LONG(_erfcinv(2.0 * (1.0 - p))))
    return float(-np.sqrt(_LONG(2)) * _LONG(_erfcinv(2.0 * p) if p < 0.25 else -_erfinv(2.0 * p - 1.0)))


def _gamma(x: float) -> float:
    if x == 0.0:
        return math.copysign(math.inf, x)
    return math.gamma(x)


def _bessel_i(order: int) -> Real:
    @_wide
    def compute(x: Any) -> Any:
        """The sum of (x/2)**(2k + order) / k! / (k + order)!.

        All terms have the same sign, so there is no cancellation.
        """
        half = np.minimum(np.abs(x), 750).astype(_LONG) / 2
        term = half**order
        total = term.copy()
        for k in range(1, 1000):
            term = term * half * half / (k * (k + order))
            total = total + term
            if not (term > total * _LONG(1e-22)).any():
                break
        result = np.where(np.isnan(x), x, total)
        return np.where(np.signbit(x), -result, result) if order == 1 else result

    return compute


def bessel(name: str) -> Real:
    """jn or yn of the C library, of integer order."""

    def one(order: int, x: float) -> float:
        return _library(name, ctypes.c_int, ctypes.c_double)(int(order), x)  # type: ignore[no-any-return]

    vectorised = np.vectorize(one, otypes=[np.float64])

    def compute(order: Any, x: Any) -> Any:
        x = np.asarray(x)
        return np.asarray(vectorised(order, x.astype(np.float64))).astype(x.dtype)

    return compute


SPECIAL: dict[str, Real] = {
    "erfcx": _each(_erfcx),
    "erfinv": _each(_erfinv),
    "erfcinv": _each(_erfcinv),
    "normcdf": _each(_normcdf),
    "normcdfinv": _each(_normcdfinv),
    "tgamma": _each(_gamma),
    "lgamma": _each(math.lgamma, otherwise=math.inf),
    **{name: _of_library(name) for name in ("j0", "j1", "y0", "y1")},
    "cyl_bessel_i0": _bessel_i(0),
    "cyl_bessel_i1": _bessel_i(1),
    "exp10": exp10,
    "sinpi": _of_pi(np.sin, np.cos),
    "cospi": _of_pi(np.cos, np.sin),
    "rcbrt": _wide(lambda x: 1 / np.cbrt(x)),
    "hypot": hypot,
    "rhypot": reciprocal_norm,
    **dict.fromkeys(("norm3d", "norm4d"), norm),
    **dict.fromkeys(("rnorm3d", "rnorm4d"), reciprocal_norm),
}
"""Functions of libdevice that upstream has no operation for."""

UPSTREAM: dict[str, Real] = {
    **{
        name: _wide(getattr(np, name))
        for name in (
            "cbrt", "cos", "cosh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan",
            "tanh",
        )
    },
    **{
        name: _wide(getattr(np, f"arc{name[1:]}"))
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")
    },
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "copysign", "sqrt")},
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "powf": power,
    "rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "round": away,
    "roundeven": np.rint,
    "fma": fma,
}  # fmt: skip
"""By the names of upstream's operations, without ``math.``."""

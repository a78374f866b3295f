"""What the functions of libdevice are in mathematics, by mpmath, and distances from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

Array = np.ndarray[Any, Any]
Exact = Callable[..., Any]

mp.prec = 240  # erfc of 38 is 1 less 1e-629 parts: what subtracts does so with bits to spare


def _log1p(x: Any) -> Any:
    return mpmath.log1p(x) if abs(x) < 1e-3 else mpmath.log(1 + x)


def _erfcx(x: Any) -> Any:
    return mpmath.exp(x * x) * mpmath.erfc(x)


def _inverse(function: Exact, slope: Exact, start: Callable[[float], float]) -> Exact:
    """The inverse by Newton's method, from a start in double precision."""

    def solve(target: Any) -> Any:
        y = mpf(start(float(target)))
        for _ in range(60):
            step = (function(y) - target) / slope(y)
            y -= step
            if abs(step) < abs(y) * mpf(2) ** -120:
                return y
        raise AssertionError(f"no convergence for {target}")

    return solve


def _erf_slope(y: Any) -> Any:
    return 2 / mpmath.sqrt(mp.pi) * mpmath.exp(-y * y)


def _start_of_erfinv(x: float) -> float:
    rest = math.log1p(-x * x)
    half = 4.33 + rest / 2
    return math.copysign(math.sqrt(max(math.sqrt(half * half - rest / 0.147) - half, 0.0)), x) or 0.886 * x


def _erfcinv(q: Any) -> Any:
    """Newton's method on the logarithm, which is nearly a parabola; from below it does not overshoot."""
    if q > 1:
        return -_erfcinv(2 - q)
    y = mpmath.sqrt(-mpmath.log(q)) * mpf(0.9) if q < mpf("0.1") else mpf(0.1)
    for _ in range(200):
        value = mpmath.erfc(y)
        step = (mpmath.log(value) - mpmath.log(q)) * value / _erf_slope(y)
        y += step
        if abs(step) <= max(abs(y), mpf(2) ** -60) * mpf(2) ** -130:
            return y
    raise AssertionError(f"no convergence for {q}")


def _erfinv(x: Any) -> Any:
    if abs(x) > 0.9:
        return mpmath.sign(x) * _erfcinv(1 - abs(x))
    return _inverse(mpmath.erf, _erf_slope, _start_of_erfinv)(x)


def _power(x: Any, y: Any) -> Any:
    return mpmath.power(x, y)


def _norm(*parts: Any) -> Any:
    return mpmath.sqrt(sum(part * part for part in parts))


def _lgamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x)))


EXACT: dict[str, Exact] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x,
    "exp10": lambda x: mpf(10) ** x,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "log1p": _log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinpi": mpmath.sinpi,
    "cospi": mpmath.cospi,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "rsqrt_rn": lambda x: 1 / mpmath.sqrt(x),
    "sqrt": mpmath.sqrt,
    "atan2": mpmath.atan2,
    "pow": _power,
    "hypot": _norm,
    "rhypot": lambda *parts: 1 / _norm(*parts),
    "norm3d": _norm,
    "rnorm3d": lambda *parts: 1 / _norm(*parts),
    "norm4d": _norm,
    "rnorm4d": lambda *parts: 1 / _norm(*parts),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "erfcinv": _erfcinv,
    "normcdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "normcdfinv": lambda x: -mpmath.sqrt(2) * _erfcinv(2 * x),
    "tgamma": mpmath.gamma,
    "lgamma": _lgamma,
    "j0": lambda x: mpmath.besselj(0, x),
    "j1": lambda x: mpmath.besselj(1, x),
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
    "jn": lambda n, x: mpmath.besselj(int(n), x),
    "yn": lambda n, x: mpmath.bessely(int(n), x),
    "cyl_bessel_i0": lambda x: mpmath.besseli(0, x),
    "cyl_bessel_i1": lambda x: mpmath.besseli(1, x),
}
"""Functions that are not exact, for finite operands in their domain."""


def unit(exact: Any, precision: int, lowest: int) -> Any:
    """One unit in the last place of a float type at `exact`; `lowest` is the exponent of its smallest number."""
    if exact == 0:
        return mpf(2) ** lowest
    exponent = int(mpmath.floor(mpmath.log(abs(exact), 2)))
    if mpf(2) ** exponent > abs(exact):
        exponent -= 1
    return mpf(2) ** max(exponent - precision + 1, lowest)


FORMATS = {"fp32": (24, -149, 128), "fp64": (53, -1074, 1024)}
"""Bits of the significand, exponents of the smallest number and of the first power of two that is none."""


def distance(actual: float, exact: Any, kind: str) -> float:
    """How many units in the last place `actual` is from `exact`; an infinity where `exact` overflows is at 0."""
    precision, lowest, highest = FORMATS[kind]
    limit = mpf(2) ** highest - mpf(2) ** (highest - precision - 1)
    if not math.isfinite(actual):
        return 0.0 if abs(exact) >= limit * (1 - mpf(2) ** -precision) and (actual > 0) == (exact > 0) else math.inf
    return float(abs(mpf(actual) - exact) / unit(exact, precision, lowest))

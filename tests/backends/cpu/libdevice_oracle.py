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

mp.prec = 180


def _log1p(x: Any) -> Any:
    return mpmath.log1p(x) if abs(x) < 1e-3 else mpmath.log(1 + x)


def _erfcx(x: Any) -> Any:
    if x > 1e9:  # two terms of the asymptotic expansion are enough, and erfc would need billions of digits
        return (1 - 1 / (2 * x * x)) / (x * mpmath.sqrt(mp.pi))
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


# --- operands ------------------------------------------------------------------------------------

Sampler = Callable[[np.random.Generator, int, bool], Array]
"""Operands in float64 for a generator, a count, and whether they are for double precision."""


def _between(single: tuple[float, float], double: tuple[float, float] | None = None) -> Sampler:
    def draw(random: np.random.Generator, count: int, is_double: bool) -> Array:
        return random.uniform(*(double or single) if is_double else single, count)

    return draw


def _magnitudes(lowest: float, highest: float | None = None, *, signed: bool = True) -> Sampler:
    """Of every size from 2**lowest to 2**highest (by default nearly the largest number)."""

    def draw(random: np.random.Generator, count: int, is_double: bool) -> Array:
        top = (1000.0 if is_double else 126.0) if highest is None else highest
        bottom = max(lowest, -1070.0 if is_double else -145.0)
        values: Array = 2.0 ** random.uniform(bottom, top, count)
        return values * random.choice([-1.0, 1.0], count) if signed else values

    return draw


def _mixed(*samplers: Sampler) -> Sampler:
    def draw(random: np.random.Generator, count: int, is_double: bool) -> Array:
        parts = [sampler(random, count // len(samplers) + 1, is_double) for sampler in samplers]
        return np.concatenate(parts)[:count]

    return draw


def _moved(sampler: Sampler, center: float) -> Sampler:
    return lambda random, count, is_double: center + sampler(random, count, is_double)


_ALL = _mixed(_between((-10, 10)), _magnitudes(-1080))
_POSITIVE = _mixed(_between((0.3, 3)), _magnitudes(-1080, signed=False))
_UNIT = _mixed(_between((-1, 1)), _magnitudes(-80, 0), _moved(_magnitudes(-20, -1, signed=False), -1.0))
_ANGLES = _mixed(_between((-100, 100)), _magnitudes(-40))
_WAVES = _mixed(_between((-60, 60)), _magnitudes(-30, 11))
_POSITIVE_WAVES = _mixed(_between((0.01, 60)), _magnitudes(-30, 11, signed=False))
_FACTORS = _magnitudes(-100, 100)

SAMPLES: dict[str, Sampler] = {
    "exp": _between((-104, 89), (-746, 710)),
    "exp2": _between((-150, 128.5), (-1075, 1024.5)),
    "exp10": _between((-45.5, 38.7), (-324, 308.4)),
    "expm1": _mixed(_between((-20, 89), (-40, 710)), _magnitudes(-60, 2)),
    "log1p": _mixed(_between((-1, 3)), _magnitudes(-60, 0), _magnitudes(0, signed=False)),
    "sin": _ANGLES,
    "cos": _ANGLES,
    "tan": _ANGLES,
    "sinpi": _mixed(_between((-4, 4)), _magnitudes(-60, 50)),
    "cospi": _mixed(_between((-4, 4)), _magnitudes(-60, 50)),
    "sinh": _mixed(_between((-89.5, 89.5), (-711, 711)), _magnitudes(-60, 2)),
    "cosh": _between((-89.5, 89.5), (-711, 711)),
    "tanh": _mixed(_between((-10, 10), (-20, 20)), _magnitudes(-60, 3)),
    "acosh": _mixed(_moved(_magnitudes(-20, 10, signed=False), 1.0), _magnitudes(0, signed=False)),
    "pow": _FACTORS,
    "erf": _mixed(_between((-4.5, 4.5), (-6, 6)), _magnitudes(-60, 1)),
    "erfc": _between((-4, 10.1), (-6, 26.6)),
    "erfcx": _mixed(_between((-9.3, 30), (-26.6, 30)), _magnitudes(-60, signed=False)),
    "erfcinv": _mixed(_between((0, 2)), _magnitudes(-1080, 0, signed=False)),
    "normcdf": _between((-14.2, 6), (-38.4, 9)),
    "normcdfinv": _mixed(
        _between((0, 1)), _magnitudes(-1080, -1, signed=False), _moved(_magnitudes(-20, -2), 0.5)
    ),
    "tgamma": _mixed(_between((-38, 35.1), (-171, 171.7)), _between((-5, 5))),
    "lgamma": _mixed(_between((-40, 40)), _between((-3, 4)), _magnitudes(-60, 120, signed=False)),
    "cyl_bessel_i0": _mixed(_between((-91, 91), (-713, 713)), _between((-40, 40))),
    "cyl_bessel_i1": _mixed(_between((-91, 91), (-713, 713)), _between((-40, 40)), _magnitudes(-60, 0)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "rsqrt_rn"), _POSITIVE),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), _UNIT),
    **dict.fromkeys(("j0", "j1", "jn"), _WAVES),
    **dict.fromkeys(("y0", "y1", "yn"), _POSITIVE_WAVES),
}
"""Operands in the domain of a function, where its results are finite or overflow; others take any number."""


def samples(name: str, count: int, kind: str, seed: int = 0) -> Array:
    """Operands of a float type for the function `name`."""
    random = np.random.default_rng([seed, *name.encode()])
    with np.errstate(over="ignore"):
        drawn = SAMPLES.get(name, _ALL)(random, count, kind == "fp64")
    return drawn.astype(np.float64 if kind == "fp64" else np.float32)


# --- distances -----------------------------------------------------------------------------------


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
        return (
            0.0
            if abs(exact) >= limit * (1 - mpf(2) ** -precision) and (actual > 0) == (exact > 0)
            else math.inf
        )
    return float(abs(mpf(actual) - exact) / unit(exact, precision, lowest))

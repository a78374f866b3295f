"""Functions of libdevice that AscendNPU-IR has no operation for, as arithmetic in f32: it takes no external functions.

The other functions that are external are refused: `erfinv`, `erfcinv`, `erfcx`, the gamma and the Bessel functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes

from .ascend_operations import cbrt, copysign

_NORMAL = 2.0**-126
_LOG10_2 = (4932 / 2**14, math.log10(2.0) - 4932 / 2**14)
"""log10(2) as a number of 14 bits, whose product with an exponent is exact, and the rest."""


def _fmod(x: Lanes, y: Lanes) -> Lanes:
    return x._binary("remf", x.value, y.value)


def _exponent(x: Lanes) -> Lanes:
    """The exponent of a finite number other than 0."""
    small = x.absolute() < _NORMAL
    bits = small.select(x * 2.0**24, x).pattern()
    exponent = ((bits >> 23) & 255) - 127
    return small.select(exponent - 24, exponent)


def _ilogb(x: Lanes) -> Lanes:
    exponent = _exponent(x)
    exponent = x.absolute().equals(math.inf).select((1 << 31) - 1, exponent)
    return (x.equals(0.0) | x.differs(x)).select(-(1 << 31), exponent)


def _logb(x: Lanes) -> Lanes:
    number = _exponent(x).cast("arith.sitofp", "f32")
    size = x.absolute()
    number = (size.equals(math.inf) | x.differs(x)).select(size, number)
    return x.equals(0.0).select(-math.inf, number)


def _nextafter(x: Lanes, y: Lanes) -> Lanes:
    """Numbers of one sign are ordered like their bits."""
    bits = x.pattern()
    away = (x < y).equals(x > 0.0)
    moved = away.select(bits + 1, bits - 1).pattern()
    moved = x.equals(0.0).select(copysign(moved.constant(2.0**-149), y), moved)
    moved = x.equals(y).select(y, moved)
    return (x.differs(x) | y.differs(y)).select(x + y, moved)


def _hypot(x: Lanes, y: Lanes) -> Lanes:
    x, y = x.absolute(), y.absolute()
    larger = x > y
    most, least = larger.select(x, y), larger.select(y, x)
    ratio = least / most
    length = (ratio * ratio + 1.0).unary("math.sqrt") * most
    length = most.equals(0.0).select(0.0, length)
    length = (x.differs(x) | y.differs(y)).select(x + y, length)
    return (x.equals(math.inf) | y.equals(math.inf)).select(math.inf, length)


def _fdim(x: Lanes, y: Lanes) -> Lanes:
    return (x <= y).select(0.0, x - y)


def _exp10(x: Lanes) -> Lanes:
    """A power of two, and the exponential of what is left of the logarithm."""
    bounded = (x > 40.0).select(40.0, (x < -50.0).select(-50.0, x))
    power = (bounded * (1.0 / math.log10(2.0)) + 0.5).unary("math.floor")
    rest = (bounded - power * _LOG10_2[0]) - power * _LOG10_2[1]
    half = (power * 0.5).unary("math.floor")
    number = (rest * math.log(10.0)).unary("math.exp")
    number = number * half.unary("math.exp2") * (power - half).unary("math.exp2")
    return x.differs(x).select(x, number)


def _rcbrt(x: Lanes) -> Lanes:
    return 1.0 / cbrt(x)


def _turns(x: Lanes) -> Lanes:
    """The number of half turns, from -1 to 1."""
    turns = x - (x * 0.5).unary("math.floor") * 2.0
    turns = (turns > 1.0).select(turns - 2.0, turns)
    return (x.absolute() <= 1.0).select(x, turns)


def _sinpi(x: Lanes) -> Lanes:
    turns = _turns(x)
    near = (turns.absolute() > 0.5).select(copysign(turns.constant(1.0), turns) - turns, turns)
    return (near * math.pi).unary("math.sin")


def _cospi(x: Lanes) -> Lanes:
    return ((0.5 - _turns(x).absolute()) * math.pi).unary("math.sin")


FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "cospi": _cospi,
    "exp10": _exp10,
    "fdim": _fdim,
    "fmod": _fmod,
    "hypot": _hypot,
    "ilogb": _ilogb,
    "logb": _logb,
    "nextafter": _nextafter,
    "rcbrt": _rcbrt,
    "sinpi": _sinpi,
}
"""By the `name` of ``tpk.function``."""

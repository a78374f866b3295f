"""`triton.language.extra.libdevice`: the functions that mathematics defines and that NumPy or the C library
provides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression
from triton_porting_kit.conformance.language.ops.functions import arguments, denormals, without_denormals
from triton_porting_kit.conformance.language.shapes import DENORMALS, ODD, Shape, tile
from triton_porting_kit.conformance.language.table import EXACT, WIDE, Op, Tolerance
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "libdevice"
SHAPES = (Shape("scalar", (120,), scalar=True), tile(1000), ODD, DENORMALS)
CUDA = "the error bound that CUDA's math library, which defines the interface, documents"
TWO = Tolerance(2.0, CUDA)
THREE = Tolerance({"fp32": 3.0, "fp64": 2.0}, CUDA)
FOUR = Tolerance(4.0, CUDA)
TANGENT = Tolerance({"fp32": 4.0, "fp64": 2.0}, CUDA)
SIX = Tolerance(6.0, CUDA)
GAMMA = Tolerance({"fp32": 5.0, "fp64": 10.0}, CUDA)
LOG_GAMMA = Tolerance(
    {"fp32": 6.0, "fp64": 12.0}, f"{CUDA} (fp64: 4); in fp64 plus up to 8 for the oracle, Python's lgamma"
)
WITH_ORACLE = Tolerance(
    {"fp32": 4.0, "fp64": 5.0}, f"{CUDA}; in fp64 plus one for the oracle, the C library's function"
)
ROOT = Tolerance({"fp32": 2.0}, "in fp32 an approximation with a relative error of 2^-23")


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def one(v: Any) -> float:
        try:
            return function(float(v))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return lambda x: np.array([one(v) for v in x.ravel()]).reshape(x.shape)


def _lib(
    name: str,
    oracle: Callable[..., Any],
    tolerance: Tolerance = TWO,
    types: tuple[str, ...] = WIDE,
    count: int = 1,
    **more: Any,
) -> Op:
    call = ", ".join("xyz"[:count])
    form = f"libdevice.{name}({call})"
    flushes = "inputs" not in more or "within" in more
    if "within" in more:
        more["inputs"] = _between(*more.pop("within"))
    shapes = SHAPES if flushes else SHAPES[:-1]
    return expression(f"libdevice_{name}", SECTION, form, oracle, types, operands=("T",) * count, tolerance=tolerance,
        **defaulted(more, {"shapes": shapes, "inputs": arguments if count == 1 else _several, "refused": ()}), may_flush=flushes)  # fmt: skip


def _several(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    found = []
    for seed, kind in enumerate(kinds):
        if shape.name == DENORMALS.name:
            found.append(denormals(kind, shape, seed))
            continue
        random = np.random.default_rng(seed)
        grid = np.concatenate(
            [
                samples(kind, 13).astype(np.float64),
                random.standard_normal(500) * 10,
                2.0 ** random.uniform(-30, 30, 200),
            ]
        )
        values = from_float64(random.permutation(np.resize(grid, shape.count)), kind)
        found.append(without_denormals(values, kind).reshape(shape.extents))
    return tuple(found)


def _integers(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    return tuple(np.random.default_rng(seed).permutation(np.resize(samples(kind, 100, seed), shape.count)).reshape(shape.extents)
        for seed, kind in enumerate(kinds))  # fmt: skip


def _between(low: float, high: float) -> Any:
    """The usual arguments, half of them replaced by numbers from an interval."""

    def values(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
        (found,) = arguments(kinds, shape)
        if shape.name != DENORMALS.name and shape.count > 100:
            random = np.random.default_rng(5)
            inside = from_float64(random.uniform(low, high, shape.count), kinds[0]).reshape(shape.extents)
            is_edge = np.arange(shape.count).reshape(shape.extents) < 50
            found = np.where((random.random(shape.extents) < 0.5) & ~is_edge, inside, found)
        return (found,)

    return values


def _bits(function: Callable[[int, int], int]) -> Any:
    return lambda x, kind: np.asarray(
        np.frompyfunc(lambda v: function(v % (1 << kind.bits), kind.bits), 1, 1)(x), object
    )


PI = np.longdouble("3.14159265358979323846264338327950288")


def _sinpi(x: Array) -> Array:
    turn = np.fmod(x.astype(np.longdouble), 2)
    exact = np.sin(PI * turn)
    return np.where(np.trunc(turn) == turn, np.copysign(0.0, x), exact)


def _cospi(x: Array) -> Array:
    turn = np.fmod(np.abs(x.astype(np.longdouble)), 2)
    return np.where(np.abs(turn - 1) == 0.5, 0.0, np.cos(PI * turn))


def _root(is_above: Callable[[float], bool]) -> float:
    """The smallest float64 from 0 to 30 that is above the boundary, by bisection."""
    low, high = 0.0, 30.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return high


def _erfinv(x: float) -> float:
    size = abs(x)
    if not 0 < size < 1:
        return x if size == 0 else math.copysign(math.inf, x) if size == 1 else math.nan
    if size < 1e-8:
        return x * math.sqrt(math.pi) / 2
    root = _root(lambda y: math.erf(y) > size if size < 0.5 else math.erfc(y) < 1 - size)
    return math.copysign(root, x)


def _erfcinv(x: float) -> float:
    if not 0 < x < 2:
        return math.inf if x == 0 else -math.inf if x == 2 else math.nan
    return _erfinv(1 - x) if x > 0.5 else _root(lambda y: math.erfc(y) < x)


def _erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    t = 1 / (2 * x * x)
    return (1 - t + 3 * t**2 - 15 * t**3) / (x * math.sqrt(math.pi))  # DLMF 7.12.1


def _bessel(order: int) -> Callable[[float], float]:
    """The modified Bessel function of the first kind, by its series (DLMF 10.25.2), whose terms all have one sign."""

    def value(x: float) -> float:
        if not abs(x) < 120:  # out of fp32's range
            return math.nan if x != x else math.copysign(math.inf, x) if order else math.inf
        term = total = (x / 2) ** order
        for k in range(1, 400):
            term *= (x / 2) ** 2 / (k * (k + order))
            total += term
        return total

    return value


def _byte_perm(x: int, y: int, selectors: int) -> int:
    bytes_of = [*(x % (1 << 32)).to_bytes(4, "little"), *(y % (1 << 32)).to_bytes(4, "little")]
    result = 0
    for place in range(4):
        result |= bytes_of[selectors >> 4 * place & 7] << 8 * place
    return result


def _mul24(x: int, y: int, kind: Kind) -> int:
    low = [(v % (1 << 24) ^ 1 << 23) - (1 << 23) if kind.is_signed else v % (1 << 24) for v in (x, y)]
    return low[0] * low[1]


def _elementwise(function: Callable[..., int]) -> Callable[..., Array]:
    return lambda *xs, **more: np.asarray(
        np.frompyfunc(lambda *v: function(*v, **more), len(xs), 1)(*xs), object
    )


def _is(function: Any) -> Any:
    return lambda x: function(x).astype(int)


OPS: tuple[Op, ...] = (
    *(_lib(name, getattr(np, name)) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos",
        "cosh", "tanh", "cbrt")),
    _lib("tan", np.tan, TANGENT), _lib("sinh", np.sinh, THREE),
    _lib("exp10", lambda x: np.power(np.longdouble(10), x)),
    _lib("asin", np.arcsin), _lib("acos", np.arccos), _lib("atan", np.arctan),
    _lib("asinh", np.arcsinh, THREE), _lib("acosh", np.arccosh, FOUR), _lib("atanh", np.arctanh, THREE),
    _lib("sinpi", _sinpi), _lib("cospi", _cospi),
    _lib("rcbrt", lambda x: 1 / np.cbrt(x)), _lib("rsqrt", lambda x: 1 / np.sqrt(x)),
    _lib("erf", _each(math.erf), WITH_ORACLE), _lib("erfc", _each(math.erfc), WITH_ORACLE, defined=lambda x: x < 9),
    _lib("tgamma", _each(math.gamma), GAMMA, defined=lambda x: (x > 0) & (x < 30)),
    _lib("lgamma", _each(math.lgamma), LOG_GAMMA, defined=lambda x: (x > 3) & (x < 1e30)),
    _lib("atan2", np.arctan2, THREE, count=2), _lib("hypot", np.hypot, THREE, count=2),
    _lib("pow", np.power, FOUR, count=2),
    _lib("fdim", lambda x, y: np.where(x > y, x - y, np.where(x <= y, 0.0, np.nan)), EXACT, count=2),
    _lib("fmod", np.fmod, EXACT, count=2, any_zero=True),
    _lib("copysign", np.copysign, EXACT, count=2, defined=lambda x, y: (x == x) & (y == y)),
    _lib("nextafter", lambda x, y, kind: np.nextafter(x.astype(kind.host), y.astype(kind.host)), EXACT, count=2, defined=lambda x, y: x != y),
    _lib("sqrt", np.sqrt, ROOT), _lib("trunc", np.trunc, EXACT), _lib("floor", np.floor, EXACT), _lib("ceil", np.ceil, EXACT),
    _lib("rint", np.rint, EXACT), _lib("nearbyint", np.rint, EXACT),
    _lib("round", lambda x: np.copysign(np.where(np.abs(x) < 2.0**52, np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), np.abs(x)), x),
        EXACT, defined=lambda x: x == x),
    _lib("abs", np.abs, EXACT),
    _lib("isnan", _is(np.isnan), EXACT, results=("i32",)), _lib("isinf", _is(np.isinf), EXACT, results=("i32",)),
    _lib("logb", lambda x: np.frexp(x)[1] - 1.0, EXACT, defined=lambda x: np.isfinite(x) & (x != 0)),
    _lib("ilogb", lambda x: (np.frexp(x)[1] - 1).astype(object), EXACT, results=("i32",), defined=lambda x: np.isfinite(x) & (x != 0)),
    *(_lib(f"{name}_rn", function, EXACT, count=2) for name, function in (("add", np.add), ("mul", np.multiply), ("div", np.divide))),
    _lib("clz", _bits(lambda v, bits: bits - v.bit_length()), EXACT, ("i32", "i64"), results=("i32",), inputs=_integers),
    _lib("popc", _bits(lambda v, bits: v.bit_count()), EXACT, ("i32", "i64"), results=("i32",), inputs=_integers),
    _lib("ffs", _bits(lambda v, bits: (v & -v).bit_length()), EXACT, ("i32", "i64"), results=("i32",), inputs=_integers),
    _lib("signbit", lambda x: np.where(np.signbit(x), 1, 0).astype(object), EXACT, results=("i32",), accept=lambda r, x: (r != 0) == np.signbit(x)),
    _lib("saturatef", lambda x: np.where(x == x, np.clip(x, 0, 1), 0.0), EXACT, ("fp32",), any_zero=True),
    _lib("erfinv", _each(_erfinv), TWO, ("fp32",), within=(-1, 1)), _lib("erfcinv", _each(_erfcinv), FOUR, ("fp32",), within=(0, 2)),
    _lib("erfcx", _each(_erfcx), FOUR, ("fp32",), within=(-9, 25)),
    _lib("cyl_bessel_i0", _each(_bessel(0)), SIX, ("fp32",), within=(-80, 80)),
    _lib("cyl_bessel_i1", _each(_bessel(1)), SIX, ("fp32",), within=(-80, 80)),
    _lib("byte_perm", _elementwise(_byte_perm), EXACT, ("i32",), count=3, inputs=_integers),
    _lib("mul24", lambda x, y, kind: _elementwise(_mul24)(x, y, kind=kind), EXACT, ("i32", "u32"), count=2, inputs=_integers),
    _lib("brev", _bits(lambda v, bits: int(f"{v:0{bits}b}"[::-1], 2)), EXACT, ("i32", "i64"), inputs=_integers),
    _lib("mulhi", lambda x, y, kind: x * y >> kind.bits, EXACT, ("i32", "u32", "i64", "u64"), count=2, inputs=_integers),
    _lib("hadd", lambda x, y: (x + y) >> 1, EXACT, ("i32", "u32"), count=2, inputs=_integers),
    _lib("rhadd", lambda x, y: (x + y + 1) >> 1, EXACT, ("i32", "u32"), count=2, inputs=_integers),
)  # fmt: skip

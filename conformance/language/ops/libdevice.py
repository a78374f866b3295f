"""`triton.language.extra.libdevice`: the functions that mathematics defines and numpy or the C library can be asked for."""

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
CUDA = "what CUDA's mathematical library, whose interface it is, documents of the function"
TWO = Tolerance(2.0, CUDA)
THREE = Tolerance({"fp32": 3.0, "fp64": 2.0}, CUDA)
FOUR = Tolerance(4.0, CUDA)
TANGENT = Tolerance({"fp32": 4.0, "fp64": 2.0}, CUDA)
GAMMA = Tolerance({"fp32": 5.0, "fp64": 10.0}, CUDA)
LOG_GAMMA = Tolerance(
    {"fp32": 6.0, "fp64": 12.0}, f"{CUDA} (fp64: 4), and in fp64 as many as 8 more for the oracle, Python's"
)
WITH_ORACLE = Tolerance(
    {"fp32": 4.0, "fp64": 5.0}, f"{CUDA}, and in fp64 one more for the oracle, the C library's"
)
ROOT = Tolerance({"fp32": 2.0}, "in fp32 an approximation, off by a relative 2^-23")


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
    shapes = SHAPES if "inputs" not in more else SHAPES[:-1]
    return expression(f"libdevice_{name}", SECTION, form, oracle, types, operands=("T",) * count, tolerance=tolerance,
        **defaulted(more, {"shapes": shapes, "inputs": arguments if count == 1 else _several, "refused": ()}), may_flush="inputs" not in more)  # fmt: skip


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
    _lib("brev", _bits(lambda v, bits: int(f"{v:0{bits}b}"[::-1], 2)), EXACT, ("i32", "i64"), inputs=_integers),
    _lib("mulhi", lambda x, y, kind: x * y >> kind.bits, EXACT, ("i32", "u32", "i64", "u64"), count=2, inputs=_integers),
    _lib("hadd", lambda x, y: (x + y) >> 1, EXACT, ("i32", "u32"), count=2, inputs=_integers),
    _lib("rhadd", lambda x, y: (x + y + 1) >> 1, EXACT, ("i32", "u32"), count=2, inputs=_integers),
)  # fmt: skip

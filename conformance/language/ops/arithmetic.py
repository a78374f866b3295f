"""Arithmetic with two and three operands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import expression
from triton_porting_kit.conformance.language.shapes import RANKS, Shape
from triton_porting_kit.conformance.language.table import (
    BITS,
    FLOAT,
    FP8,
    INTEGER,
    NUMBER,
    QUOTIENT,
    SIGNED,
    WIDE,
    Op,
    Tolerance,
)
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Arithmetic"
TWO = ("T", "T")
THREE = ("T", "T", "T")
HALVES_TO_SINGLE = {"fp16": "fp32", "bf16": "fp32", **dict.fromkeys(FP8, "fp32")}
"""Triton divides floating-point types narrower than 32 bits as fp32."""

fold = np.frompyfunc


def quotient(x: int, y: int) -> int:
    """Integer division that rounds toward zero; 0 where the quotient is undefined."""
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _divides(x: Array, y: Array, kind: Kind) -> Any:
    return (y != 0) & ~((x == kind.lowest) & (y == -1) & kind.is_signed)


DIVISORS = tuple(
    Shape(f"{name}_by{by}", (324,), {"by": by}, scalar=name == "scalar")
    for name, every in (("tile", (1, -1, 7, -7, 8, -8, 100, -100, 127)), ("scalar", (7, -7, 8, -8)))
    for by in every
)
"""Divisors that the compiler knows: it does not have to divide."""
NEGATIVE = {shape.name: SIGNED for shape in DIVISORS if shape.params["by"] < 0}


def _divides_constant(x: Array, by: int, kind: Kind) -> Any:
    return (by != -1) | (x != kind.lowest)


FACTORS = {
    "pi": math.pi,
    "third": 1 / 3,
    "minus_tenth": -0.1,
    "largest": 1.7976931348623157e308,
    "smallest": 2.2250738585072014e-308,
}
"""Constants that no decimal number of 16 digits can replace in fp64."""
FACTOR_SHAPES = tuple(Shape(f"tile_{name}", (324,), {"by": by}) for name, by in FACTORS.items()) + tuple(
    Shape(f"scalar_{name}", (324,), {"by": FACTORS[name]}, scalar=True) for name in ("pi", "minus_tenth")
)


def _fmod(x: float, y: float) -> float:
    return math.fmod(x, y) if math.isfinite(x) and y != 0 and y == y else math.nan


def _fma(x: float, y: float, z: float) -> float:
    """x * y + z, rounded once to float64."""
    from fractions import Fraction

    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    try:
        return float(exact) if exact else x * y + z
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def number_max(x: Any, y: Any) -> Any:
    """The larger operand; if one is NaN, the other one."""
    return y if x != x else x if y != y else max(x, y)


def number_min(x: Any, y: Any) -> Any:
    return y if x != x else x if y != y else min(x, y)


def nan_max(x: float, y: float) -> float:
    return math.nan if x != x or y != y else max(x, y)


def nan_min(x: float, y: float) -> float:
    return math.nan if x != x or y != y else min(x, y)


def _different(x: Array, y: Array) -> Any:
    """Minimum and maximum treat zeros of both signs as equal, so either zero is a valid result."""
    return x != y


def _each(function: Any, count: int) -> Any:
    return lambda *x: np.asarray(fold(function, count, 1)(*x), object if x[0].dtype == object else float)


def _clamp(x: Array) -> Array:
    return np.clip(x, -1.5, 2.0)


FUSED = Tolerance(0.5 + 2.0**-10, "rounded once; plus the oracle's rounding to float64")

OPS: tuple[Op, ...] = (
    expression("add", SECTION, "x + y", lambda x, y: x + y, (*BITS, *FLOAT), operands=TWO, shapes=RANKS, refused=()),
    expression("sub", SECTION, "x - y", lambda x, y: x - y, (*BITS, *FLOAT), operands=TWO, refused=()),
    expression("mul", SECTION, "x * y", lambda x, y: x * y, (*BITS, *FLOAT), operands=TWO, refused=()),
    expression("tl_add", SECTION, "tl.add(x, y)", lambda x, y: x + y, NUMBER, operands=TWO, refused=()),
    expression("tl_sub", SECTION, "tl.sub(x, y)", lambda x, y: x - y, NUMBER, operands=TWO, refused=()),
    expression("tl_mul", SECTION, "tl.mul(x, y)", lambda x, y: x * y, NUMBER, operands=TWO, refused=()),
    expression(
        "div", SECTION, "x / y", lambda x, y: x / y, FLOAT, operands=TWO, results=("wide",), widen=HALVES_TO_SINGLE,
        refused=(), tolerance=QUOTIENT, note="Types narrower than 32 bits are divided in fp32.",
    ),
    expression(
        "div_integers", SECTION, "x / y", lambda x, y: x.astype(np.float32).astype(float) / y.astype(np.float32),
        INTEGER, operands=TWO, results=("fp32",), refused=(), defined=lambda x, y: y != 0, tolerance=QUOTIENT,
        note="Integers are divided in fp32.",
    ),
    expression(
        "floordiv", SECTION, "x // y", _each(quotient, 2), INTEGER, operands=TWO, defined=_divides,
        refused=(*FLOAT, *FP8), note="Integers only; rounds toward zero, as in C.",
    ),
    expression(
        "mod", SECTION, "x % y", _each(lambda x, y: x - y * quotient(x, y), 2), INTEGER, operands=TWO,
        defined=_divides, refused=(), note="The result has the sign of the dividend, as in C.",
    ),
    expression(
        "floordiv_constant", SECTION, "x // {by}", lambda x, by: _each(lambda a: quotient(a, by), 1)(x), INTEGER,
        shapes=DIVISORS, only=NEGATIVE, defined=_divides_constant, refused=(), form="x // 7",
    ),
    expression(
        "mod_constant", SECTION, "x % {by}", lambda x, by: _each(lambda a: a - by * quotient(a, by), 1)(x), INTEGER,
        shapes=DIVISORS, only=NEGATIVE, defined=_divides_constant, refused=(), form="x % 7",
    ),
    expression(
        "mul_constant", SECTION, "x * {by}", lambda x, by, kind: x * from_float64(np.array(by), kind).astype(float), FLOAT,
        shapes=FACTOR_SHAPES, only={"tile_largest": ("fp64",), "tile_smallest": ("fp64",)}, refused=(), form="x * 3.141592653589793",
    ),
    expression(
        "fmod", SECTION, "x % y", _each(_fmod, 2), FLOAT, operands=TWO, results=("wide",), widen=HALVES_TO_SINGLE,
        refused=(), defined=lambda x, y: ~np.isinf(y), any_zero=True, note="Not tested for infinite divisors.",
    ),
    expression("cdiv", SECTION, "tl.cdiv(x, y)", _each(lambda x, y: quotient(x + y - 1, y), 2), ("i32", "i64", "u32"),
        operands=TWO, refused=FLOAT, defined=lambda x, y, kind: (y > 0) & (x >= 0) & (x + y <= kind.highest)),
    expression("fdiv", SECTION, "tl.fdiv(x, y)", lambda x, y: x / y, WIDE, operands=TWO, refused=(), tolerance=QUOTIENT),
    expression(
        "fdiv_half", SECTION, "tl.fdiv(x, y)", lambda x, y: x / y, ("fp16", "bf16"), operands=TWO, results=("fp32",),
        refused=(), since=(3, 9), tolerance=QUOTIENT, note="Types narrower than 32 bits are divided in fp32.",
    ),
    expression("fdiv_ieee", SECTION, "tl.fdiv(x, y, ieee_rounding=True)", lambda x, y: x / y, ("fp32",), operands=TWO, refused=(),
        tolerance=QUOTIENT, note="Releases before 3.9 ignore the argument."),
    expression("div_rn", SECTION, "tl.div_rn(x, y)", lambda x, y: x / y, ("fp32",), operands=TWO),
    expression(
        "umulhi", SECTION, "tl.umulhi(x, y)",
        lambda x, y, kind: (x % (1 << kind.bits)) * (y % (1 << kind.bits)) >> kind.bits,
        ("i32", "u32", "i64", "u64"), operands=TWO, note="The upper half of the unsigned product.",
    ),
    expression("neg", SECTION, "-x", lambda x: -x, (*INTEGER, *FLOAT), refused=(), since=(3, 8)),
    expression("abs", SECTION, "tl.abs(x)", abs, (*INTEGER, *FLOAT), refused=()),
    expression(
        "fma", SECTION, "tl.fma(x, y, z)", _each(_fma, 3), FLOAT, operands=THREE, tolerance=FUSED, refused=(),
    ),
    expression(
        "clamp", SECTION, "tl.clamp(x, -1.5, 2.0)", _clamp, FLOAT, defined=lambda x: x == x, refused=(),
    ),
    expression(
        "clamp_nan", SECTION, "tl.clamp(x, -1.5, 2.0, propagate_nan=tl.PropagateNan.ALL)", _clamp, FLOAT, refused=(),
    ),
    expression("maximum", SECTION, "tl.maximum(x, y)", _each(number_max, 2), NUMBER, operands=TWO, defined=_different, refused=()),
    expression("minimum", SECTION, "tl.minimum(x, y)", _each(number_min, 2), NUMBER, operands=TWO, defined=_different, refused=()),
    expression(
        "maximum_nan", SECTION, "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", _each(nan_max, 2), FLOAT,
        operands=TWO, defined=_different, refused=(),
    ),
    expression(
        "minimum_nan", SECTION, "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)", _each(nan_min, 2), FLOAT,
        operands=TWO, defined=_different, refused=(),
    ),
    expression("chain", SECTION, "(x + y) * (x - y) - x", lambda x, y: (x + y) * (x - y) - x, INTEGER, operands=TWO, refused=()),
    expression(
        "chain_unfused", SECTION, "x * y + x", lambda x, y, kind: _stepwise(x, y, kind), WIDE, operands=TWO, refused=(),
        options={"enable_fp_fusion": False}, note="Rounded twice without `enable_fp_fusion`.",
    ),
)  # fmt: skip


def _stepwise(x: Array, y: Array, kind: Kind) -> Array:
    a, b = x.astype(kind.host), y.astype(kind.host)
    result: Array = a * b + a
    return result

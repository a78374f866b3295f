"""The elementary functions that are written out, over single precision in strides."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_functions import Array, element_function
from running import KINDS, ulp_distance

from triton_porting_kit.compiler.loops.arithmetic import elementary
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.target import CpuTarget

FP32 = KINDS["fp32"]
STRIDE = 1021  # prime, so that every exponent meets many fractions


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.array([function(v) for v in x.tolist()])


# What double precision gives, the interval where results are neither trivial nor saturated, and the error in units of
# the last place that was measured over that interval, all of whose numbers were tried.
FUNCTIONS: dict[str, tuple[Callable[[Array], Any], tuple[float, float], float]] = {
    "log": (np.log, (0.25, 4), 0.83),
    "log2": (np.log2, (0.25, 4), 0.95),
    "log10": (np.log10, (0.25, 4), 0.98),
    "log1p": (np.log1p, (-1, 4), 0.51),
    "sin": (np.sin, (-60, 60), 0.72),
    "cos": (np.cos, (-60, 60), 0.72),
    "tanh": (_each(math.tanh), (-10, 10), 1.34),
    "exp10": (lambda x: 10.0**x, (-45, 38.5), 1.14),
    "expm1": (np.expm1, (-20, 89), 0.7),
}
# Lanes, and whether the target has AVX-512.
WAYS = {"two_factors": (8, False), "scalar": (1, False)}
if CpuTarget.host().has_scalef:
    WAYS |= {"scalef": (16, True)}


def numbers(name: str, lanes: int) -> Array:
    patterns = np.arange(0, 2**32, STRIDE * (8 if lanes > 1 else 64), dtype=np.uint64).astype(np.uint32)
    low, high = FUNCTIONS[name][1]
    count = 1 << (16 if lanes > 1 else 12)
    edges = np.array(
        [0, -0.0, math.inf, -math.inf, math.nan, 1, -1, 2.0**-149, -(2.0**-127), 2.0**-126], np.float32
    )
    x = np.concatenate([edges, patterns.view(np.float32), np.linspace(low, high, count, dtype=np.float32)])
    if name in ("sin", "cos"):
        x = x[~(np.abs(x) >= elementary.CIRCULAR_LIMIT)]
    return x[: x.size // 16 * 16]


@pytest.mark.parametrize(("lanes", "scalef"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name: str, lanes: int, scalef: bool) -> None:
    function = getattr(elementary, name)
    more = (scalef,) if "has_scalef" in inspect.signature(function).parameters else ()

    def emit(builder: LoopBuilder, value: Value) -> Value:
        result: Lanes = function(Lanes(builder, value), *more)
        return result.value

    exact_function, _, bound = FUNCTIONS[name]
    x = numbers(name, lanes)
    actual = element_function(emit, "f32", "f32", lanes=lanes)(x, np.float32)
    with np.errstate(all="ignore"):
        exact = np.asarray(exact_function(x.astype(np.float64)))
    distance = ulp_distance(actual, exact, FP32)
    worst = int(distance.argmax())
    assert distance[worst] <= bound, f"{distance[worst]} units at {x[worst]!r}"
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(exact[zero]))


def test_arithmetic_by_operators() -> None:
    """`Lanes` of integers and floats: every operator against NumPy's."""
    x = np.arange(-40, 40, dtype=np.int32) * 12345679
    y = x.astype(np.float32) / 3

    def integers(v: Lanes) -> Lanes:
        mixed = ((v + 3) * 5 - (7 - v)) ^ (v & 0xFF0F) | (v << 3)
        mixed = (mixed >> 2) + mixed.shift_signed(5) + ~v - (-v)
        larger = (v > 100).select(mixed, v.larger(mixed.smaller(9)))
        return (v.equals(0) | v.differs(12345679)).select(larger, v.absolute())

    def floats(v: Lanes) -> Lanes:
        total = (v + 1.5) * 2.0 - 3.0 / (v.absolute() + 1.0) + (1.0 - v) / 7.0
        return ((v >= -1.0) & (v <= 9e7)).select(total, (-v).fma(2.0, total)).with_sign_of(v.larger(-5.0))

    def expected_integers(v: Any) -> Any:
        u = lambda value: value.astype(np.uint32)  # noqa: E731
        mixed = ((v + 3) * 5 - (7 - v)) ^ (v & 0xFF0F) | (v << 3)
        mixed = (u(mixed) >> 2).astype(np.int32) + (mixed >> 5) + ~v - (-v)
        larger = np.where(v > 100, mixed, np.maximum(v, np.minimum(mixed, 9)))
        return np.where((v == 0) | (v != 12345679), larger, np.abs(v))

    def expected_floats(v: Any) -> Any:
        one = np.float32
        total = (v + one(1.5)) * one(2) - one(3) / (np.abs(v) + one(1)) + (one(1) - v) / one(7)
        fused = (-v.astype(np.float64) * 2 + total).astype(np.float32)
        return np.copysign(np.where((v >= -1) & (v <= 9e7), total, fused), np.maximum(v, one(-5)))

    def run(function: Callable[[Lanes], Lanes], kind: str, values: Array) -> Array:
        emit = lambda builder, value: function(Lanes(builder, value)).value  # noqa: E731
        return element_function(emit, kind, kind)(values, values.dtype)

    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(integers, "i32", x), expected_integers(x))
        np.testing.assert_array_equal(run(floats, "f32", y), expected_floats(y))

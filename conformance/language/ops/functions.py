"""Mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression
from triton_porting_kit.conformance.language.shapes import DEEP, DENORMALS, ODD, Shape, tile
from triton_porting_kit.conformance.language.table import EXACT, QUOTIENT, WIDE, Op, Tolerance
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Functions"
SHAPES = (Shape("scalar", (300,), scalar=True), tile(1000), ODD, DEEP, DENORMALS)

NEAR = Tolerance(
    2.0,
    "the error bound of GPU math libraries, for which kernels are written",
)
ROOT = Tolerance(
    {"fp32": 2.0}, "in fp32 an approximation with a relative error of 2^-23; sqrt_rn is correctly rounded"
)
INVERSE_ROOT = Tolerance(
    2.0, "a root and a quotient, each rounded; the root's error of half a unit may double"
)
RECIPROCAL = Tolerance({"fp32": 2.0}, QUOTIENT.reason)
POWER_OF_TWO = Tolerance(
    {"fp32": 3.0, "fp64": 2.0}, "in fp32 an approximation with a relative error of 2^-22.5"
)
EXPONENTIAL = Tolerance(
    {"fp32": 132.0, "fp64": 2.0},
    "in fp32 2^(x log2 e) with the product rounded: 2 + 1.173 |x| units, for |x| up to 110",
)
SIGMOID = Tolerance(
    {"fp32": 132.0, "fp64": 4.0},
    "an exponential (in fp32 2 + 1.173 |x| units), a sum and a quotient of 2 units; later operations at least halve the errors of the first two",
)


def exponential_units(x: Array) -> Array:
    """The tolerance of an fp32 exponential, as a function of its argument."""
    return np.asarray(2 + 1.173 * np.abs(x))


def arguments(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Edge values, numbers of ordinary size, and magnitudes of all sizes."""
    (kind,) = kinds
    if shape.name == DENORMALS.name:
        return (denormals(kind, shape),)
    random = np.random.default_rng(11)
    grid = np.concatenate(
        [
            samples(kind, 16).astype(np.float64),
            np.arange(-16, 16) / 2,
            random.standard_normal(300) * 10,
            random.uniform(-110, 100, 300),
            np.abs(random.standard_normal(152)) * 1e-3,
            2.0 ** random.uniform(-140, 120, 200),
        ]
    )
    picked = grid if shape.count == grid.size else random.permutation(grid)
    return (
        without_denormals(np.resize(from_float64(picked, kind), shape.count).reshape(shape.extents), kind),
    )


def denormals(kind: Kind, shape: Shape, seed: int = 0) -> Array:
    """Denormal numbers of fp16, fp32 or fp64, of both signs and all sizes, and numbers around the smallest normal
    one."""
    random = np.random.default_rng(seed)
    bits = kind.precision - 1
    patterns = random.integers(1, 1 << bits, shape.count, dtype=np.uint64) >> random.integers(
        0, bits, shape.count, dtype=np.uint64
    )
    patterns[:8] = [1, 2, 3, (1 << bits) - 1, 1 << bits, (1 << bits) + 1, 0, 1 << (bits - 1)]
    values = patterns.astype(f"uint{kind.bits}").view(kind.host)
    return np.where(random.random(shape.count) < 0.5, -values, values).reshape(shape.extents)


def without_denormals(values: Array, kind: Kind) -> Array:
    """Values with each denormal replaced by the smallest normal number of the same sign."""
    smallest = kind.host.type(2.0**kind.lowest_exponent)
    tiny = (values != 0) & (np.abs(values) < smallest)
    return np.where(tiny, np.copysign(smallest, values), values)


def function(name: str, oracle: Callable[..., Any], tolerance: Tolerance = NEAR, types: tuple[str, ...] = WIDE, form: str = "", **more: Any) -> Op:  # fmt: skip
    return expression(
        name, SECTION, form or f"tl.{name}(x)", oracle, types, shapes=SHAPES, inputs=arguments, tolerance=tolerance,
        may_flush=True, **defaulted(more, {"refused": None if not form else ()}),
    )  # fmt: skip


def _erf(x: Array) -> Array:
    return np.array([math.erf(float(v)) for v in x.ravel()]).reshape(x.shape)


OPS: tuple[Op, ...] = (
    function("exp", np.exp, EXPONENTIAL, ulp=exponential_units),
    function("exp2", np.exp2, POWER_OF_TWO),
    function("log", np.log),
    function("log2", np.log2),
    function("sin", np.sin),
    function("cos", np.cos),
    function("erf", _erf),
    function("sqrt", np.sqrt, ROOT),
    function("sqrt_rn", np.sqrt, EXACT, ("fp32",)),
    function("rsqrt", lambda x: 1 / np.sqrt(x), INVERSE_ROOT),
    function("floor", np.floor, EXACT),
    function("ceil", np.ceil, EXACT),
    function("reciprocal", lambda x: 1 / x, RECIPROCAL, form="1.0 / x"),
    function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), SIGMOID, defined=lambda x: x > -80,
        ulp=lambda x: 2 + exponential_units(x), note="Not tested below -80, where the exponential overflows."),
)  # fmt: skip

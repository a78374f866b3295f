"""Mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression
from triton_porting_kit.conformance.language.shapes import DEEP, ODD, Shape, tile
from triton_porting_kit.conformance.language.table import EXACT, WIDE, Op, Tolerance
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Functions"
SHAPES = (Shape("scalar", (300,), scalar=True), tile(1000), ODD, DEEP)

NEAR = Tolerance(
    1.0, "what the best implementations promise: the exact result between two neighbours gives either"
)
ROOT = Tolerance(
    {"fp32": 1.5, "fp64": 1.5},
    "a root and a quotient, each rounded: the root's half unit may become a whole one",
)
ERF = Tolerance(
    {"fp32": 1.0, "fp64": 2.0}, "one unit; in fp64 the oracle, the C library's, may be off by another"
)
SIGMOID = Tolerance(
    3.0, "an exponential (1), a sum and a quotient (1/2 each), the first two halved or more by what follows"
)


def arguments(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Edge values, numbers of everyday size, and magnitudes of all sizes."""
    (kind,) = kinds
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
    return (np.resize(from_float64(picked, kind), shape.count).reshape(shape.extents),)


def function(name: str, oracle: Callable[..., Any], tolerance: Tolerance = NEAR, types: tuple[str, ...] = WIDE, form: str = "", **more: Any) -> Op:  # fmt: skip
    return expression(
        name, SECTION, form or f"tl.{name}(x)", oracle, types, shapes=SHAPES, inputs=arguments, tolerance=tolerance,
        **defaulted(more, {"refused": None if not form else ()}),
    )  # fmt: skip


def _erf(x: Array) -> Array:
    return np.array([math.erf(float(v)) for v in x.ravel()]).reshape(x.shape)


OPS: tuple[Op, ...] = (
    function("exp", np.exp),
    function("exp2", np.exp2),
    function("log", np.log),
    function("log2", np.log2),
    function("sin", np.sin),
    function("cos", np.cos),
    function("erf", _erf, ERF),
    function("sqrt", np.sqrt, EXACT),
    function("sqrt_rn", np.sqrt, EXACT, ("fp32",)),
    function("rsqrt", lambda x: 1 / np.sqrt(x), ROOT),
    function("floor", np.floor, EXACT),
    function("ceil", np.ceil, EXACT),
    function("reciprocal", lambda x: 1 / x, EXACT, form="1.0 / x"),
    function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), SIGMOID, defined=lambda x: x > -80, note="Below -80 the exponential overflows."),
)  # fmt: skip

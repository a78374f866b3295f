"""Elementwise kernels: vector addition, a residual added to GELU, and SwiGLU."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    Random,
    empty,
    exact,
    expect,
    normal,
)
from triton_porting_kit.conformance.types import KINDS, Array
from triton_porting_kit.kernels import references
from triton_porting_kit.kernels.gelu import gelu_residual
from triton_porting_kit.kernels.vector_add import vector_add

BLOCK = 1024


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """Each row of x is a gate and a value of n_cols each; out = gate * sigmoid(gate) * value."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < n_cols
    gate = tl.load(x_ptr + row * 2 * n_cols + cols, mask=inside).to(tl.float32)
    value = tl.load(x_ptr + row * 2 * n_cols + n_cols + cols, mask=inside).to(tl.float32)
    result = gate / (1.0 + tl.exp(-gate)) * value
    tl.store(out_ptr + row * n_cols + cols, result.to(out_ptr.dtype.element_ty), mask=inside)


# --- addition ----------------------------------------------------------------------------------------

ADDITION = Family("vector-add", "Addition of two vectors", "vector_add")


def _addends(n: int, kind: str, random: Random) -> tuple[Operand, Operand]:
    own = KINDS[kind]
    if own.is_float:
        tiny = np.where(
            random.random(n) < 0.1, 2.0 ** (own.lowest_exponent - 1), 1.0
        )  # some sums are subnormal
        return normal(random, (n,), kind, tiny), normal(random, (n,), kind, tiny)
    x, y = (random.integers(own.lowest, own.highest, n, own.host, endpoint=True) for _ in range(2))
    return Operand(x, own), Operand(y, own)


def _sum(kind: str, x: Array, y: Array) -> Expected:
    if KINDS[kind].is_integer:
        return exact("sum", x + y, kind)  # sums wrap around in NumPy as in Triton
    return expect("sum", x + y, kind, "vector_add")


def addition(n: int, kind: str) -> Problem:
    """Two vectors of n elements."""
    return Problem(
        f"{n}",
        kind,
        lambda random: _addends(n, kind, random),
        lambda x, y: vector_add(x, y, block=BLOCK),
        lambda x, y: _sum(kind, x, y),
        BLOCK,
        peer=np.add if n > 100_000 else None,
        tolerance="exact" if KINDS[kind].is_integer else "",
    )


for _kind, _n in product(
    ("fp32", "fp16", "bf16", "fp64", "i8", "i16", "i32", "i64", "u8", "u32"), (1, 1023, 1025)
):
    ADDITION.add(addition(_n, _kind))
for _kind in ("fp32", "bf16"):
    ADDITION.add(addition(1_000_003, _kind))


# --- GELU --------------------------------------------------------------------------------------------

GELU = Family("gelu-residual", "A residual added to GELU", "gelu")
SCALE, SHIFT = 1.5, -0.25
"""GELU is applied to ``x * SCALE + SHIFT``."""


def gelu(shape: tuple[int, ...], kind: str) -> Problem:
    """GELU of a scaled and shifted tensor."""

    def expected(x: Array, residual: Array) -> Expected:
        values = references.gelu_residual(x, residual, SCALE, SHIFT)
        scale = np.abs(residual) + np.abs(x) * SCALE + abs(SHIFT)
        return expect("out", values, kind, "gelu", scale)

    def peer(x: Array, residual: Array) -> Array:
        # NumPy has no erf. Its users take this approximation by tanh.
        t = x * SCALE + SHIFT
        return np.asarray(residual + 0.5 * t * (1 + np.tanh(0.7978846 * (t + 0.044715 * t * t * t))))

    return Problem(
        "x".join(map(str, shape)),
        kind,
        lambda random: (normal(random, shape, kind, 2.0), normal(random, shape, kind)),
        lambda x, residual: gelu_residual(x, residual, SCALE, SHIFT, block=BLOCK),
        expected,
        BLOCK,
        peer=peer if np.prod(shape) > 100_000 else None,
    )


for _kind, _shape in product(("fp32", "fp16", "bf16"), ((1,), (33, 65), (5, 7, 111))):
    GELU.add(gelu(_shape, _kind))
GELU.add(gelu((512, 1024), "fp32"))


# --- SwiGLU ------------------------------------------------------------------------------------------

SWIGLU = Family("swiglu", "SwiGLU, a gate's SiLU times a value", "swiglu")


def swiglu(x: Any) -> Any:
    """Launch over rows of (gate, value)."""
    rows, cols = x.shape[0], x.shape[1] // 2
    out = empty((rows, cols), x)
    swiglu_kernel[(rows, triton.cdiv(cols, BLOCK))](x, out, cols, BLOCK=BLOCK)
    return out


def _swiglu(x: Array) -> Array:
    cols = x.shape[1] // 2
    gate, value = x[:, :cols], x[:, cols:]
    return np.asarray(gate / (1 + np.exp(-gate)) * value)


def swiglu_problem(rows: int, cols: int, kind: str) -> Problem:
    """rows of cols gates and cols values."""
    return Problem(
        f"{rows}x{cols}",
        kind,
        lambda random: (normal(random, (rows, 2 * cols), kind, 2.0),),
        swiglu,
        lambda x: expect("out", _swiglu(x), kind, "swiglu"),
        BLOCK,
        peer=_swiglu if rows * cols > 100_000 else None,
    )


for _kind, (_rows, _cols) in product(("fp32", "fp16", "bf16"), ((1, 1), (3, 100), (5, 1500))):
    SWIGLU.add(swiglu_problem(_rows, _cols, _kind))
for _kind in ("fp32", "bf16"):
    SWIGLU.add(swiglu_problem(128, 2816, _kind))

CHECKS = (*ADDITION.checks, *GELU.checks, *SWIGLU.checks)

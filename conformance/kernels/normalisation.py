"""Normalisation of rows: layer normalisation forward and backward, and RMS normalisation."""

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
    expect,
    normal,
    operand,
)
from triton_porting_kit.conformance.types import Array
from triton_porting_kit.kernels import references
from triton_porting_kit.kernels.layer_norm import layer_norm, layer_norm_backward

EPS = 1e-5
SMALL = ((1, 1), (3, 70), (33, 257))
REAL = (512, 4096)


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    """out = x / sqrt(mean of x² + eps) * weight, for one row per program."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, (x * rstd * weight).to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm(x: Any, weight: Any) -> Any:
    """Launch a program for each row."""
    out = empty(x.shape, x)
    rms_norm_kernel[(x.shape[0],)](x, weight, out, x.shape[1], EPS, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


# --- layer normalisation -----------------------------------------------------------------------------

FORWARD = Family("layer-norm", "Layer normalisation", "layer_norm")
BACKWARD = Family("layer-norm-backward", "The gradient of layer normalisation", "layer_norm_backward")
RMS = Family("rms-norm", "RMS normalisation", "rms_norm")


def _rows(random: Random, rows: int, cols: int, kind: str) -> tuple[Operand, Operand, Operand]:
    """Rows whose mean is not zero, weights and biases."""
    return (
        normal(random, (rows, cols), kind, 2.0, 3.0),
        normal(random, (cols,), kind),
        normal(random, (cols,), kind),
    )


def _forward(kind: str, x: Array, weight: Array, bias: Array) -> tuple[Expected, ...]:
    y, mean, rstd = references.layer_norm(x, weight, bias, EPS)
    size = np.abs(x).mean(axis=1)
    scale = (np.abs(x) + size[:, None]) * rstd[:, None] * np.abs(weight) + np.abs(bias) + np.abs(y)
    cols = x.shape[1]
    return (
        expect("y", y, kind, "layer_norm", scale, cols),
        expect("mean", mean, "fp32", "layer_norm_statistics", size, cols),
        expect("rstd", rstd, "fp32", "layer_norm_statistics", rstd * (1 + size * rstd), cols),
    )


def forward(rows: int, cols: int, kind: str, peer: bool = False) -> Problem:
    """rows of cols columns."""
    return Problem(
        f"{rows}x{cols}",
        kind,
        lambda random: _rows(random, rows, cols, kind),
        layer_norm,
        lambda x, weight, bias: _forward(kind, x, weight, bias),
        triton.next_power_of_2(cols),
        peer=references.layer_norm if peer else None,
    )


def _backward_operands(random: Random, rows: int, cols: int, kind: str) -> tuple[Operand, ...]:
    x, weight, _ = _rows(random, rows, cols, kind)
    mean, rstd = references.row_statistics(x.values.astype(np.float64), EPS)
    return normal(random, (rows, cols), kind), x, weight, operand(mean, "fp32"), operand(rstd, "fp32")


def _gradients(dy: Array, x: Array, weight: Array, mean: Array, rstd: Array) -> tuple[Array, Array, Array]:
    """dx, dweight and dbias from the given statistics."""
    normalised = (x - mean[:, None]) * rstd[:, None]
    scaled = dy * weight
    along = (scaled * normalised).mean(axis=1, keepdims=True)
    dx = (scaled - normalised * along - scaled.mean(axis=1, keepdims=True)) * rstd[:, None]
    return dx, (dy * normalised).sum(axis=0), dy.sum(axis=0)


def _backward(kind: str, *values: Array) -> tuple[Expected, ...]:
    dy, x, weight, mean, rstd = values
    dx, dweight, dbias = _gradients(*values)
    rows, cols = x.shape
    normalised = np.abs((x - mean[:, None]) * rstd[:, None])
    rough = (np.abs(x) + np.abs(mean[:, None])) * rstd[:, None]
    scaled = np.abs(dy * weight)
    means = [(scaled * part).mean(axis=1, keepdims=True) for part in (normalised, rough)]
    scale = scaled + rough * means[0] + normalised * means[1] + scaled.mean(axis=1, keepdims=True)
    return (
        expect("dx", dx, kind, "layer_norm_backward", scale * rstd[:, None], cols),
        expect("dweight", dweight, kind, "layer_norm_backward", (np.abs(dy) * rough).sum(axis=0), rows),
        expect("dbias", dbias, kind, "layer_norm_backward", np.abs(dy).sum(axis=0), rows),
    )


def backward(rows: int, cols: int, kind: str, peer: bool = False) -> Problem:
    """rows of cols columns, with their mean and deviation."""
    return Problem(
        f"{rows}x{cols}",
        kind,
        lambda random: _backward_operands(random, rows, cols, kind),
        layer_norm_backward,
        lambda *values: _backward(kind, *values),
        max(triton.next_power_of_2(cols), 32 * 128),
        peer=_gradients if peer else None,
    )


# --- RMS normalisation -------------------------------------------------------------------------------


def _rms(x: Array, weight: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * weight)


def rms(rows: int, cols: int, kind: str, peer: bool = False) -> Problem:
    """rows of cols columns."""
    return Problem(
        f"{rows}x{cols}",
        kind,
        lambda random: _rows(random, rows, cols, kind)[:2],
        rms_norm,
        lambda x, weight: expect("out", _rms(x, weight), kind, "rms_norm", terms=cols),
        triton.next_power_of_2(cols),
        peer=_rms if peer else None,
    )


for _kind, (_n_rows, _n_cols) in product(("fp32", "fp16", "bf16"), SMALL):
    FORWARD.add(forward(_n_rows, _n_cols, _kind))
    BACKWARD.add(backward(_n_rows, _n_cols, _kind))
    RMS.add(rms(_n_rows, _n_cols, _kind))
for _kind in ("fp32", "bf16"):
    FORWARD.add(forward(*REAL, _kind, peer=True))
    BACKWARD.add(backward(*REAL, _kind, peer=True))
    RMS.add(rms(*REAL, _kind, peer=True))

CHECKS = (*FORWARD.checks, *BACKWARD.checks, *RMS.checks)

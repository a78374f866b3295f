"""Softmax of rows: one tile per row, many tiles per row (running maximum and sum), and persistent programs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.problem import (
    Family,
    Operand,
    Problem,
    Random,
    empty,
    expect,
    normal,
)
from triton_porting_kit.conformance.types import Array
from triton_porting_kit.kernels.softmax import softmax

BLOCK = 256
PROGRAMS = 8


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """One program per row, BLOCK columns at a time: a first pass for maximum and sum, a second one to write."""
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        result = tl.exp(x - top) / total
        tl.store(out_ptr + row * n_cols + cols, result.to(out_ptr.dtype.element_ty), mask=cols < n_cols)


@triton.jit
def persistent_softmax_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """A fixed number of programs process all rows."""
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        result = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * n_cols + cols, result.to(out_ptr.dtype.element_ty), mask=inside)


def online_softmax(x: Any) -> Any:
    """Launch a program for each row."""
    out = empty(x.shape, x)
    online_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=BLOCK)
    return out


def persistent_softmax(x: Any) -> Any:
    """Launch `PROGRAMS` programs."""
    out = empty(x.shape, x)
    block = triton.next_power_of_2(x.shape[1])
    persistent_softmax_kernel[(min(PROGRAMS, x.shape[0]),)](x, out, *x.shape, BLOCK=block)
    return out


def reference(x: Array) -> Array:
    """Softmax of each row."""
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def problem(
    rows: int,
    cols: int,
    kind: str,
    launch: Callable[[Any], Any],
    *,
    name: str = "",
    tile: int = 0,
    shift: float = 0,
) -> Problem:
    """Values spread so that some exponentials are tiny. `shift` is added to all; exp(shift) alone would overflow."""

    def operands(random: Random) -> tuple[Operand]:
        return (normal(random, (rows, cols), kind, 3.0, shift),)

    return Problem(
        f"{rows}x{cols}{name}",
        kind,
        operands,
        launch,
        lambda x: expect("out", reference(x), kind, "softmax", terms=cols),
        tile or triton.next_power_of_2(cols),
        peer=reference if rows * cols > 100_000 else None,
    )


FUSED = Family("softmax", "Softmax of each row, held in one tile,", "softmax")
ONLINE = Family("online-softmax", "Softmax of each row, many tiles at a time,", "softmax")
PERSISTENT = Family("persistent-softmax", "Softmax by persistent programs", "softmax")

for _kind, (_rows, _cols) in product(("fp32", "fp16", "bf16"), ((1, 1), (7, 33), (64, 781))):
    FUSED.add(problem(_rows, _cols, _kind, softmax))
    PERSISTENT.add(problem(_rows, _cols, _kind, persistent_softmax))
for _kind, (_rows, _cols) in product(("fp32", "fp16", "bf16"), ((1, 1), (3, 257), (5, 2000))):
    ONLINE.add(problem(_rows, _cols, _kind, online_softmax, tile=BLOCK))
FUSED.add(problem(9, 500, "fp32", softmax, name="-shifted", shift=1000.0))
ONLINE.add(problem(9, 500, "fp32", online_softmax, name="-shifted", tile=BLOCK, shift=-1000.0))
for _kind in ("fp32", "bf16"):
    FUSED.add(problem(1823, 781, _kind, softmax))
FUSED.add(problem(512, 4096, "fp16", softmax))
ONLINE.add(problem(16, 32_000, "fp32", online_softmax, tile=BLOCK))
PERSISTENT.add(problem(1823, 781, "fp32", persistent_softmax))

CHECKS = (*FUSED.checks, *ONLINE.checks, *PERSISTENT.checks)

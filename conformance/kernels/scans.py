"""Prefix sums over many tiles, and sums over a matrix's rows and columns."""

from __future__ import annotations

import math
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

BLOCK = 512
TOTALS = 2048
"""The number of tiles whose totals one program can add up."""


@triton.jit
def scan_tiles_kernel(x_ptr, out_ptr, total_ptr, n, BLOCK: tl.constexpr):
    """The running sum within each tile, and each tile's sum."""
    tile = tl.program_id(0)
    offsets = tile * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=0), mask=offsets < n)
    tl.store(total_ptr + tile, tl.sum(x, axis=0))


@triton.jit
def scan_totals_kernel(total_ptr, n, BLOCK: tl.constexpr):
    """Replace each tile's total by the sum of all tiles before it."""
    offsets = tl.arange(0, BLOCK)
    totals = tl.load(total_ptr + offsets, mask=offsets < n, other=0)
    tl.store(total_ptr + offsets, tl.cumsum(totals, axis=0) - totals, mask=offsets < n)


@triton.jit
def add_totals_kernel(out_ptr, total_ptr, n, BLOCK: tl.constexpr):
    """Add the sum of all earlier tiles to each tile."""
    tile = tl.program_id(0)
    offsets = tile * BLOCK + tl.arange(0, BLOCK)
    out = tl.load(out_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, out + tl.load(total_ptr + tile), mask=offsets < n)


@triton.jit
def sums_kernel(x_ptr, rows_ptr, cols_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The sums of a matrix along both axes, ROWS rows at a time."""
    cols = tl.arange(0, COLS)
    down = tl.zeros((COLS,), tl.float32)
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0).to(tl.float32)
        tl.store(rows_ptr + rows, tl.sum(x, axis=1), mask=rows < n_rows)
        down += tl.sum(x, axis=0)
    tl.store(cols_ptr + cols, down, mask=cols < n_cols)


def prefix_sum(x: Any) -> Any:
    """Three launches: scan the tiles, scan their totals, and add both."""
    n = math.prod(x.shape)
    tiles = triton.cdiv(n, BLOCK)
    if tiles > TOTALS:
        raise ValueError(f"{n} elements are more than {TOTALS * BLOCK}")
    out, totals = empty(x.shape, x), empty((tiles,), x)
    scan_tiles_kernel[(tiles,)](x, out, totals, n, BLOCK=BLOCK)
    scan_totals_kernel[(1,)](totals, tiles, BLOCK=triton.next_power_of_2(tiles))
    add_totals_kernel[(tiles,)](out, totals, n, BLOCK=BLOCK)
    return out


def problem(n: int, kind: str, peer: bool = False) -> Problem:
    """n elements. Integers wrap around."""
    own = KINDS[kind]

    def operands(random: Random) -> tuple[Operand]:
        if own.is_integer:
            return (Operand(random.integers(own.lowest, own.highest, n, own.host, endpoint=True), own),)
        return (normal(random, (n,), kind),)

    def expected(x: Array) -> Expected:
        if own.is_integer:
            return exact("sums", np.cumsum(x, dtype=own.host), own)
        wide = x.astype(np.longdouble)
        return expect("sums", np.cumsum(wide).astype(np.float64), own, "prefix_sum", np.cumsum(np.abs(x)), n)

    return Problem(
        f"{n}",
        kind,
        operands,
        prefix_sum,
        expected,
        max(BLOCK, triton.next_power_of_2(triton.cdiv(n, BLOCK))),
        peer=np.cumsum if peer else None,
        tolerance="exact" if own.is_integer else "",
    )


PREFIX = Family("prefix-sum", "The running sum of a vector of many tiles", "prefix_sum")
for _kind, _n in product(("fp32", "fp64", "i32", "i64"), (1, 511, 513, 20_000)):
    PREFIX.add(problem(_n, _kind))
for _kind in ("fp32", "i32"):
    PREFIX.add(problem(1_000_001, _kind, peer=True))


# --- sums along both axes ----------------------------------------------------------------------------


def sums(x: Any) -> tuple[Any, Any]:
    """One program for the whole matrix."""
    rows, cols = empty((x.shape[0],), x, "fp32"), empty((x.shape[1],), x, "fp32")
    sums_kernel[(1,)](x, rows, cols, *x.shape, ROWS=16, COLS=triton.next_power_of_2(x.shape[1]))
    return rows, cols


def sums_problem(n_rows: int, n_cols: int, kind: str, peer: bool = False) -> Problem:
    """A matrix."""

    def expected(x: Array) -> tuple[Expected, ...]:
        return tuple(
            expect(what, x.sum(axis), "fp32", "reduction", np.abs(x).sum(axis), x.shape[axis])
            for what, axis in (("sums of rows", 1), ("sums of columns", 0))
        )

    return Problem(
        f"{n_rows}x{n_cols}",
        kind,
        lambda random: (normal(random, (n_rows, n_cols), kind),),
        sums,
        expected,
        16 * triton.next_power_of_2(n_cols),
        peer=(lambda x: (x.sum(1), x.sum(0))) if peer else None,
    )


SUMS = Family("sums", "Sums of a matrix along both axes", "reduction")
for _kind, (_rows, _cols) in product(("fp32", "fp16", "bf16"), ((1, 1), (17, 100), (100, 17))):
    SUMS.add(sums_problem(_rows, _cols, _kind))
SUMS.add(sums_problem(2000, 250, "fp32", peer=True))

CHECKS = (*PREFIX.checks, *SUMS.checks)

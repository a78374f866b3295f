"""Sorting of rows, the largest elements of each row and their positions, and histograms."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.batched import zero_kernel
from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    Random,
    empty,
    exact,
    normal,
)
from triton_porting_kit.conformance.types import KINDS, Array
from triton_porting_kit.kernels.rows import sort_kernel


@triton.jit
def top_k_kernel(x_ptr, out_ptr, where_ptr, n_cols, padding, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest elements of a row in descending order, and the first position of the largest."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=padding)
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))
    tl.store(where_ptr + row, tl.argmax(x, axis=0))


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Count each tile, and add the counts to those of all. Values outside of the bins are not counted."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-1)
    counts = tl.histogram(x, BINS, mask=(x >= 0) & (x < BINS))
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), counts)


def _numbers(random: Random, shape: tuple[int, ...], kind: str) -> Operand:
    """Values with many duplicates, infinities and both ends of the range of integers."""
    own = KINDS[kind]
    if own.is_integer:
        values = random.integers(own.lowest, own.highest, shape, own.host, endpoint=True)
        few = random.integers(0, 4, shape).astype(own.host)
        return Operand(np.where(random.random(shape) < 0.3, few, values), own)
    found = normal(random, shape, kind).values
    special = random.choice(np.array([np.inf, -np.inf, 1.0, 1.0, -1.0], found.dtype), shape)
    return Operand(np.where(random.random(shape) < 0.2, special, found), own)


def _end(kind: str, highest: bool) -> Any:
    """The value that sorts last, in ascending or descending order."""
    own = KINDS[kind]
    if own.is_integer:
        return own.highest if highest else own.lowest
    return float("inf") if highest else -float("inf")


# --- sort --------------------------------------------------------------------------------------------


def sort(x: Any, descending: bool) -> Any:
    """Launch a program for each row."""
    out, (rows, cols) = empty(x.shape, x), x.shape
    padding = _end(x.kind.name, not descending)
    sort_kernel[(rows,)](x, out, cols, padding, BLOCK=triton.next_power_of_2(cols), DESCENDING=descending)
    return out


def problem(rows: int, cols: int, kind: str, descending: bool, peer: bool = False) -> Problem:
    """Rows to be sorted."""

    def expected(x: Array) -> Expected:
        rising = np.sort(x, axis=1)
        return exact("sorted", rising[:, ::-1] if descending else rising, kind)

    return Problem(
        f"{rows}x{cols}-{'descending' if descending else 'ascending'}",
        kind,
        lambda random: (_numbers(random, (rows, cols), kind),),
        lambda x: sort(x, descending),
        expected,
        triton.next_power_of_2(cols),
        peer=(lambda x: np.sort(x, axis=1)) if peer else None,
    )


SORT = Family("sort", "Sorting of each row", "exact")
for _kind, (_rows, _cols), _descending in product(
    ("fp32", "fp16", "i32", "i16"), ((1, 1), (3, 37), (2, 256)), (False, True)
):
    SORT.add(problem(_rows, _cols, _kind, _descending))
for _kind in ("fp32", "i32"):
    SORT.add(problem(256, 500, _kind, False, peer=True))


# --- top k -------------------------------------------------------------------------------------------


def top_k(x: Any, k: int) -> tuple[Any, Any]:
    """Launch a program for each row."""
    (rows, cols), padding = x.shape, _end(x.kind.name, False)
    out, where = empty((rows, k), x), empty((rows,), x, "i32")
    top_k_kernel[(rows,)](x, out, where, cols, padding, K=k, BLOCK=max(k, triton.next_power_of_2(cols)))
    return out, where


def top_k_problem(rows: int, cols: int, k: int, kind: str, peer: bool = False) -> Problem:
    """The largest k, a power of two, of cols elements."""

    def expected(x: Array) -> tuple[Expected, Expected]:
        return exact("largest", np.sort(x, axis=1)[:, ::-1][:, :k], kind), exact(
            "where", x.argmax(axis=1), "i32"
        )

    return Problem(
        f"{rows}x{cols}-top{k}",
        kind,
        lambda random: (_numbers(random, (rows, cols), kind),),
        lambda x: top_k(x, k),
        expected,
        max(k, triton.next_power_of_2(cols)),
        peer=(lambda x: np.sort(np.partition(x, -k, axis=1)[:, -k:], axis=1)) if peer else None,
    )


TOP_K = Family("top-k", "The largest elements of each row, and the position of the largest,", "exact")
for _kind, (_rows, _cols, _k) in product(
    ("fp32", "fp16", "i32"), ((1, 8, 8), (3, 37, 4), (2, 256, 16), (4, 100, 2))
):
    TOP_K.add(top_k_problem(_rows, _cols, _k, _kind))
TOP_K.add(top_k_problem(128, 1000, 8, "fp32", peer=True))


# --- histogram ---------------------------------------------------------------------------------------

BLOCK = 1024


def histogram(x: Any, bins: int) -> Any:
    """Launch a program for each tile."""
    counts, n = empty((bins,), x, "i32"), math.prod(x.shape)
    zero_kernel[(1,)](counts, bins, BLOCK=bins)
    histogram_kernel[(triton.cdiv(n, BLOCK),)](x, counts, n, BINS=bins, BLOCK=BLOCK)
    return counts


def histogram_problem(n: int, bins: int, peer: bool = False) -> Problem:
    """n integers, some of them outside of the bins."""

    def operands(random: Random) -> tuple[Operand]:
        return (Operand(random.integers(-3, bins + 3, n).astype(np.int32), KINDS["i32"]),)

    def count(x: Array) -> Array:
        return np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)

    return Problem(
        f"{n}-{bins}bins",
        "i32",
        operands,
        lambda x: histogram(x, bins),
        lambda x: exact("counts", count(x), "i32"),
        max(BLOCK, bins),
        peer=count if peer else None,
    )


HISTOGRAM = Family(
    "histogram", "Counting the elements of each value", "exact", ("atomic:i32", "feature:atomics")
)
for _n, _bins in product((1, 1000, 5000), (16, 256)):
    HISTOGRAM.add(histogram_problem(_n, _bins))
HISTOGRAM.add(histogram_problem(500_000, 256, peer=True))

CHECKS = (*SORT.checks, *TOP_K.checks, *HISTOGRAM.checks)

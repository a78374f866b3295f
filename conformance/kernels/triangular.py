"""Triangular masks: a triangle of a matrix, a product with a triangular matrix, and a band."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.matmul import matrix
from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    Random,
    empty,
    exact,
    expect,
)
from triton_porting_kit.conformance.types import KINDS, Array

TILE = 32


@triton.jit
def triangle_kernel(x_ptr, out_ptr, n_rows, n_cols, diagonal, UPPER: tl.constexpr, TILE: tl.constexpr):
    """Copy the elements on one side of a diagonal, and 0 elsewhere. Only copied elements are read."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    if UPPER:
        kept = cols[None, :] - rows[:, None] >= diagonal
    else:
        kept = cols[None, :] - rows[:, None] <= diagonal
    inside = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    offsets = rows[:, None] * n_cols + cols[None, :]
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside & kept, other=0), mask=inside)


@triton.jit
def triangular_matmul_kernel(a_ptr, b_ptr, c_ptr, n, m, TILE: tl.constexpr):
    """c = tril(a) @ b: tiles above the diagonal are not read, those on it are masked."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    accumulator = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * TILE, n), TILE):
        k = start + tl.arange(0, TILE)
        a = tl.load(
            a_ptr + rows[:, None] * n + k[None, :],
            mask=(rows[:, None] < n) & (k[None, :] <= rows[:, None]),
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None] * m + cols[None, :], mask=(k[:, None] < n) & (cols[None, :] < m), other=0.0
        )
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
    inside = (rows[:, None] < n) & (cols[None, :] < m)
    tl.store(c_ptr + rows[:, None] * m + cols[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def band_sums_kernel(x_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    """The sum of each row of x within `width` of the diagonal."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    seen = (cols < n) & (cols >= row - width) & (cols <= row + width)
    x = tl.load(x_ptr + row * n + cols, mask=seen, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


# --- triangles ---------------------------------------------------------------------------------------


def triangle(x: Any, diagonal: int, upper: bool) -> Any:
    """Launch a program for each tile."""
    rows, cols = x.shape
    out = empty(x.shape, x)
    grid = (triton.cdiv(rows, TILE), triton.cdiv(cols, TILE))
    triangle_kernel[grid](x, out, rows, cols, diagonal, UPPER=upper, TILE=TILE)
    return out


def _poisoned(random: Random, shape: tuple[int, int], kind: str, diagonal: int, upper: bool) -> Operand:
    """A matrix with NaN where the kernel must not read it."""
    found = matrix(random, shape, kind)
    if not found.kind.is_float:
        return found
    part = (np.triu if upper else np.tril)(np.ones(shape, bool), diagonal)
    return Operand(np.where(part, found.values, np.nan).astype(found.values.dtype), found.kind)


def problem(rows: int, cols: int, kind: str, diagonal: int, upper: bool, peer: bool = False) -> Problem:
    """The part above or below a diagonal."""
    part = np.triu if upper else np.tril
    return Problem(
        f"{rows}x{cols}-{'upper' if upper else 'lower'}-{'minus' if diagonal < 0 else ''}{abs(diagonal)}",
        kind,
        lambda random: (_poisoned(random, (rows, cols), kind, diagonal, upper),),
        lambda x: triangle(x, diagonal, upper),
        lambda x: exact("triangle", part(x, diagonal), kind),
        TILE * TILE,
        peer=(lambda x: part(x, diagonal)) if peer else None,
    )


TRIANGLE = Family("triangle", "One side of a matrix's diagonal", "exact")
for _kind, (_rows, _cols, _diagonal), _upper in product(
    ("fp32", "fp16", "i8"), ((1, 1, 0), (33, 70, 0), (70, 33, -5), (64, 64, 3)), (False, True)
):
    TRIANGLE.add(problem(_rows, _cols, _kind, _diagonal, _upper))
TRIANGLE.add(problem(1000, 1000, "fp32", 0, False, peer=True))


# --- triangular products -----------------------------------------------------------------------------


def triangular_matmul(a: Any, b: Any) -> Any:
    """tril(a) @ b for a of (n, n)."""
    n, m = b.shape
    c = empty((n, m), a)
    triangular_matmul_kernel[(triton.cdiv(n, TILE), triton.cdiv(m, TILE))](a, b, c, n, m, TILE=TILE)
    return c


def triangular_problem(n: int, m: int, kind: str, peer: bool = False) -> Problem:
    """(n, n) times (n, m)."""

    def expected(a: Array, b: Array) -> Expected:
        kept = np.tril(a)
        return expect("product", kept @ b, kind, "matmul", np.abs(kept) @ np.abs(b), n)

    return Problem(
        f"{n}x{m}",
        kind,
        lambda random: (_poisoned(random, (n, n), kind, 0, False), matrix(random, (n, m), kind)),
        triangular_matmul,
        expected,
        TILE * TILE,
        peer=(lambda a, b: np.tril(a) @ b) if peer else None,
    )


PRODUCT = Family("triangular-matmul", "A product with a lower triangular matrix", "matmul", ("feature:dot",))
for _kind, (_rows, _cols) in product(("fp32", "fp16", "bf16"), ((1, 1), (33, 20), (100, 65))):
    PRODUCT.add(triangular_problem(_rows, _cols, _kind))
PRODUCT.add(triangular_problem(400, 256, "fp32", peer=True))


# --- a band ------------------------------------------------------------------------------------------


def band_sums(x: Any, width: int) -> Any:
    """Launch a program for each row of a square matrix."""
    n = x.shape[0]
    out = empty((n,), x, "fp32")
    band_sums_kernel[(n,)](x, out, n, width, BLOCK=triton.next_power_of_2(n))
    return out


def band_problem(n: int, width: int, kind: str) -> Problem:
    """A square matrix with NaN outside of the band."""
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width

    def operands(random: Random) -> tuple[Operand]:
        found = matrix(random, (n, n), kind)
        return (Operand(np.where(band, found.values, np.nan).astype(found.values.dtype), found.kind),)

    def expected(x: Array) -> Expected:
        kept = np.where(band, x, 0)
        scale = np.abs(kept).sum(axis=1)
        return expect("sums", kept.sum(axis=1), KINDS["fp32"], "reduction", scale, 2 * width + 1)

    return Problem(
        f"{n}-within{width}",
        kind,
        operands,
        lambda x: band_sums(x, width),
        expected,
        triton.next_power_of_2(n),
    )


BAND = Family("band-sums", "Sums over a sliding window", "reduction")
for _kind, (_n, _width) in product(("fp32", "bf16"), ((1, 0), (50, 0), (77, 9), (300, 64))):
    BAND.add(band_problem(_n, _width, _kind))

CHECKS = (*TRIANGLE.checks, *PRODUCT.checks, *BAND.checks)

"""Kernels that move values: transposition, and an embedding with its gradient."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.batched import zero_kernel
from triton_porting_kit.conformance.kernels.matmul import matrix
from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    empty,
    exact,
    expect,
    normal,
)
from triton_porting_kit.conformance.types import KINDS, Array

TILE = 32


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, TILE: tl.constexpr):
    """A tile is read along its rows and written along its columns."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(
        x_ptr + rows[:, None] * n_cols + cols[None, :],
        mask=(rows[:, None] < n_rows) & (cols[None, :] < n_cols),
    )
    tl.store(
        out_ptr + cols[:, None] * n_rows + rows[None, :],
        tl.trans(x),
        mask=(cols[:, None] < n_cols) & (rows[None, :] < n_rows),
    )


@triton.jit
def embedding_kernel(table_ptr, index_ptr, out_ptr, n, dim, ROWS: tl.constexpr, DIM: tl.constexpr):
    """Gather rows of a table by index."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    index = tl.load(index_ptr + rows, mask=rows < n, other=0)
    inside = (rows[:, None] < n) & (dims[None, :] < dim)
    x = tl.load(table_ptr + index[:, None] * dim + dims[None, :], mask=inside)
    tl.store(out_ptr + rows[:, None] * dim + dims[None, :], x, mask=inside)


@triton.jit
def embedding_backward_kernel(dout_ptr, index_ptr, dtable_ptr, n, dim, ROWS: tl.constexpr, DIM: tl.constexpr):
    """Scatter gradients of rows to the table; rows with the same index are added."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    index = tl.load(index_ptr + rows, mask=rows < n, other=0)
    inside = (rows[:, None] < n) & (dims[None, :] < dim)
    dout = tl.load(dout_ptr + rows[:, None] * dim + dims[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(dtable_ptr + index[:, None] * dim + dims[None, :], dout, mask=inside)


# --- transposition -----------------------------------------------------------------------------------


def transpose(x: Any) -> Any:
    """Launch a program for each tile."""
    rows, cols = x.shape
    out = empty((cols, rows), x)
    transpose_kernel[(triton.cdiv(rows, TILE), triton.cdiv(cols, TILE))](x, out, rows, cols, TILE=TILE)
    return out


def problem(rows: int, cols: int, kind: str, peer: bool = False) -> Problem:
    """A matrix."""
    return Problem(
        f"{rows}x{cols}",
        kind,
        lambda random: (matrix(random, (rows, cols), kind),),
        transpose,
        lambda x: exact("transpose", x.T, kind),
        TILE * TILE,
        peer=(lambda x: np.ascontiguousarray(x.T)) if peer else None,
    )


TRANSPOSE = Family("transpose", "The transpose of a matrix", "exact")
for _kind, _shape in product(("fp32", "fp16", "fp64", "i8", "i64", "fp8e5"), ((1, 1), (33, 70), (64, 5))):
    TRANSPOSE.add(problem(*_shape, _kind))
TRANSPOSE.add(problem(1000, 1500, "fp32", peer=True))


# --- an embedding ------------------------------------------------------------------------------------


def embedding(table: Any, index: Any) -> Any:
    """Launch over the requested rows."""
    n, dim = index.shape[0], table.shape[1]
    out = empty((n, dim), table)
    embedding_kernel[(triton.cdiv(n, 8),)](table, index, out, n, dim, ROWS=8, DIM=triton.next_power_of_2(dim))
    return out


def embedding_problem(vocabulary: int, n: int, dim: int, kind: str, peer: bool = False) -> Problem:
    """n rows of a table."""

    def by_numpy(table: Array, index: Array) -> Array:
        return np.asarray(table[index])

    return Problem(
        f"{vocabulary}x{dim}-{n}",
        kind,
        lambda random: (
            normal(random, (vocabulary, dim), kind),
            Operand(random.integers(0, vocabulary, n), KINDS["i64"]),
        ),
        embedding,
        lambda table, index: exact("rows", table[index], kind),
        8 * triton.next_power_of_2(dim),
        ("type:i64",),
        peer=by_numpy if peer else None,
    )


EMBEDDING = Family("embedding", "Rows of a table by index", "exact")


def embedding_backward(dout: Any, index: Any, vocabulary: int) -> Any:
    """The gradient of the table, fp32."""
    n, dim = dout.shape
    dtable = empty((vocabulary, dim), dout, "fp32")
    zero_kernel[(triton.cdiv(vocabulary * dim, 1024),)](dtable, vocabulary * dim, BLOCK=1024)
    embedding_backward_kernel[(triton.cdiv(n, 8),)](
        dout, index, dtable, n, dim, ROWS=8, DIM=triton.next_power_of_2(dim)
    )
    return dtable


def embedding_backward_problem(vocabulary: int, n: int, dim: int, kind: str) -> Problem:
    """n rows, several of which have the same index."""

    def add(dout: Array, index: Array) -> Array:
        total = np.zeros((vocabulary, dim), dout.dtype)
        np.add.at(total, index, dout)
        return total

    def expected(dout: Array, index: Array) -> Expected:
        return expect("gradient", add(dout, index), "fp32", "reduction", add(np.abs(dout), index), n)

    return Problem(
        f"{vocabulary}x{dim}-{n}",
        kind,
        lambda random: (
            normal(random, (n, dim), kind),
            Operand(random.integers(0, vocabulary, n), KINDS["i64"]),
        ),
        lambda dout, index: embedding_backward(dout, index, vocabulary),
        expected,
        8 * triton.next_power_of_2(dim),
        ("type:i64", "atomic:fp32", "feature:atomics"),
    )


EMBEDDING_BACKWARD = Family("embedding-backward", "The gradient of an embedding's table", "reduction")
for _kind, (_vocabulary, _n, _dim) in product(("fp32", "bf16"), ((1, 1, 1), (100, 37, 70), (3, 200, 16))):
    EMBEDDING.add(embedding_problem(_vocabulary, _n, _dim, _kind))
    EMBEDDING_BACKWARD.add(embedding_backward_problem(_vocabulary, _n, _dim, _kind))
EMBEDDING.add(embedding_problem(5000, 2000, 256, "fp32", peer=True))

CHECKS = (*TRANSPOSE.checks, *EMBEDDING.checks, *EMBEDDING_BACKWARD.checks)

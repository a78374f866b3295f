"""Many products in one launch: a batch of equal shapes, groups of different shapes given by address, and split K."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.matmul import accumulator_of, matrix, product_of, tolerance_of
from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Problem,
    empty,
)
from triton_porting_kit.conformance.types import Array

TILE, DEPTH = 32, 32


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    ACCUMULATOR: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One tile of one product per program: the grid is (tiles down, tiles across, batch)."""
    batch = tl.program_id(2)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    ks = tl.arange(0, DEPTH)
    accumulator = tl.zeros((TILE, TILE), dtype=ACCUMULATOR)
    for start in range(0, K, DEPTH):
        k = start + ks
        a_ptrs = a_ptr + batch * stride_ab + rows[:, None] * stride_am + k[None, :] * stride_ak
        b_ptrs = b_ptr + batch * stride_bb + k[:, None] * stride_bk + cols[None, :] * stride_bn
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee", out_dtype=ACCUMULATOR)
    c_ptrs = c_ptr + batch * stride_cb + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def grouped_matmul_kernel(
    address_ptr, size_ptr, groups,
    ELEMENT: tl.constexpr, RESULT: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Products of several sizes: programs process the tiles of all products round-robin.

    A group is three addresses (a, b, c) in `address_ptr` and three sizes (M, N, K) in `size_ptr`; matrices are dense.
    """
    tile = tl.program_id(0)
    done = 0
    for group in range(groups):
        M = tl.load(size_ptr + group * 3)
        N = tl.load(size_ptr + group * 3 + 1)
        K = tl.load(size_ptr + group * 3 + 2)
        tiles_n = tl.cdiv(N, TILE)
        tiles = tl.cdiv(M, TILE) * tiles_n
        while tile >= done and tile < done + tiles:
            a_ptr = tl.load(address_ptr + group * 3).to(tl.pointer_type(ELEMENT))
            b_ptr = tl.load(address_ptr + group * 3 + 1).to(tl.pointer_type(ELEMENT))
            c_ptr = tl.load(address_ptr + group * 3 + 2).to(tl.pointer_type(RESULT))
            rows = (tile - done) // tiles_n * TILE + tl.arange(0, TILE)
            cols = (tile - done) % tiles_n * TILE + tl.arange(0, TILE)
            accumulator = tl.zeros((TILE, TILE), dtype=tl.float32)
            for start in range(0, K, DEPTH):
                k = start + tl.arange(0, DEPTH)
                a = tl.load(
                    a_ptr + rows[:, None] * K + k[None, :],
                    mask=(rows[:, None] < M) & (k[None, :] < K),
                    other=0.0,
                )
                b = tl.load(
                    b_ptr + k[:, None] * N + cols[None, :],
                    mask=(k[:, None] < K) & (cols[None, :] < N),
                    other=0.0,
                )
                accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
            inside = (rows[:, None] < M) & (cols[None, :] < N)
            tl.store(c_ptr + rows[:, None] * N + cols[None, :], accumulator.to(RESULT), mask=inside)
            tile += tl.num_programs(0)
        done += tiles


@triton.jit
def zero_kernel(out_ptr, n, BLOCK: tl.constexpr):
    """Set n elements to 0."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.zeros((BLOCK,), out_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    ACCUMULATOR: tl.constexpr, SPLIT: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The grid is (tiles down, tiles across, SPLIT): programs share the K of a tile and add to it atomically."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    accumulator = tl.zeros((TILE, TILE), dtype=ACCUMULATOR)
    for start in range(tl.program_id(2) * DEPTH, K, SPLIT * DEPTH):
        k = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + k[:, None] * N + cols[None, :], mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0
        )
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee", out_dtype=ACCUMULATOR)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], accumulator, mask=inside)


# --- a batch -----------------------------------------------------------------------------------------


def _result(kind: str) -> str:
    return {"i8": "i32"}.get(kind, kind)


def batched_matmul(a: Any, b: Any) -> Any:
    """Launch over (batch, M, K) and (batch, K, N)."""
    (batch, m, k), n = a.shape, b.shape[2]
    c = empty((batch, m, n), a, _result(a.kind.name))
    batched_matmul_kernel[(triton.cdiv(m, TILE), triton.cdiv(n, TILE), batch)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        ACCUMULATOR=accumulator_of(a.kind.name), TILE=TILE, DEPTH=DEPTH,
    )  # fmt: skip
    return c


def batched(batch: int, m: int, n: int, k: int, kind: str, peer: bool = False) -> Problem:
    """A batch of products."""
    return Problem(
        f"{batch}x{m}x{n}x{k}",
        kind,
        lambda random: (matrix(random, (batch, m, k), kind), matrix(random, (batch, k, n), kind)),
        batched_matmul,
        lambda a, b: product_of(a, b, kind),
        TILE * max(TILE, DEPTH),
        peer=np.matmul if peer else None,
        tolerance=tolerance_of(kind),
    )


BATCHED = Family("batched-matmul", "A batch of matrix products", "matmul", ("feature:dot",))
for _kind, _shape in product(
    ("fp32", "fp16", "bf16", "i8"), ((1, 1, 1, 1), (3, 33, 20, 70), (7, 16, 48, 31))
):
    BATCHED.add(batched(*_shape, _kind))
for _kind in ("fp32", "bf16"):
    BATCHED.add(batched(16, 128, 128, 64, _kind, peer=True))


# --- groups ------------------------------------------------------------------------------------------


def grouped_matmul(*matrices: Any, programs: int = 8) -> tuple[Any, ...]:
    """Launch over pairs of matrices, of any sizes."""
    pairs = list(zip(matrices[::2], matrices[1::2], strict=True))
    results = tuple(empty((a.shape[0], b.shape[1]), a) for a, b in pairs)
    table = [[x.data_ptr() for x in (a, b, c)] for (a, b), c in zip(pairs, results, strict=True)]
    addresses = empty((len(pairs), 3), matrices[0], "i64")
    addresses.write(np.array(table, np.int64))
    shapes = empty((len(pairs), 3), matrices[0], "i32")
    shapes.write(np.array([[a.shape[0], b.shape[1], a.shape[1]] for a, b in pairs], np.int32))
    element = {"fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16}[matrices[0].kind.name]
    grouped_matmul_kernel[(programs,)](
        addresses, shapes, len(pairs), ELEMENT=element, RESULT=element, TILE=TILE, DEPTH=DEPTH
    )
    return results


def grouped(sizes: tuple[tuple[int, int, int], ...], kind: str, name: str, peer: bool = False) -> Problem:
    """A group of products with the sizes (M, N, K)."""

    def expected(*values: Array) -> tuple[Expected, ...]:
        return tuple(product_of(a, b, kind) for a, b in zip(values[::2], values[1::2], strict=True))

    def by_numpy(*values: Array) -> list[Array]:
        return [a @ b for a, b in zip(values[::2], values[1::2], strict=True)]

    return Problem(
        name,
        kind,
        lambda random: [matrix(random, shape, kind) for m, n, k in sizes for shape in ((m, k), (k, n))],
        grouped_matmul,
        expected,
        TILE * max(TILE, DEPTH),
        peer=by_numpy if peer else None,
    )


GROUPED = Family(
    "grouped-matmul", "Matrix products of different sizes in one launch", "matmul", ("feature:dot",)
)
for _kind in ("fp32", "fp16", "bf16"):
    GROUPED.add(grouped(((1, 1, 1),), _kind, "one"))
    GROUPED.add(grouped(((40, 33, 20), (1, 70, 65), (64, 64, 64), (5, 3, 2)), _kind, "four"))
    GROUPED.add(grouped(tuple((64 * k, 128, 96) for k in (1, 2, 3, 4)), _kind, "real", peer=_kind != "fp16"))


# --- split K -----------------------------------------------------------------------------------------


def split_k_matmul(a: Any, b: Any, split: int) -> Any:
    """Launch `split` programs for each tile."""
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), a, {"i8": "i32", "fp64": "fp64"}.get(a.kind.name, "fp32"))
    zero_kernel[(triton.cdiv(m * n, 1024),)](c, m * n, BLOCK=1024)
    split_k_kernel[(triton.cdiv(m, TILE), triton.cdiv(n, TILE), split)](
        a, b, c, m, n, k, ACCUMULATOR=accumulator_of(a.kind.name), SPLIT=split, TILE=TILE, DEPTH=DEPTH
    )
    return c


def split_k(m: int, n: int, k: int, split: int, kind: str, peer: bool = False) -> Problem:
    """(m, k) times (k, n), with a long k."""
    result = {"i8": "i32", "fp64": "fp64"}.get(kind, "fp32")
    return Problem(
        f"{m}x{n}x{k}-{split}",
        kind,
        lambda random: (matrix(random, (m, k), kind), matrix(random, (k, n), kind)),
        lambda a, b: split_k_matmul(a, b, split),
        lambda a, b: product_of(a, b, kind, result),
        TILE * max(TILE, DEPTH),
        (f"atomic:{result}",),
        peer=np.matmul if peer else None,
        tolerance=tolerance_of(kind),
    )


SPLIT_K = Family(
    "split-k-matmul",
    "A matrix product whose parts are added atomically",
    "matmul",
    ("feature:dot", "feature:atomics"),
)
for _kind, (_m, _n, _k, _split) in product(
    ("fp32", "fp16", "bf16", "i8"), ((1, 1, 1, 2), (33, 20, 300, 3), (64, 64, 512, 8))
):
    SPLIT_K.add(split_k(_m, _n, _k, _split, _kind))
for _kind in ("fp32", "bf16"):
    SPLIT_K.add(split_k(64, 96, 8192, 16, _kind, peer=True))

CHECKS = (*BATCHED.checks, *GROUPED.checks, *SPLIT_K.checks)

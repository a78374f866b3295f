"""Quantised matrix products: 8-bit integers and floats with a scale for each row and column, 4-bit weights in pairs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.matmul import accumulator_of, matrix
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
from triton_porting_kit.conformance.types import KINDS, Array

TILE, DEPTH = 32, 32
GROUP = 32
"""The number of weights along K that share a scale and a zero point."""


@triton.jit
def scaled_matmul_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
    ACCUMULATOR: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """c = (a @ b) * a_scale of the row * b_scale of the column. b is stored as its transpose."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    accumulator = tl.zeros((TILE, TILE), dtype=ACCUMULATOR)
    for start in range(0, K, DEPTH):
        k = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + cols[None, :] * K + k[:, None], mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0
        )
        accumulator = tl.dot(a, b, accumulator, out_dtype=ACCUMULATOR)
    a_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + cols, mask=cols < N, other=0.0)
    c = accumulator.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def int4_matmul_kernel(
    a_ptr, packed_ptr, scale_ptr, zero_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, TILE: tl.constexpr
):
    """c = a @ w for w = (nibble - zero) * scale: a byte holds rows k and k + 1 of w, the lower nibble first."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    accumulator = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, GROUP):
        k = start + tl.arange(0, GROUP)
        a = tl.load(
            a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0
        )
        inside = (k[:, None] < K) & (cols[None, :] < N)
        packed = tl.load(packed_ptr + (k[:, None] // 2) * N + cols[None, :], mask=inside, other=0)
        nibble = (packed >> ((k[:, None] % 2) * 4).to(tl.uint8)) & 15
        group = start // GROUP * N + cols
        scale = tl.load(scale_ptr + group, mask=cols < N, other=0.0)
        zero = tl.load(zero_ptr + group, mask=cols < N, other=0)
        w = (nibble.to(tl.int32) - zero.to(tl.int32)[None, :]).to(tl.float32) * scale[None, :]
        accumulator = tl.dot(a, w.to(a.dtype), accumulator, input_precision="ieee")
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=inside)


# --- 8 bits ------------------------------------------------------------------------------------------


def scaled_matmul(a: Any, b: Any, a_scale: Any, b_scale: Any, *, result: str) -> Any:
    """Launch over (M, K), (N, K), (M,) and (N,)."""
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a, result)
    scaled_matmul_kernel[(triton.cdiv(m, TILE), triton.cdiv(n, TILE))](
        a, b, a_scale, b_scale, c, m, n, k, ACCUMULATOR=accumulator_of(a.kind.name), TILE=TILE, DEPTH=DEPTH
    )
    return c


def _scales(random: Random, n: int) -> Operand:
    return operand(np.exp(random.uniform(-8, -2, n)), "fp32")


def problem(m: int, n: int, k: int, kind: str, result: str, peer: bool = False) -> Problem:
    """(m, k) times (n, k) transposed."""
    is_integer = KINDS[kind].is_integer

    def expected(a: Array, b: Array, a_scale: Array, b_scale: Array) -> Expected:
        scale = a_scale[:, None] * b_scale
        left, right = a.astype(np.float64), b.astype(np.float64).T  # sums of products of bytes are exact
        if is_integer:
            return expect("product", left @ right * scale, result, "matmul_quantised")
        size = np.abs(left) @ np.abs(right) * scale
        return expect("product", left @ right * scale, result, "matmul_fp8", size, k)

    def by_numpy(a: Array, b: Array, a_scale: Array, b_scale: Array) -> Array:
        return np.asarray((a.astype(np.float32) @ b.astype(np.float32).T) * a_scale[:, None] * b_scale)

    return Problem(
        f"{m}x{n}x{k}-to-{result}",
        kind,
        lambda random: (
            matrix(random, (m, k), kind),
            matrix(random, (n, k), kind),
            _scales(random, m),
            _scales(random, n),
        ),
        lambda *arrays: scaled_matmul(*arrays, result=result),
        expected,
        TILE * max(TILE, DEPTH),
        (f"type:{result}",),
        peer=by_numpy if peer else None,
        tolerance="" if is_integer else "matmul_fp8",
    )


SCALED = Family(
    "scaled-matmul",
    "A product of 8-bit matrices with scales of rows and columns",
    "matmul_quantised",
    ("feature:dot",),
)
for _kind, _result, _shape in product(
    ("i8", "fp8e4nv", "fp8e5"), ("fp32", "bf16"), ((1, 1, 1), (33, 20, 70), (65, 64, 128))
):
    SCALED.add(problem(*_shape, _kind, _result))
SCALED.add(problem(256, 256, 512, "i8", "fp16", peer=True))
SCALED.add(problem(256, 256, 512, "fp8e4nv", "bf16"))


# --- 4 bits ------------------------------------------------------------------------------------------


def int4_matmul(a: Any, packed: Any, scale: Any, zero: Any) -> Any:
    """Launch over (M, K), (K / 2, N), and (groups, N) twice."""
    (m, k), n = a.shape, packed.shape[1]
    c = empty((m, n), a)
    int4_matmul_kernel[(triton.cdiv(m, TILE), triton.cdiv(n, TILE))](
        a, packed, scale, zero, c, m, n, k, GROUP=GROUP, TILE=TILE
    )
    return c


def _weights(packed: Array, scale: Array, zero: Array) -> Array:
    """The dequantised weights, before they are rounded to the kernel's type."""
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1, packed.shape[1]).astype(np.int64)
    spread = [np.repeat(part, GROUP, axis=0)[: len(nibbles)] for part in (scale, zero.astype(np.int64))]
    return np.asarray((nibbles - spread[1]) * spread[0])


def int4_problem(m: int, n: int, k: int, kind: str, peer: bool = False) -> Problem:
    """(m, k) times (k, n), an even k."""
    groups = -(-k // GROUP)

    def operands(random: Random) -> tuple[Operand, ...]:
        return (
            normal(random, (m, k), kind),
            Operand(random.integers(0, 256, (k // 2, n), np.uint8), KINDS["u8"]),
            operand(2.0 ** random.integers(-6, 0, (groups, n)), "fp32"),  # so that weights are exact
            Operand(random.integers(0, 16, (groups, n), np.uint8), KINDS["u8"]),
        )

    def expected(a: Array, packed: Array, scale: Array, zero: Array) -> Expected:
        w = _weights(packed, scale, zero)
        return expect("product", a @ w, kind, "matmul", np.abs(a) @ np.abs(w), k)

    def by_numpy(a: Array, packed: Array, scale: Array, zero: Array) -> Array:
        return np.asarray(a @ _weights(packed, scale, zero).astype(a.dtype))

    return Problem(
        f"{m}x{n}x{k}",
        kind,
        operands,
        int4_matmul,
        expected,
        TILE * max(TILE, GROUP),
        ("type:u8",),
        peer=by_numpy if peer else None,
    )


INT4 = Family(
    "int4-matmul", "A product with 4-bit weights, unpacked as they are read,", "matmul", ("feature:dot",)
)
for _kind, _shape in product(("fp32", "fp16", "bf16"), ((1, 1, 2), (33, 20, 70), (16, 65, 128))):
    INT4.add(int4_problem(*_shape, _kind))
for _kind in ("fp32", "bf16"):
    INT4.add(int4_problem(64, 256, 512, _kind, peer=True))

CHECKS = (*SCALED.checks, *INT4.checks)

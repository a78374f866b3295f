"""Kernels with tiles that are larger than local memory, and that are no chains of element-wise operations."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def product_of_transposed(a, b, bias, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """With a bias for the columns, and an activation."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + k[:, None] * M + m[None, :])
    y = tl.load(b + n[:, None] * K + k[None, :])
    sums = tl.dot(tl.trans(x), tl.trans(y), input_precision="ieee") + tl.load(bias + n)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], tl.maximum(sums, 0.0))


@triton.jit
def batched_product(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i * M * K + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + i * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + i * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def column_sums(x, sums, largest, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    value = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(sums + j, tl.sum(value, 0))
    tl.store(largest + j, tl.max(value, 0))


@triton.jit
def normalised_columns(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    value = tl.load(x + at)
    tl.store(out + at, value - tl.sum(value, 0)[None, :] / M)


@triton.jit
def carried_sums(x, out, n, M: tl.constexpr, N: tl.constexpr):
    """A tile that a loop carries."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for i in range(n):
        total = total * 0.5 + tl.load(x + i * M * N + at)
    tl.store(out + at, total)


@triton.jit
def carried_pair(x, first, second, n, M: tl.constexpr, N: tl.constexpr):
    """Two tiles that a loop carries. The first is needed before the constant that only the second takes."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    doubled = tl.zeros((M, N), tl.float32)
    for i in range(n):
        value = tl.load(x + i * M * N + at)
        total += value
        doubled += value * 2.0
    tl.store(first + at, tl.abs(total))
    tl.store(second + at, doubled)


@triton.jit
def carried_softmax(x, out, steps, M: tl.constexpr, N: tl.constexpr):
    """As attention: vectors of rows, and a tile that is scaled by them, are carried; the columns are read in loops."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    largest = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    sums = tl.zeros((M, N), tl.float32)
    offset = 0
    for _ in range(steps):
        value = tl.load(x + offset + m[:, None] * N + n[None, :])
        larger = tl.maximum(largest, tl.max(value, 1))
        weights = tl.exp(value - larger[:, None])
        less = tl.exp(largest - larger)
        total = total * less + tl.sum(weights, 1)
        sums = sums * less[:, None] + weights
        largest = larger
        offset += M * N
    tl.store(out + m[:, None] * N + n[None, :], sums / total[:, None])


@triton.jit
def accumulated_in_place(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """C += A B, where the sums are loaded from the array that is stored to."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    at = c + m[:, None] * N + n[None, :]
    sums = tl.load(at)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=(start + k)[:, None] < K, other=0.0)
        sums = tl.dot(x, y, sums, input_precision="ieee")
    tl.store(at, sums)


@triton.jit
def all_columns_of_each_row(x, out, B: tl.constexpr):
    """Each row needs all rows."""
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    value = tl.load(x + at)
    tl.store(out + at, value + tl.trans(value))


@triton.jit
def total(x, out, B: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, B))))

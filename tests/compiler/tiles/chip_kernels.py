"""Kernels that use a chip's units: the products of the tutorials, and what reads and writes as fast as memory is."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The tutorial's, with wrap-around along M and N."""
    across = tl.cdiv(N, BN)
    pm = tl.program_id(0) // across
    pn = tl.program_id(0) % across
    rows = (pm * BM + tl.arange(0, BM)) % M
    columns = (pn * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left = a + rows[:, None] * sa + k[None, :]
    right = b + k[:, None] * sb + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        sums = tl.dot(x, y, sums)
        left += BK
        right += BK * sb
    m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * sc + n[None, :], sums.to(tl.float16), mask=inside)


@triton.jit
def attention(
    q, k, v, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    """Forward attention; `scale` is for base 2."""
    first = tl.program_id(0) * BM
    base = tl.program_id(1) * N * D
    m, n, d = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + base + m[:, None] * D + d[None, :])
    largest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    end = first + BM if CAUSAL else N
    for start in range(0, end, BN):
        keys = tl.load(k + base + (start + n)[:, None] * D + d[None, :])
        scores = tl.dot(query, tl.trans(keys)) * scale
        if CAUSAL:
            scores = tl.where(m[:, None] >= (start + n)[None, :], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        less = tl.exp2(largest - larger)
        total = total * less + tl.sum(weights, 1)
        values = tl.load(v + base + (start + n)[:, None] * D + d[None, :])
        sums = tl.dot(weights.to(tl.float16), values, sums * less[:, None])
        largest = larger
    tl.store(out + base + m[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.float16))


@triton.jit
def one_product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product whose operands may be larger than their memories."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


@triton.jit
def stored_and_read_again(x, y, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, (i + 1).to(tl.float32))
    tl.store(y + i, 2 * tl.load(x + i))


@triton.jit
def summed_rows(x, out, N, B: tl.constexpr):
    """A loop whose tiles may be moved ahead, in programs that may overlap."""
    row = tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, N, B):
        i = start + tl.arange(0, B)
        total += tl.load(x + row * N + i, mask=i < N, other=0.0)
    tl.store(out + row, tl.sum(total))


@triton.jit
def scaled_rows(x, weight, out, N, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * N + i, mask=i < N, other=0.0)
    scale = tl.load(weight + i, mask=i < N, other=0.0)
    tl.store(out + tl.program_id(0) * N + i, row * scale, mask=i < N)

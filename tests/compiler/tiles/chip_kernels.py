"""Kernels that use a chip's units: the products of the tutorials, and what reads and writes as fast as memory is."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from chip_backend import VirtualChip, put


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
def sums_that_start_anew(a, c, at, T: tl.constexpr):
    """A product whose sums go on, or start from memory in the next iteration: a branch yields them, not the loop."""
    tile = tl.arange(0, T)[:, None] * T + tl.arange(0, T)[None, :]
    x = tl.load(a + tile)
    sums = tl.zeros((T, T), tl.float32)
    for step in range(5):
        sums = tl.dot(x, x, sums)
        if step == at:
            sums = tl.load(c + tile)
    tl.store(c + tile, sums)


@triton.jit
def sorted_product(a, c, T: tl.constexpr):
    """A sort, each of whose steps uses the one before it twice."""
    tile = tl.arange(0, T)[:, None] * T + tl.arange(0, T)[None, :]
    x = tl.load(a + tile)
    tl.store(c + tile, tl.sort(tl.dot(x, x)))


@triton.jit
def read_for_nothing(p, T: tl.constexpr):
    """A number minus itself, which Triton's passes do not fold. Its address is loaded as well."""
    at = p + tl.program_id(0) * T + tl.arange(0, T)
    there = p + tl.load(at).to(tl.int32)
    difference = tl.load(there).to(tl.int32) - tl.load(there).to(tl.int32)
    tl.debug_barrier()
    tl.store(at, difference.to(tl.int16))


@triton.jit
def three_products(a, b, c, K, T: tl.constexpr):
    """A loop that carries the sums of three products."""
    m, k = tl.arange(0, T), tl.arange(0, T)
    first = tl.zeros((T, T), tl.float32)
    second = tl.zeros((T, T), tl.float32)
    third = tl.zeros((T, T), tl.float32)
    for start in range(0, K, T):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        at = b + (start + k)[:, None] * T + m[None, :]
        first = tl.dot(x, tl.load(at), first)
        second = tl.dot(x, tl.load(at + K * T), second)
        third = tl.dot(x, tl.load(at + 2 * K * T), third)
    tl.store(c + m[:, None] * T + m[None, :], third - first * second)


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


@triton.jit
def large_chain(x, rows, columns, out, M, N, stride, B: tl.constexpr):
    """Element-wise, with vectors for the rows and for the columns, ranges, and bounds."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.arange(0, B)
    inside = (i[:, None] < M) & (j[None, :] < N)
    value = tl.load(x + i[:, None] * stride + j[None, :], mask=inside, other=1.0)
    row = tl.load(rows + i, mask=i < M, other=0.0)
    column = tl.load(columns + j, mask=j < N, other=0.0)
    value = value * row[:, None] + column[None, :] + i[:, None]
    value = tl.where(j[None, :] <= i[:, None], value, -1.0)
    tl.store(out + i[:, None] * stride + j[None, :], value, mask=inside)


@triton.jit
def large_doubled(x, out, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + at, tl.load(x + at) * 2.0)


@triton.jit
def large_doubled_in_place(x, B: tl.constexpr):
    at = x + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(at, tl.load(at) * 2.0)


@triton.jit
def large_masked(x, out, first, B: tl.constexpr):
    """With a mask that is not a rectangle."""
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    mask = (i + j) % 3 != first
    tl.store(out + i * B + j, tl.load(x + i * B + j, mask=mask, other=-5.0) + 1.0, mask=i >= j)


@triton.jit
def large_softmax(x, out, sums, M, N, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = (i[:, None] < M) & (i[None, :] < N)
    at = i[:, None] * N + i[None, :]
    value = tl.load(x + at, mask=inside, other=float("-inf"))
    value = tl.exp(value - tl.max(value, 1)[:, None])
    total = tl.sum(value, 1)
    tl.store(out + at, value / total[:, None], mask=inside)
    tl.store(sums + i, total, mask=i < M)


@triton.jit
def large_shifted(x, B: tl.constexpr):
    """Every row is that before it."""
    at = x + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(at + B, tl.load(at))


@triton.jit
def large_shifted_to(x, out, stride, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + stride + at, tl.load(x + at))


@triton.jit
def large_taken(x, out, stride, n, B: tl.constexpr):
    """What was there, and 1 in its place."""
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    at = x + i * stride + j
    value = tl.load(at, mask=j < n)
    tl.store(at, tl.full((B, B), 1.0, tl.float32), mask=j < n)
    tl.store(out + i * B + j, value, mask=j < n)


@triton.jit
def large_read_back(x, again, out, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(x + at, tl.full((B, B), 1.0, tl.float32))
    tl.store(out + at, tl.load(again + at) * 2)


@triton.jit
def large_weighted(x, means, weights, out, B: tl.constexpr):
    """As layer normalisation does: means are stored before the weights of the columns are loaded."""
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    value = tl.load(x + rows * B + columns)
    mean = tl.sum(value, 1, keep_dims=True) / B
    tl.store(means + rows, mean)
    tl.store(out + rows * B + columns, (value - mean) * tl.load(weights + columns))


@triton.jit
def large_column_sums(x, out, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + tl.arange(0, B), tl.sum(tl.load(x + at), 0))


@triton.jit
def turned_around(x, out, first, size, across, n, B: tl.constexpr, C: tl.constexpr):
    """Rows that wrap around, also before the first, and columns that do; stored so, too."""
    rows, columns = tl.arange(0, B), tl.arange(0, C)
    at = ((first + rows) % size)[:, None] * across + ((first + columns) % across)[None, :]
    value = tl.load(x + at, mask=(rows < n)[:, None] & (columns < C)[None, :], other=-1.0)
    tl.store(out + rows[:, None] * C + columns[None, :], value)
    tl.store(x + at, value + 1.0, mask=(rows < n)[:, None] & (columns < n)[None, :])


@triton.jit
def small(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) + 1)


@triton.jit
def persistent(x, out, tiles, across, B: tl.constexpr):
    """A program computes many tiles, whose positions take divisions."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        at = (tile // across) * across * B + (tile % across) * B + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at) * 2.0)


@triton.jit
def each_from_the_last(x, out, N, B: tl.constexpr):
    """If `out` is `x`, each row is made of what the iteration before has stored."""
    i = tl.arange(0, B)
    for row in range(N):
        tl.store(out + (row + 1) * B + i, tl.load(x + row * B + i) + tl.load(x + row * B))


def check_attention(device: VirtualChip, causal: bool) -> None:
    """Compare attention of two heads with NumPy."""
    heads, n, d = 2, 128, 64
    q, k, v = (
        np.random.default_rng(seed).standard_normal((heads, n, d)).astype(np.float16) for seed in range(3)
    )
    out = put(device, np.zeros_like(q))
    scale = d**-0.5
    attention[(n // 64, heads)](
        *(put(device, values) for values in (q, k, v)), out, scale * 1.4426950408889634, n,
        D=d, BM=64, BN=64, CAUSAL=causal,
    )  # fmt: skip
    scores = np.einsum("hmd,hnd->hmn", q.astype(np.float32), k.astype(np.float32)) * scale
    if causal:
        scores = np.where(np.tri(n)[None] > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), expected, rtol=1e-2, atol=2e-3)

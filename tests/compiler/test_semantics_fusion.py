"""Reductions that share a loop, and values for the next iteration that are computed beside a store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import Array, assert_same, empty, get, make_kernel, put

BLOCK = 128


def values_of(*shape: int, seed: int = 0) -> Array:
    """Small whole numbers, whose sums are exact, as float32."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


@triton.jit
def several_reductions(X, Y, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1.0)
    y = tl.load(Y + i, mask=i < n, other=2.0)
    a = tl.sum(x * y, 0)
    tl.store(X + i, y, mask=i < n)  # what comes later still has what was read before
    b = tl.max(x, 0)
    c = tl.sum(x * a, 0)  # waits for the first
    d = tl.min(x + y, 0)
    e = tl.sum(y, 0)
    tl.store(O, a)
    tl.store(O + 1, b)
    tl.store(O + 2, c)
    tl.store(O + 3, d)
    tl.store(O + 4, e)
    tl.store(O + 5, tl.sum(tl.load(X + i, mask=i < n, other=3.0), 0))


@pytest.mark.parametrize("n", [0, 1, 16, 50, 64, 127, 128])
def test_reductions_in_one_loop(n: int) -> None:
    x, y = values_of(BLOCK), values_of(BLOCK, seed=1)
    out, at_x = empty(6, "fp32"), put(x, "fp32")
    several_reductions[(1,)](at_x, put(y, "fp32"), out, n, B=BLOCK)
    inside = np.arange(BLOCK) < n
    a, b = np.where(inside, x, 1), np.where(inside, y, 2)
    first = (a * b).sum()
    expected = [first, a.max(), (a * first).sum(), (a + b).min(), b.sum(), np.where(inside, y, 3).sum()]
    np.testing.assert_array_equal(get(out), np.array(expected, np.float32))
    np.testing.assert_array_equal(get(at_x), np.where(inside, y, x))


@triton.jit
def rows_and_columns(X, O, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + at)
    tl.store(O + tl.arange(0, N), tl.sum(x, 0))
    tl.store(O + N + tl.arange(0, N), tl.sum(x * x, 0))
    tl.store(O + 2 * N + tl.arange(0, M), tl.sum(x, 1))
    tl.store(O + 2 * N + M + tl.arange(0, M), tl.max(x, 1))


def test_reductions_along_each_dimension() -> None:
    x, out = values_of(16, 64), empty(2 * 64 + 2 * 16, "fp32")
    rows_and_columns[(1,)](put(x, "fp32"), out, M=16, N=64)
    np.testing.assert_array_equal(get(out), np.concatenate([x.sum(0), (x * x).sum(0), x.sum(1), x.max(1)]))


@triton.jit
def carried_beside_a_store(X, Y, O, S, rows, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    product = tl.full((B,), 1.0, tl.float32)
    for row in range(rows):
        x = tl.load(X + row * n + i, mask=i < n, other=2.0)
        y = tl.load(Y + row * n + i, mask=i < n, other=3.0)
        tl.store(O + row * n + i, x + y + total, mask=i < n)
        total += x * y
        product = product * 0.5 + x
    tl.store(S + i, total)
    tl.store(S + B + i, product)


@pytest.mark.parametrize("same", [None, "x", "y"], ids=["apart", "onto x", "onto y"])
@pytest.mark.parametrize("n", [1, 16, 50, 127, 128])
def test_what_a_loop_carries_beside_a_store(n: int, same: str | None) -> None:
    rows = 5
    x, y = values_of(rows, n), values_of(rows, n, seed=1)
    at_x, at_y, sums = put(x, "fp32"), put(y, "fp32"), empty(2 * BLOCK, "fp32")
    out = {None: empty((rows, n), "fp32"), "x": at_x, "y": at_y}[same]
    carried_beside_a_store[(1,)](at_x, at_y, out, sums, rows, n, B=BLOCK)
    total, product = np.zeros(BLOCK, np.float32), np.ones(BLOCK, np.float32)
    stored = np.empty((rows, n), np.float32)
    for row in range(rows):
        a, b = np.full(BLOCK, 2, np.float32), np.full(BLOCK, 3, np.float32)
        a[:n], b[:n] = x[row], y[row]
        stored[row] = (a + b + total)[:n]
        total += a * b
        product = product * np.float32(0.5) + a
    np.testing.assert_array_equal(get(out), stored)
    np.testing.assert_array_equal(get(sums), np.concatenate([total, product]))


@triton.jit
def exchanged(X, O, S, rows, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32)
    b = tl.full((B,), 1.0, tl.float32)
    for row in range(rows):
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, a - b)
        a, b = b + x, a
    tl.store(S + i, a)
    tl.store(S + B + i, b)


@triton.jit
def used_once_more(X, O, S, rows, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32)
    b = tl.full((B,), 1.0, tl.float32)
    for row in range(rows):
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, x)
        b = b + tl.sum(a, 0)  # of what a was
        a = a + x
    tl.store(S + i, a)
    tl.store(S + B + i, b)


@triton.jit
def stored_twice(X, O, S, rows, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32)
    b = tl.full((B,), 1.0, tl.float32)
    for row in range(rows):
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, x)
        tl.store(X + row * B + i, a)
        y = tl.load(X + row * B + i)
        a = a + x
        b = b + y
    tl.store(S + i, a)
    tl.store(S + B + i, b)


@triton.jit
def turned(X, O, S, rows, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32)
    b = tl.full((B,), 1.0, tl.float32)
    for row in range(rows):
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, x)
        a = tl.flip(a, 0) + x
        b = b + x
    tl.store(S + i, a)
    tl.store(S + B + i, b)


def reference(name: str, x: Array) -> tuple[Array, Array, Array]:
    """What the kernel of that name stores, and what it carries at the end."""
    a, b = np.zeros(BLOCK, np.float32), np.ones(BLOCK, np.float32)
    stored = np.empty_like(x)
    for row, values in enumerate(x):
        stored[row] = a - b if name == "exchanged" else values
        if name == "exchanged":
            a, b = b + values, a
        elif name == "used_once_more":
            a, b = a + values, b + a.sum()
        elif name == "stored_twice":
            a, b = a + values, b + a
        else:
            a, b = a[::-1] + values, b + values
    return stored, a, b


@pytest.mark.parametrize(
    "kernel", [exchanged, used_once_more, stored_twice, turned], ids=lambda k: k.__name__
)
def test_order_of_what_is_carried(kernel: Any) -> None:
    x = values_of(6, BLOCK)
    out, sums = empty(x.shape, "fp32"), empty(2 * BLOCK, "fp32")
    kernel[(1,)](put(x, "fp32"), out, sums, len(x), B=BLOCK)
    stored, a, b = reference(kernel.__name__, x)
    np.testing.assert_array_equal(get(out), stored)
    np.testing.assert_array_equal(get(sums), np.concatenate([a, b]))


@pytest.mark.parametrize("size", [1, 2, 16, 32])
@pytest.mark.parametrize("costly", [False, True], ids=["loaded", "computed"])
def test_what_is_read_aligned_and_transposed_is_there_afterwards(size: int, costly: bool) -> None:
    kernel = make_kernel(
        "def both(X, O, P, N: tl.constexpr):\n"
        "    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]\n"
        f"    y = {'tl.exp2(tl.load(X + at))' if costly else 'tl.load(X + at)'}\n"
        "    s = tl.max(y - tl.trans(y), 0)\n"
        "    tl.store(O + at, y)\n"
        "    tl.store(P + tl.arange(0, N), s)\n"
    )
    x = np.arange(size * size, dtype=np.float32).reshape(size, size) % 7
    y = np.exp2(x) if costly else x
    out, most = empty(size * size, "fp32"), empty(size, "fp32")
    kernel[(1,)](put(x.reshape(-1), "fp32"), out, most, size)
    assert_same(get(out), y.reshape(-1))
    assert_same(get(most), (y - y.T).max(0))

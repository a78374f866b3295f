"""Tensor descriptors end to end: made on the device or on the host, loaded, stored, reduced into, and by rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, assert_same, empty, get, make_kernel, put
from triton.tools.tensor_descriptor import TensorDescriptor

M, N, BM, BN = 21, 32, 8, 16
PLACES = [(0, 0), (8, 16), (16, 24), (-3, -5), (100, 0)]


def window(whole: Array, row: int, column: int, fill: float = 0) -> Array:
    """The block at a place of an array, `fill` outside of it."""
    around = np.pad(whole, ((BM + 100, BM + 100), (BN + 100, BN + 100)), constant_values=fill)
    return around[row + BM + 100 :, column + BN + 100 :][:BM, :BN]


def put_window(
    whole: Array, row: int, column: int, block: Array, combine: Callable[[Any, Any], Any]
) -> Array:
    """`whole` with the block combined into the place, as far as it is inside."""
    result = whole.copy()
    for i, j in np.ndindex(block.shape):
        if 0 <= row + i < whole.shape[0] and 0 <= column + j < whole.shape[1]:
            result[row + i, column + j] = combine(whole[row + i, column + j], block[i, j])
    return result


def numbers(shape: tuple[int, ...], kind: str) -> Array:
    return np.random.default_rng(5).integers(0, 100, shape).astype(KINDS[kind].host)


@triton.jit
def load_kernel(X, O, m, n, a, b, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    tile = tl.make_tensor_descriptor(X, [m, n], [n, 1], [BM, BN], padding_option=PADDING)
    tl.store(O + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], tile.load([a, b]))


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("kind", ["i8", "u16", "i32", "i64", "fp16", "bf16", "fp32", "fp64"])
def test_load(kind: str, padding: str) -> None:
    if padding == "nan" and not KINDS[kind].is_float:
        return  # Triton refuses it
    x = numbers((M, N), kind)
    for a, b in PLACES:
        out = empty((BM, BN), kind)
        load_kernel[(1,)](put(x, kind), out, M, N, a, b, BM=BM, BN=BN, PADDING=padding)
        assert_same(get(out), window(x, a, b, np.nan if padding == "nan" else 0))


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "store": lambda old, new: new,
    "atomic_add": lambda old, new: old + new,
    "atomic_max": max,
    "atomic_min": min,
    "atomic_and": lambda old, new: old & new,
    "atomic_or": lambda old, new: old | new,
    "atomic_xor": lambda old, new: old ^ new,
}
INTO = [("store", kind) for kind in ("i8", "i32", "fp16", "bf16", "fp32", "fp64")]
INTO += [("atomic_add", kind) for kind in ("i32", "u32", "u64", "fp16", "bf16", "fp32")]
INTO += [(f"atomic_{op}", kind) for op in ("max", "min") for kind in ("i32", "u32", "i64", "u64")]
INTO += [(f"atomic_{op}", kind) for op in ("and", "or", "xor") for kind in ("i32", "u64")]


@pytest.mark.parametrize(("method", "kind"), INTO, ids=[f"{m}-{k}" for m, k in INTO])
def test_store_and_reduce(method: str, kind: str) -> None:
    source = f"""def into(X, O, m, n, a, b, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.make_tensor_descriptor(O, [m, n], [n, 1], [BM, BN])
    tile.{method}([a, b], tl.load(X + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]))
"""
    x, before = numbers((BM, BN), kind), numbers((M, N), kind)[::-1].copy()
    for a, b in PLACES:
        out = put(before, kind)
        make_kernel(source)[(1,)](put(x, kind), out, M, N, a, b, BM=BM, BN=BN)
        assert_same(get(out), put_window(before, a, b, x, COMBINE[method]))


@triton.jit
def gather_kernel(X, I, O, m, n, b, ROWS: tl.constexpr, BN: tl.constexpr):
    rows = tl.make_tensor_descriptor(X, [m, n], [n, 1], [1, BN])
    block = rows.gather(tl.load(I + tl.arange(0, ROWS)), b)
    tl.store(O + tl.arange(0, ROWS)[:, None] * BN + tl.arange(0, BN)[None, :], block)


@triton.jit
def scatter_kernel(X, I, O, m, n, b, ROWS: tl.constexpr, BN: tl.constexpr):
    rows = tl.make_tensor_descriptor(O, [m, n], [n, 1], [1, BN])
    block = tl.load(X + tl.arange(0, ROWS)[:, None] * BN + tl.arange(0, BN)[None, :])
    rows.scatter(block, tl.load(I + tl.arange(0, ROWS)), b)


ROWS = np.array([0, 5, 20, 3, 4, 21, 7, -1], np.int32)


@pytest.mark.parametrize("kind", ["i32", "fp32", "bf16"])
def test_gather_and_scatter_rows(kind: str) -> None:
    x = numbers((M, N), kind)
    out = empty((8, BN), kind)
    gather_kernel[(1,)](put(x, kind), put(ROWS, "i32"), out, M, N, 20, ROWS=8, BN=BN)
    inside = (ROWS >= 0) & (ROWS < M)
    expected = np.zeros((8, BN), x.dtype)
    expected[inside, :12] = x[ROWS[inside], 20:]
    assert_same(get(out), expected)

    block = numbers((8, BN), kind)
    whole = put(np.zeros((M, N)), kind)
    scatter_kernel[(1,)](put(block, kind), put(ROWS, "i32"), whole, M, N, 20, ROWS=8, BN=BN)
    scattered = np.zeros((M, N), x.dtype)
    scattered[ROWS[inside], 20:] = block[inside, :12]
    assert_same(get(whole), scattered)


@triton.jit
def host_kernel(X, O):
    for i in range(0, X.shape[0], X.block_shape[0]):
        O.store([i, 8], X.load([i, 8]) * 2)


@triton.jit(noinline=True)
def load_apart(tile, i):
    return tile.load([i, 0])


@triton.jit
def chosen_kernel(X, O, m, n):
    a = tl.make_tensor_descriptor(X, [m, n], [n, 1], [4, 8])
    b = tl.make_tensor_descriptor(O, [m, n], [n, 1], [4, 8])
    for i in range(0, m, 4):
        if i % 8 == 0:
            chosen = a
        else:
            chosen = b
        b.store([i, 0], load_apart(chosen, i) + 1)
        a = tl.make_tensor_descriptor(X + n, [m - 1, n], [n, 1], [4, 8])


@triton.jit
def rank_5_kernel(X, O):
    tile = tl.make_tensor_descriptor(X, [2, 3, 4, 5, 8], [480, 160, 40, 8, 1], [1, 2, 1, 4, 8])
    tl.store(O + tl.arange(0, 64), tile.load([1, 1, 2, 2, 0]).reshape(64))


@triton.jit
def rank_1_kernel(X, O, n):
    tl.store(O + tl.arange(0, 16), tl.make_tensor_descriptor(X, [n], [1], [16]).load([8]))


def test_made_on_the_host() -> None:
    x = numbers((16, N), "fp32")
    out = put(np.zeros((16, N)), "fp32")
    described = [TensorDescriptor(array, [16, N], [N, 1], [4, 16]) for array in (put(x, "fp32"), out)]
    host_kernel[(1,)](*described)
    expected = np.zeros((16, N), np.float32)
    expected[:, 8:24] = x[:, 8:24] * 2
    assert_same(get(out), expected)


def test_chosen_carried_and_passed_to_functions() -> None:
    x = numbers((16, 8), "fp32")
    out = put(np.zeros((16, 8)), "fp32")
    chosen_kernel[(1,)](put(x, "fp32"), out, 16, 8)
    below = np.concatenate([x[1:], np.zeros((1, 8), np.float32)])
    expected = np.ones((16, 8), np.float32)
    expected[:4], expected[8:12] = x[:4] + 1, below[8:12] + 1
    assert_same(get(out), expected)


def test_ranks() -> None:
    x = numbers((2, 3, 4, 5, 8), "fp32")
    out = empty((2, 4, 8), "fp32")
    rank_5_kernel[(1,)](put(x, "fp32"), out)
    expected = np.zeros((2, 4, 8), np.float32)
    expected[:, :3] = x[1, 1:3, 2, 2:]
    assert_same(get(out), expected)
    line = empty(16, "fp32")
    rank_1_kernel[(1,)](put(x.ravel(), "fp32"), line, 20)
    assert_same(get(line), np.concatenate([x.ravel()[8:20], np.zeros(4, np.float32)]))

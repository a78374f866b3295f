"""Loads, stores, gathers and scatters end to end; the order of reads and writes of the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, NUMBERS, Array, Kind, assert_same, empty, get, put, samples

KIND_NAMES = ["i8", "i16", "i32", "i64", "fp16", "bf16", "fp32", "fp64", "i1"]


def numbers(kind: Kind, count: int) -> Array:
    """Distinct-looking values of a type."""
    if kind.bits == 1:
        return np.arange(count) % 3 == 0
    return (np.arange(count) % 100 + 1).astype(kind.host)


@triton.jit
def masks_kernel(X, O, n, low, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.load(X + i, mask=i < n, other=7))
    tl.store(O + B + i, tl.load(X + i, mask=(i >= low) & (i < n), other=7))
    tl.store(O + 2 * B + i, tl.load(X + i, mask=i % 3 == 1, other=7))
    tl.store(O + 3 * B + i, tl.load(X + i, mask=(i < n) & (i % 3 == 1), other=i % 5))
    tl.store(O + 4 * B + i, tl.load(X + i, mask=flag > 0, other=7))
    tl.store(O + 5 * B + i, tl.load(X + i, mask=(i < n) & (flag > 0), other=7))
    tl.store(O + 6 * B + i, tl.load(X + i, mask=i < n))
    tl.store(O + 7 * B + i, 9, mask=(i >= low) & (i < n))
    tl.store(O + 8 * B + i, 9, mask=(i % 2 == 0) & (i < n) & (flag > 0))
    tl.store(O + 9 * B, tl.load(X + 3, mask=flag > 0, other=7), mask=n > 4)


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize(("n", "low"), [(0, 0), (1, 0), (16, 3), (37, 36), (64, 0), (40, 50), (100, -5)])
@pytest.mark.parametrize("kind", KIND_NAMES)
def test_masks_of_every_form(kind: str, n: int, low: int, flag: int) -> None:
    block = 64
    x = numbers(KINDS[kind], block)
    out = empty(10 * block, kind)
    before = get(out).reshape(10, block)
    masks_kernel[(1,)](put(x, kind), out, n, low, flag, B=block)
    i = np.arange(block)
    seven, nine = x.dtype.type(7), x.dtype.type(9)
    expected = before.copy()
    expected[0] = np.where(i < n, x, seven)
    expected[1] = np.where((i >= low) & (i < n), x, seven)
    expected[2] = np.where(i % 3 == 1, x, seven)
    expected[3] = np.where((i < n) & (i % 3 == 1), x, (i % 5).astype(x.dtype))
    expected[4] = x if flag else seven
    expected[5] = np.where((i < n) & bool(flag), x, seven)
    expected[6] = np.where(i < n, x, x.dtype.type(0))
    expected[7] = np.where((i >= low) & (i < n), nine, expected[7])
    expected[8] = np.where((i % 2 == 0) & (i < n) & bool(flag), nine, expected[8])
    if n > 4:
        expected[9, 0] = x[3] if flag else seven
    np.testing.assert_array_equal(get(out).reshape(10, block), expected)


@triton.jit
def strided_kernel(X, O, rows, columns, sr, sc, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    x = tl.load(X + r * sr + c * sc, mask=(r < rows) & (c < columns), other=-1)
    tl.store(O + r * C + c, x)


@pytest.mark.parametrize("kind", ["i8", "fp16", "fp32", "fp64"])
@pytest.mark.parametrize(
    ("rows", "columns", "strides", "offset"),
    [
        (8, 32, (32, 1), 0),
        (5, 30, (1, 8), 0),
        (8, 32, (-32, 1), 7 * 32),
        (7, 31, (32, -1), 31),
        (8, 32, (-1, -8), 255),
        (3, 20, (0, 1), 0),
        (3, 20, (7, 0), 0),
        (1, 1, (0, 0), 5),
        (8, 16, (3, 13), 2),
    ],
)
def test_strides_of_either_sign(
    rows: int, columns: int, strides: tuple[int, int], offset: int, kind: str
) -> None:
    memory = numbers(KINDS[kind], 400)
    array = put(memory, kind)
    out = empty((8, 32), kind)
    strided_kernel[(1,)](array[offset:], out, rows, columns, *strides, R=8, C=32)
    expected = np.full((8, 32), -1, memory.dtype)
    r, c = np.arange(rows)[:, None], np.arange(columns)
    expected[:rows, :columns] = memory[offset + r * strides[0] + c * strides[1]]
    assert_same(get(out), expected)


@triton.jit
def wrap_kernel(X, O, M, N, start, R: tl.constexpr, C: tl.constexpr):
    r = (start + tl.arange(0, R)) % M
    c = (start * 3 + tl.arange(0, C)) % N
    x = tl.load(X + r[:, None] * N + c[None, :])
    tl.store(O + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], x)


@pytest.mark.parametrize(("m", "n"), [(8, 32), (5, 29), (1, 1), (100, 100), (3, 64)])
@pytest.mark.parametrize("start", [0, 1, 7, 64])
def test_wrap_around(m: int, n: int, start: int) -> None:
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    out = empty((8, 32), "fp32")
    wrap_kernel[(1,)](put(x, "fp32"), out, m, n, start, R=8, C=32)
    expected = x[((start + np.arange(8)) % m)[:, None], (start * 3 + np.arange(32)) % n]
    assert_same(get(out), expected)


@triton.jit
def remainder_kernel(X, O, start, size, B: tl.constexpr):
    tl.store(O + tl.arange(0, B), tl.load(X + (start + tl.arange(0, B)) % size))


@triton.jit
def lines_that_wrap_kernel(X, O, size, starts, n, B: tl.constexpr):
    """A line from every start, and the same under a mask."""
    i = tl.arange(0, B)
    for start in range(starts):
        at = X + (start + i) % size
        tl.store(O + (2 * start) * B + i, tl.load(at))
        tl.store(O + (2 * start + 1) * B + i, tl.load(at, mask=i < n, other=7))


@pytest.mark.parametrize("kind", ["i8", "bf16", "fp32"])
@pytest.mark.parametrize("size", [1, 5, 15, 16, 17, 31, 64, 65, 100, 200])
def test_lines_that_wrap_around_anywhere(kind: str, size: int) -> None:
    """In the middle of a vector, between two, more than once, or not at all; nothing behind the end is read."""
    block, n, starts = 64, 41, 2 * size + 3
    x = numbers(KINDS[kind], size)
    out = empty((starts, 2, block), kind)
    lines_that_wrap_kernel[(1,)](put(x, kind), out, size, starts, n, B=block)
    lanes = np.arange(block)
    expected = x[(np.arange(starts)[:, None] + lanes) % size]
    masked = np.where(lanes < n, expected, np.asarray(7, x.dtype))
    assert_same(get(out), np.stack([expected, masked], 1))


@pytest.mark.parametrize("start", [-64, -40, -32, -5, -1, 3])
@pytest.mark.parametrize("size", [8, 12, 64])
def test_wrap_around_keeps_the_sign_of_the_dividend(start: int, size: int) -> None:
    x = np.arange(200, dtype=np.int32)
    out = empty(64, "i32")
    remainder_kernel[(1,)](put(x, "i32")[100:], out, start, size, B=64)
    index = np.fmod(start + np.arange(64), size)
    assert_same(get(out), x[100 + index])


@triton.jit
def pointers_kernel(P, O, n, B: tl.constexpr):
    which = tl.load(P + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, B)
    tl.store(O + tl.program_id(0) * B + i, tl.load(which + i, mask=i < n, other=-1.0))
    many = tl.load(P + i % 2).to(tl.pointer_type(tl.float32))
    tl.store(O + 2 * B + i, tl.load(many + i // 2, mask=i < n, other=-1.0), mask=tl.program_id(0) == 0)


def test_pointers_to_pointers() -> None:
    a, b = (put(np.arange(40, dtype=np.float32) + start, "fp32") for start in (0, 100))
    table = put(np.array([a.data_ptr(), b.data_ptr()]), "i64")
    out = empty((3, 64), "fp32")
    pointers_kernel[(2,)](table, out, 40, B=64)
    i = np.arange(64)
    assert_same(get(out)[0], np.where(i < 40, i, -1))
    assert_same(get(out)[1], np.where(i < 40, i + 100, -1))
    assert_same(get(out)[2], np.where(i < 40, i // 2 + 100 * (i % 2), -1))


@triton.jit
def gather_kernel(X, I, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(I + i, mask=i < n, other=0)
    tl.store(O + i, tl.load(X + at, mask=(i < n) & (at >= 0), other=5))
    tl.store(O + B + i, tl.load(X + at * at % 7))


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_gather(kind: Kind) -> None:
    x = samples(kind, 50)
    index = np.random.default_rng(1).integers(-3, 50, 64).astype(np.int32)
    out = empty((2, 64), kind)
    gather_kernel[(1,)](put(x, kind), put(index, "i32"), out, 60, B=64)
    index[60:] = 0
    wanted = (index >= 0) & (np.arange(64) < 60)
    assert_same(get(out)[0], np.where(wanted, x[np.maximum(index, 0)], x.dtype.type(5)))
    assert_same(get(out)[1], x[index * index % 7])


@triton.jit
def scatter_kernel(I, V, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + tl.load(I + i), tl.load(V + i), mask=i < n)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_scatter_with_duplicates_stores_one_of_them(kind: str) -> None:
    values = numbers(KINDS[kind], 64)
    index = np.random.default_rng(2).integers(0, 20, 64).astype(np.int32)
    out = empty(32, kind)
    before = get(out)
    scatter_kernel[(1,)](put(index, "i32"), put(values, kind), out, 50, B=64)
    after = get(out)
    for place in range(32):
        candidates = values[:50][index[:50] == place]
        assert after[place] in (candidates if candidates.size else before[place : place + 1])


# --- order ---------------------------------------------------------------------------------------


@triton.jit
def shift_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i + 1, tl.load(X + i, mask=i < n), mask=i < n)


@triton.jit
def shift_left_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + i + 1, mask=i < n), mask=i < n)


@triton.jit
def reverse_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + n - 1 - i, mask=i < n), mask=i < n)


@triton.jit
def permute_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + (i * 5 + 3) % n, mask=i < n), mask=i < n)


@triton.jit
def moved_gather_kernel(X, start, n, B: tl.constexpr):
    # The gather's base is a pointer that was moved, the store's is not.
    i = tl.arange(0, B)
    p = X + start
    tl.store(X + i, tl.load(p + ((i * 5 + 3) % n ^ 1) - start, mask=i < n), mask=i < n)


@triton.jit
def scattered_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + (i * 5 + 3) % n, tl.load(X + i, mask=i < n), mask=i < n)


@triton.jit
def chosen_pointer_kernel(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = X
    if n > 0:
        p = X + 1
    tl.store(p + i, tl.load(X + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    ("kernel", "after"),
    [
        (shift_kernel, lambda x, n: np.concatenate([x[:1], x[:n], x[n + 1 :]])),
        (shift_left_kernel, lambda x, n: np.concatenate([x[1 : n + 1], x[n:]])),
        (reverse_kernel, lambda x, n: np.concatenate([x[:n][::-1], x[n:]])),
        (permute_kernel, lambda x, n: np.concatenate([x[(np.arange(n) * 5 + 3) % n], x[n:]])),
        (scattered_kernel, None),
        (chosen_pointer_kernel, lambda x, n: np.concatenate([x[:1], x[:n], x[n + 1 :]])),
    ],
    ids=["shift", "shift_left", "reverse", "permute", "scattered", "chosen_pointer"],
)
@pytest.mark.parametrize("n", [1, 16, 61, 64])
def test_all_loads_come_before_the_store(kernel: Any, after: Any, n: int) -> None:
    x = np.arange(80, dtype=np.float32)
    if after is None:
        expected = x.copy()
        expected[(np.arange(n) * 5 + 3) % n] = (
            x[:n] if np.gcd(5, n) == 1 else expected[(np.arange(n) * 5 + 3) % n]
        )
    else:
        expected = after(x, n)
    array = put(x, "fp32")
    kernel[(1,)](array, n, B=64)
    assert_same(get(array), expected)


def test_gather_from_a_moved_pointer_comes_before_the_store() -> None:
    x = np.arange(80, dtype=np.float32)
    array = put(x, "fp32")
    moved_gather_kernel[(1,)](array, 6, 64, B=64)
    assert_same(get(array)[:64], x[(np.arange(64) * 5 + 3) % 64 ^ 1])


@triton.jit
def transpose_in_place_kernel(X, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(X + r * N + c, tl.load(X + c * N + r))


@triton.jit
def two_pointers_kernel(X, Y, O, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(O + r * N + c, tl.load(X + c * N + r) + tl.load(Y + r * N + c))


@triton.jit
def transpose_values_in_place_kernel(X, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(X + at, tl.trans(tl.load(X + at)))


@triton.jit
def flip_values_in_place_kernel(X, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(X + at, tl.flip(tl.load(X + at), 0))


@pytest.mark.parametrize(
    ("kernel", "after"),
    [
        (transpose_in_place_kernel, lambda x: x.T),
        (transpose_values_in_place_kernel, lambda x: x.T),
        (flip_values_in_place_kernel, lambda x: x[::-1]),
    ],
    ids=["addresses", "transposed", "flipped"],
)
def test_values_change_places_in_place(kernel: Any, after: Any) -> None:
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    array = put(x, "fp32")
    kernel[(1,)](array, N=16)
    assert_same(get(array), after(x))


def test_arguments_may_be_the_same_array() -> None:
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    array = put(x, "fp32")
    two_pointers_kernel[(1,)](array, array, array, N=16)
    assert_same(get(array), x + x.T)


@triton.jit
def between_stores_kernel(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    before = tl.load(X + i)
    doubled = before * 2
    tl.store(X + i, doubled)
    after = tl.load(X + i)
    tl.store(X + B - 1 - i, after + 1)
    tl.store(O + i, before)
    tl.store(O + B + i, doubled)
    tl.store(O + 2 * B + i, after)
    tl.store(O + 3 * B + i, tl.load(X + i))


def test_values_loaded_before_a_store_stay() -> None:
    x = np.arange(64, dtype=np.int32)
    array, out = put(x, "i32"), empty((4, 64), "i32")
    between_stores_kernel[(1,)](array, out, B=64)
    expected = [x, x * 2, x * 2, x[::-1] * 2 + 1]
    for actual, values in zip(get(out), expected, strict=True):
        assert_same(actual, values)


@triton.jit
def scalar_order_kernel(X, O):
    a = tl.load(X)
    tl.store(X, a + 1)
    b = tl.load(X)
    for _ in range(5):
        tl.store(X, tl.load(X) * 2)
    tl.store(O, a)
    tl.store(O + 1, b)
    tl.store(O + 2, tl.load(X))


def test_scalar_loads_and_stores_keep_their_order() -> None:
    array, out = put(np.array([3], np.int32), "i32"), empty(3, "i32")
    scalar_order_kernel[(1,)](array, out)
    assert get(out).tolist() == [3, 4, 128]


@triton.jit
def consumers_kernel(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(O + i, e / tl.sum(e, 0))
    tl.store(O + B + i, e)
    tl.store(O + 2 * B + i, tl.cumsum(e, 0) + x)
    tl.store(O + 3 * B, tl.sum(e * x, 0))


def test_one_value_with_several_consumers() -> None:
    x = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    out = empty(4 * 64, "fp32")
    consumers_kernel[(1,)](put(x, "fp32"), out, B=64)
    e = np.exp(x.astype(np.float64) - x.max())
    actual = get(out)
    np.testing.assert_allclose(actual[:64], e / e.sum(), rtol=1e-6)
    np.testing.assert_allclose(actual[64:128], e, rtol=1e-6)
    np.testing.assert_allclose(actual[128:192], np.cumsum(e) + x, rtol=1e-5)
    np.testing.assert_allclose(actual[192], (e * x).sum(), rtol=1e-5)


@triton.jit
def one_lane_kernel(X, O, LANE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, x.to(O.dtype.element_ty), mask=i == LANE)


@pytest.mark.parametrize("block", [2, 4, 8])
@pytest.mark.parametrize("lane", ["first", "last"])
@pytest.mark.parametrize(
    ("wide", "narrow"), [("i64", "i32"), ("i64", "i8"), ("i32", "i16"), ("i32", "i8"), ("i16", "i8")]
)
def test_a_narrowed_store_of_one_lane_writes_no_more(wide: str, narrow: str, lane: str, block: int) -> None:
    """LLVM's own scalar stores of such lanes are as wide as the element was before."""
    values = np.arange(1, block + 1).astype(KINDS[wide].host)
    out = put(np.full(2 * block, 77, KINDS[narrow].host), narrow)
    at = 0 if lane == "first" else block - 1
    one_lane_kernel[(1,)](put(values, wide), out, at, block)
    expected = np.full(2 * block, 77, KINDS[narrow].host)
    expected[at] = values[at]
    assert_same(get(out), expected)


@triton.jit
def first_elements_kernel(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    least = tl.min(tl.load(X + tl.arange(0, 2)[:, None] * B + i[None, :]), 0)
    tl.store(O + i, least.to(tl.int32), mask=i < 1)


def test_one_narrowed_result_of_a_reduction_is_stored() -> None:
    out = put(np.full(4, 77, np.int32), "i32")
    first_elements_kernel[(1,)](put(np.array([[5, 6], [7, 4]], np.int64), "i64"), out, 2)
    assert_same(get(out), np.array([5, 77, 77, 77], np.int32))

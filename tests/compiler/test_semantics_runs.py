"""Flattened indices: positions by divisions and remainders, in chunks that cross multiples of the divisor or do not."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, empty, get, put

DIVISORS = [1, 2, 5, 8, 15, 16, 17, 24, 31, 32, 48, 56, 100, 256, 1000]
"""Shorter than a vector, about as long, longer; powers of two and others."""

pytestmark = pytest.mark.usefixtures("cpu_backend")


def numbers(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-99, 100, count).astype(np.float32)


@triton.jit
def transposed_kernel(X, O, n, first, C: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + first
    inside = i < n
    column = i % C
    row = i // C % D
    batch = i // (C * D)
    x = tl.load(X + batch * C * D + column * D + row, mask=inside)
    y = tl.load(X + batch * C * D + row * C + column, mask=inside)
    tl.store(O + batch * C * D + row * C + column, x * 1000 + y, mask=inside)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("block", [16, 128])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_dimensions_of_an_array(divisor: int, block: int, first: int) -> None:
    c, d = divisor, 6
    x = numbers(5 * c * d).reshape(5, -1)
    out = empty(x.size, "fp32", fill=0)
    transposed_kernel[(triton.cdiv(x.size, block),)](put(x, "fp32"), out, x.size, first, c, d, block)
    expected = (x.reshape(5, c, d).transpose(0, 2, 1).reshape(5, -1) * 1000 + x).ravel()
    expected[:first] = 0
    np.testing.assert_array_equal(get(out), expected)


@triton.jit
def rows_kernel(X, INDEX, O, n, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    chosen = tl.load(INDEX + i // C, mask=inside, other=0)
    chosen = tl.where(chosen < 0, chosen + 7, chosen)
    x = tl.load(X + (i % C + C * chosen), mask=inside)
    tl.store(O + i, x + chosen, mask=inside)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_rows_by_index(divisor: int, kind: str) -> None:
    x = numbers(7 * divisor).reshape(7, divisor)
    index = np.random.default_rng(1).integers(-7, 7, 20)
    out = empty(20 * divisor, "fp32")
    n = 20 * divisor
    index_array = put(index.astype(np.int32 if kind == "i32" else np.int64), kind)
    rows_kernel[(triton.cdiv(n, 64),)](put(x, "fp32"), index_array, out, n, divisor, 64)
    np.testing.assert_array_equal(get(out), (x[index] + (index % 7)[:, None]).ravel())


@triton.jit
def joined_kernel(X, Y, O, n, C: tl.constexpr, LEFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    column, row = i % C, i // C
    x = tl.load(X + row * LEFT + column, mask=inside & (column < LEFT), other=0.0)
    y = tl.load(Y + row * (C - LEFT) + (column - LEFT), mask=inside & (column >= LEFT), other=0.0)
    tl.store(O + i, tl.where(column < LEFT, x, y), mask=inside)


@pytest.mark.parametrize(("left", "right"), [(32, 32), (16, 48), (5, 27), (64, 100), (1, 1)])
def test_halves_of_rows(left: int, right: int) -> None:
    x, y = numbers(9 * left).reshape(9, left), numbers(9 * right, 1).reshape(9, right)
    expected = np.concatenate([x, y], 1).ravel()
    out = empty(expected.size, "fp32")
    joined_kernel[(triton.cdiv(expected.size, 128),)](
        put(x, "fp32"), put(y, "fp32"), out, expected.size, left + right, left, 128
    )
    np.testing.assert_array_equal(get(out), expected)


@triton.jit
def signed_kernel(X, O, low, C: tl.constexpr, BLOCK: tl.constexpr):
    i = low + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(O + (i - low), tl.load(X + (i // C + C * 10)) + i % C * 1000)


@pytest.mark.parametrize("divisor", [3, 16, 32, 50])
def test_negative_dividends_round_towards_zero(divisor: int) -> None:
    low, n = -3 * divisor - 1, 512
    x = numbers(n + 20 * divisor)
    i = np.arange(low, low + n)
    quotient = np.trunc(i / divisor).astype(int)
    out = empty(n, "fp32")
    signed_kernel[(n // 64,)](put(x, "fp32"), out, low, divisor, 64)
    expected = x[quotient + divisor * 10] + (i - quotient * divisor) * 1000
    np.testing.assert_array_equal(get(out), expected.astype(np.float32))


@triton.jit
def window_kernel(X, O, C: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, R, BLOCK):
        r = start + tl.arange(0, BLOCK)
        total += tl.load(X + row * C + r % C + r // C * (3 * C), mask=r < R, other=0.0)
    tl.store(O + row, tl.sum(total, 0))


@pytest.mark.parametrize("divisor", DIVISORS)
def test_reduced_windows(divisor: int) -> None:
    x = numbers(4 * 3 * divisor).reshape(4, 3, divisor)
    out = empty(3, "fp32")
    window_kernel[(3,)](put(x, "fp32"), out, divisor, 4 * divisor, 64)
    np.testing.assert_array_equal(get(out), x.sum((0, 2)))


@triton.jit
def row_numbers_kernel(X, INDEX, O, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.load(INDEX + tl.arange(0, ROWS))
    offsets = rows[:, None] * stride + tl.arange(0, COLUMNS)[None, :]
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(O + places, tl.load(X + offsets))


@pytest.mark.parametrize("columns", [1, 8, 16, 64])
def test_rows_of_a_tile_by_index(columns: int) -> None:
    x = numbers(30 * 70).reshape(30, 70)
    index = np.random.default_rng(2).integers(0, 30, 16).astype(np.int32)
    out = empty(16 * columns, "fp32")
    row_numbers_kernel[(1,)](put(x, "fp32"), put(index, "i32"), out, 70, 16, columns)
    np.testing.assert_array_equal(get(out), x[index, :columns].ravel())


@triton.jit
def kept_offsets_kernel(A, B, O, P, ROWS: tl.constexpr, DIVISOR: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None]
    offsets = i.to(tl.uint16) % DIVISOR
    a = tl.load(A + offsets)
    b = tl.load(B + offsets)
    tl.store(O + i, a, mask=i < ROWS - 1)
    tl.store(P + i, b, mask=i < ROWS - 1)


@pytest.mark.parametrize("aliased", [False, True])
@pytest.mark.parametrize("divisor", [3, 100])
@pytest.mark.parametrize("rows", [4, 16, 64])
def test_offsets_in_scratch_of_a_tile_with_one_column(rows: int, divisor: int, aliased: bool) -> None:
    """A loop over scratch may join the two dimensions, where what the offsets were computed from does not."""
    a, b = numbers(rows), numbers(rows, seed=1)
    first, other = put(a, "fp32"), put(np.full(rows, 7, np.float32), "fp32")
    out = first if aliased else put(np.full(rows, 7, np.float32), "fp32")
    kept_offsets_kernel[(1,)](first, put(b, "fp32"), out, other, rows, divisor)
    at = np.arange(rows) % divisor
    last = a[-1] if aliased else 7
    np.testing.assert_array_equal(get(out), [*a[at][:-1], last])
    np.testing.assert_array_equal(get(other), [*b[at][:-1], 7])


@triton.jit
def channels_kernel(X, W, O, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(W + i // size, mask=i < n, other=3)
    tl.store(O + i, tl.load(X + i, mask=i < n, other=0) * weight, mask=i < n)


@pytest.mark.parametrize("kind", ["fp32", "fp16", "i8", "i64"])
@pytest.mark.parametrize("size", [1, 5, 16, 17, 64, 100, 1000])
def test_a_weight_for_each_channel(size: int, kind: str) -> None:
    """The divisor is known when the kernel runs. Some chunks lie in one channel, others do not, and the last is masked."""
    n, type = 489, KINDS[kind].host
    x, weights = (np.random.default_rng(size).integers(-3, 4, count).astype(type) for count in (n, n))
    out = empty(n, kind)
    channels_kernel[(4,)](put(x, kind), put(weights, kind), out, n, size, 128)
    np.testing.assert_array_equal(get(out), x * weights[np.arange(n) // size])

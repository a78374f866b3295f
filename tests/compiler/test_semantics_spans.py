"""Loops that are split where bounds end: no masks before, one masked chunk, then padding or nothing.

Arrays lie between pages that must not be touched, so that an access out of bounds ends the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import triton
import triton.language as tl
from guard_pages import Row
from running import Array

BLOCK = 256
COUNTS = [0, 1, 15, 16, 17, 63, 64, 65, 100, 128, 200, 240, 255, 256, 1000, -3]
"""Ends of rows: none, part of a vector, whole vectors, part of a group of them, all, beyond."""


Place = Callable[[Array], Row]


@pytest.fixture(params=[True, False], ids=["end", "start"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Puts values between untouchable pages."""
    rows: list[Row] = []

    def put(values: Array) -> Row:
        rows.append(Row(values, at_end=request.param))
        return rows[-1]

    yield put
    for row in rows:
        row.free()


def values_of(count: int, seed: int = 0) -> Array:
    """Small whole numbers, whose sums are exact, as float32."""
    return np.random.default_rng(seed).integers(-9, 10, max(count, 0)).astype(np.float32)


def padded(x: Array, other: float, block: int = BLOCK) -> Array:
    """A row as the kernel loads it."""
    result = np.full(block, other, np.float32)
    result[: x.size] = x
    return result


@triton.jit
def first_smaller(a, i, b, j):
    wanted = (a < b) | ((a == b) & (i < j))
    return tl.where(wanted, a, b), tl.where(wanted, i, j)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def reductions(X, O, n, other, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=other)
    tl.store(O, tl.sum(x, 0))
    tl.store(O + 1, tl.max(x, 0))
    tl.store(O + 2, tl.min(x, 0))
    value, index = tl.max(x, 0, return_indices=True)
    tl.store(O + 3, value)
    tl.store(O + 4, index.to(tl.float32))
    value, index = tl.reduce((x, i), 0, first_smaller)
    tl.store(O + 5, value)
    tl.store(O + 6, index.to(tl.float32))
    tl.store(O + 7, tl.sum((x * 0.5 + i).to(tl.float32), 0))
    tl.store(O + 8, tl.xor_sum(x.to(tl.int32, bitcast=True), 0).to(tl.float32, bitcast=True))
    tl.store(O + 9, tl.sum(x.to(tl.int32), 0).to(tl.float32))
    tl.store(O + 10, tl.sum(tl.where(i < n, x - 3.0, 0.0), 0))


@pytest.mark.parametrize("other", [0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, 5.0])
@pytest.mark.parametrize("n", COUNTS)
def test_reductions_of_padded_rows(place: Place, n: int, other: float) -> None:
    x = values_of(min(n, BLOCK))
    out = place(np.zeros(11, np.float32))
    reductions[(1,)](place(x), out, n, other, B=BLOCK)
    got = out.numpy()
    row, i = padded(x, other), np.arange(BLOCK, dtype=np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got[0], row.sum())
        np.testing.assert_array_equal(got[1], np.fmax.reduce(row))
        np.testing.assert_array_equal(got[2], np.fmin.reduce(row))
        if not np.isnan(other):
            assert (got[3], got[4]) == (row.max(), row.argmax())
            assert (got[5], got[6]) == (row.min(), row.argmin())
        np.testing.assert_array_equal(got[7], (row * 0.5 + i).sum())
        assert got.view(np.int32)[8] == np.bitwise_xor.reduce(row.view(np.int32))
        if np.isfinite(other):
            assert got[9] == row.astype(np.int32).sum()
        np.testing.assert_array_equal(got[10], (x - 3).sum())


@triton.jit
def low_and_high(X, O, low, high, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = (i >= low) & (i < high)
    x = tl.load(X + i, mask=inside, other=2.0)
    tl.store(O, tl.sum(x, 0))
    tl.store(O + 1 + i, x + 1.0, mask=inside)


@pytest.mark.parametrize("high", [0, 1, 40, 128, 250, 256])
@pytest.mark.parametrize("low", [-1, 0, 1, 16, 40, 200, 256])
def test_lower_bounds(place: Place, low: int, high: int) -> None:
    first, last = min(max(low, 0), BLOCK), min(max(high, 0), BLOCK)
    x = values_of(last)
    out = place(np.zeros(1 + last, np.float32))
    # What is before the lower bound is there, but must not count.
    low_and_high[(1,)](place(x), out, low, high, B=BLOCK)
    inside = np.arange(last) >= first
    expected = np.concatenate([[x[inside].sum() + 2 * (BLOCK - inside.sum())], np.where(inside, x + 1, 0)])
    np.testing.assert_array_equal(out.numpy(), expected)


@triton.jit
def kept_and_used_again(X, O, n, other, B: tl.constexpr):
    i = tl.arange(0, B)
    e = tl.exp(tl.load(X + i, mask=i < n, other=other))
    s = tl.sum(e, 0)
    tl.store(O + i, e)
    tl.store(O + B, s)


@pytest.mark.parametrize("other", [-np.inf, 0.0, np.nan])
@pytest.mark.parametrize("n", COUNTS)
def test_what_is_kept_has_its_padding(place: Place, n: int, other: float) -> None:
    x = values_of(min(n, BLOCK)) / 4
    out = place(np.zeros(BLOCK + 1, np.float32))
    kept_and_used_again[(1,)](place(x), out, n, other, B=BLOCK)
    expected = np.exp(padded(x, other).astype(np.float64))
    np.testing.assert_allclose(out.numpy()[:BLOCK], expected, 1e-6)
    np.testing.assert_allclose(out.numpy()[BLOCK], expected.sum(), 1e-5)


@triton.jit
def scaled_rows(X, W, R, O, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    inside = (r < rows) & (c < columns)
    x = tl.load(X + r * columns + c, mask=inside, other=1.0)
    w = tl.load(W + c, mask=c < columns, other=0.0)
    scale = tl.load(R + r, mask=r < rows, other=0.0)
    tl.store(O + r * columns + c, x * w + scale, mask=inside)


@triton.jit
def sums(X, O, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(X + r * columns + c, mask=(r < rows) & (c < columns), other=1.0)
    tl.store(O + tl.arange(0, M), tl.sum(x, 1))
    tl.store(O + M + tl.arange(0, N), tl.sum(x, 0))
    tl.store(O + M + N + tl.arange(0, N), tl.max(x, 0))


SHAPES = [(0, 0), (1, 1), (8, 64), (8, 63), (7, 64), (3, 17), (5, 16), (8, 1), (1, 64), (20, 50), (4, 100)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_bounds_along_two_dimensions(place: Place, rows: int, columns: int) -> None:
    m, n = min(rows, 8), min(columns, 64)
    x = values_of(rows * columns).reshape(rows, columns)
    w, scale = values_of(columns, 1), values_of(rows, 2)
    out = place(np.full(rows * columns, 77, np.float32))
    scaled_rows[(1,)](place(x), place(w), place(scale), out, rows, columns, M=8, N=64)
    expected = np.full((rows, columns), 77, np.float32)
    expected[:m, :n] = x[:m, :n] * w[:n] + scale[:m, None]
    np.testing.assert_array_equal(out.numpy().reshape(rows, columns), expected)

    tile = np.ones((8, 64), np.float32)
    tile[:m, :n] = x[:m, :n]
    out = place(np.zeros(8 + 64 + 64, np.float32))
    sums[(1,)](place(x), out, rows, columns, M=8, N=64)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([tile.sum(1), tile.sum(0), tile.max(0)]))


@triton.jit
def transposed_sum(X, O, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(X + r * columns + c, mask=(r < rows) & (c < columns), other=0.5)
    tl.store(O + tl.arange(0, N), tl.sum(tl.trans(x), 1))
    y = tl.load(O + tl.arange(0, N), mask=tl.arange(0, N) < columns)
    tl.store(O + N + c * M + r, x + y[None, :], mask=(r < M) & (c < columns))


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (16, 64), (16, 40), (9, 64), (5, 17)])
def test_transposed_reads(place: Place, rows: int, columns: int) -> None:
    x = values_of(rows * columns).reshape(rows, columns)
    tile = np.full((16, 64), 0.5, np.float32)
    tile[:rows, :columns] = x
    out = place(np.zeros(64 + columns * 16, np.float32))
    transposed_sum[(1,)](place(x), out, rows, columns, M=16, N=64)
    np.testing.assert_array_equal(out.numpy()[:64], tile.sum(0))
    expected = (tile + tile.sum(0))[:, :columns].T
    np.testing.assert_array_equal(out.numpy()[64:].reshape(columns, 16), expected)


@triton.jit
def wrapped(X, O, start, period, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + (start + i) % period, mask=i < n, other=0.0)
    tl.store(O + i, x, mask=i < n)
    tl.store(O + B, tl.sum(x, 0))


@pytest.mark.parametrize(("start", "period"), [(0, 256), (0, 300), (100, 300), (5, 40), (299, 300)])
@pytest.mark.parametrize("n", [0, 1, 64, 100, 256])
def test_wrapped_rows(place: Place, start: int, period: int, n: int) -> None:
    x = values_of(period)
    out = place(np.zeros(BLOCK + 1, np.float32))
    wrapped[(1,)](place(x), out, start, period, n, B=BLOCK)
    read = x[(start + np.arange(n)) % period]
    np.testing.assert_array_equal(out.numpy()[:n], read)
    assert out.numpy()[BLOCK] == read.sum()


@triton.jit
def wrapped_from(X, O, start, period, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.load(X + (period + (start + i) % period) * stride))


@pytest.mark.parametrize("start", [-70, -17, -1, 0, 40])
@pytest.mark.parametrize("period", [1, 3, 15, 16, 17, 50])
@pytest.mark.parametrize("stride", [1, 3])
def test_rows_that_wrap_more_than_once(place: Place, start: int, period: int, stride: int) -> None:
    """The remainder has the sign of the dividend, as in C."""
    x = values_of((2 * period - 1) * stride + 1)
    out = place(np.zeros(64, np.float32))
    wrapped_from[(1,)](place(x), out, start, period, stride, B=64)
    expected = x[(period + np.fmod(start + np.arange(64), period)) * stride]
    np.testing.assert_array_equal(out.numpy(), expected)


@triton.jit
def mixed_bounds(X, Y, O, n, m, k, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1.0)
    y = tl.load(Y + i, mask=(i < m) & (i % 3 != 1), other=2.0)
    tl.store(O + i, x * y, mask=i < k)
    tl.store(O + B, tl.sum(x * y, 0))
    tl.store(O + B + 1, tl.max(x + y, 0))


@pytest.mark.parametrize("n", [0, 40, 256])
@pytest.mark.parametrize("m", [0, 33, 200, 256])
@pytest.mark.parametrize("k", [0, 50, 256])
def test_accesses_with_different_bounds(place: Place, n: int, m: int, k: int) -> None:
    x, y = values_of(n), values_of(m, 1)
    out = place(np.zeros(BLOCK + 2, np.float32))
    mixed_bounds[(1,)](place(x), place(y), out, n, m, k, B=BLOCK)
    a, b = padded(x, 1), np.where(np.arange(BLOCK) % 3 != 1, padded(y, 2), 2)
    np.testing.assert_array_equal(out.numpy()[:k], (a * b)[:k])
    np.testing.assert_array_equal(out.numpy()[BLOCK:], [(a * b).sum(), (a + b).max()])


@triton.jit
def narrow(X, O, n, other, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=other)
    tl.store(O, tl.sum(x, 0).to(tl.float32))
    tl.store(O + 1, tl.max(x, 0).to(tl.float32))
    tl.store(O + 2 + i, x.to(tl.float32) * 2, mask=i < n)


@pytest.mark.parametrize("n", [0, 1, 33, 100, 256])
@pytest.mark.parametrize("other", [0.0, 3.0])
def test_half_precision(place: Place, n: int, other: float) -> None:
    x = values_of(n).astype(np.float16)
    out = place(np.zeros(2 + n, np.float32))
    narrow[(1,)](place(x), out, n, other, B=BLOCK)
    row = padded(x.astype(np.float32), other)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([[row.sum(), row.max()], row[:n] * 2]))


@triton.jit
def spaced(X, O, n, S: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(X + row * n * S + i * S, mask=i < n, other=-1)
    tl.store(O + row * B + i, x)


@pytest.mark.parametrize("spacing", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", [np.float32, np.int32, np.float64, np.int16])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 100, 256])
def test_elements_that_are_apart(place: Place, count: int, kind: type, spacing: int) -> None:
    """What lies between them behind the last one is not read: it may not be mapped."""
    values = np.random.default_rng(count).integers(-99, 100, (2 * count - 1) * spacing + 1).astype(kind)
    x, out = place(values), place(np.zeros((2, BLOCK), kind))
    spaced[(2,)](x, out, count, S=spacing, B=BLOCK)
    expected = np.full((2, BLOCK), -1, kind)
    expected[:, :count] = values[::spacing].reshape(2, count)
    np.testing.assert_array_equal(out.numpy().reshape(2, BLOCK), expected)

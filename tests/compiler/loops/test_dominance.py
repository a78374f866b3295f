"""What was computed, written to scratch or read in one branch is not taken as there behind it, or in another one.

Kernels run where an access out of bounds ends the process, and scratch that was not written is full of a pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from poisoned import Poisoned, run, targets

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Elementwise, Point

Array = np.ndarray[Any, Any]


@pytest.fixture(params=["host", "avx2", "portable"])
def target(request: pytest.FixtureRequest) -> CpuTarget:
    """Loops of each form that the host can run; without AVX-512 the host's own are those of AVX2."""
    return targets().get(request.param, targets()["host"])


def floats(count: int) -> Array:
    return np.random.default_rng(count).integers(-90, 90, count).astype(np.float32)


# --- wrap-around under a mask ------------------------------------------------------------------------


@triton.jit
def stored_index(o, x, s, C: tl.constexpr, S: tl.constexpr):
    c = tl.arange(0, C)
    v = c % (s if S is None else S)
    w = tl.load(x + v, mask=v < 5, other=-1.0)
    tl.store(o + c, v)
    tl.store(o + C + c, w.to(tl.int32))


@pytest.mark.parametrize("constant", [None, 8, 16, 24])
@pytest.mark.parametrize("size", [16, 64])
def test_the_index_of_a_wrapped_load_is_stored(target: CpuTarget, size: int, constant: int | None) -> None:
    period = constant or 12
    x = floats(period)
    out = run(stored_index, target, {"o": np.zeros(2 * size, np.int32), "x": x, "s": 12}, C=size, S=constant)[
        "o"
    ]
    index = np.arange(size) % period
    np.testing.assert_array_equal(out[:size], index)
    np.testing.assert_array_equal(out[size:], np.where(index < 5, x[index], -1))


@triton.jit
def stored_mask(a, b, x, p, q, M, N, S, R: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    at = pid * R * C + r * C + c
    m = tl.load(a + at) % 7 > tl.load(b + at) % 5
    w = tl.load(x + (r % M) * S + (c + pid) % N, mask=m, other=7.0)
    second = m & (w > 0)
    tl.store(p + at, m.to(tl.int32))
    tl.store(q + at, tl.load(x + (r % M) * S + (c + pid) % N, mask=second, other=-7.0) + w)


@pytest.mark.parametrize(("rows", "columns"), [(4, 16), (2, 64)])
def test_the_mask_of_a_wrapped_load_is_used_again(target: CpuTarget, rows: int, columns: int) -> None:
    programs, m, n, pitch = 2, 3, columns - 4, columns
    shape = (programs, rows, columns)
    count = programs * rows * columns
    a, b = (np.random.default_rng(seed).integers(0, 90, count).astype(np.int32) for seed in (1, 2))
    x = floats((m - 1) * pitch + n)
    arguments = {"a": a, "b": b, "x": x, "p": np.zeros(count, np.int32), "q": np.zeros(count, np.float32)}
    found = run(stored_mask, target, arguments | {"M": m, "N": n, "S": pitch}, programs, R=rows, C=columns)
    mask = (a % 7 > b % 5).reshape(shape)
    pid, r, c = np.ix_(*map(np.arange, shape))
    w = np.where(mask, x[(r % m) * pitch + (c + pid) % n], 7)
    again = np.where(mask & (w > 0), x[(r % m) * pitch + (c + pid) % n], -7)
    np.testing.assert_array_equal(found["p"].reshape(shape), mask)
    np.testing.assert_array_equal(found["q"].reshape(shape), again + w)


@triton.jit
def index_put(inp, idx, val, n, M, O: tl.constexpr):
    o = tl.program_id(0) * O + tl.arange(0, O)
    m = o < M
    i = tl.load(idx + o % M, mask=m, other=0)
    ok = (i < n) & m
    v = tl.load(val + o % M, mask=ok)
    tl.store(inp + i, v, mask=ok)


@pytest.mark.parametrize("size", [16, 64])
def test_a_mask_that_a_wrapped_load_gives(target: CpuTarget, size: int) -> None:
    count, limit = 100, 90
    index = np.random.default_rng(3).permutation(count).astype(np.int32)
    values = floats(count)
    arguments = {"inp": np.zeros(limit, np.float32), "idx": index, "val": values, "n": limit, "M": count}
    found = run(index_put, target, arguments, -(-count // size), O=size)["inp"]
    expected = np.zeros(limit, np.float32)
    expected[index[index < limit]] = values[index < limit]
    np.testing.assert_array_equal(found, expected)


@triton.jit
def best_row(x, o, M, N, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    wanted = tl.load(x + (r % M)[:, None] * N + (c % N)[None, :]) > -80
    t = tl.load(x + (r % M)[:, None] * N + (c % N)[None, :], mask=wanted, other=90.0)
    tl.store(o + c, tl.argmax(-t, axis=0))


@pytest.mark.parametrize(("rows", "columns"), [(8, 16), (16, 32), (2, 128)])
def test_argmax_of_a_tile_that_wraps_twice(target: CpuTarget, rows: int, columns: int) -> None:
    m, n = rows - 1, columns - 4
    x = floats(m * n)
    out = run(
        best_row, target, {"x": x, "o": np.zeros(columns, np.int32), "M": m, "N": n}, R=rows, C=columns
    )["o"]
    tile = x.reshape(m, n)[np.ix_(np.arange(rows) % m, np.arange(columns) % n)]
    np.testing.assert_array_equal(out, np.argmax(-np.where(tile > -80, tile, 90), axis=0))


@triton.jit
def filled_by_a_wrapped_load(x, o, n, N, C: tl.constexpr):
    c = tl.arange(0, C)
    other = tl.load(x + (c + 3) % N, mask=c // 3 < n, other=5.0)
    w = tl.load(x + c % N, mask=(c % 7) < n, other=other)
    tl.store(o + c, w)
    tl.store(o + C + c, other)
    tl.store(o + 2 * C + c, (c // 3).to(tl.float32))


@pytest.mark.parametrize("size", [16, 128])
def test_what_fills_the_lanes_that_are_masked(target: CpuTarget, size: int) -> None:
    n, period = 4, 12
    x, c = floats(period), np.arange(size)
    out = run(
        filled_by_a_wrapped_load,
        target,
        {"x": x, "o": np.zeros(3 * size, np.float32), "n": n, "N": period},
        C=size,
    )
    other = np.where(c // 3 < n, x[(c + 3) % period], 5)
    expected = [*np.where(c % 7 < n, x[c % period], other), *other, *(c // 3)]
    np.testing.assert_array_equal(out["o"], expected)


@triton.jit
def nested(idx, x, o, n, N, C: tl.constexpr):
    c = tl.arange(0, C)
    total = tl.zeros((C,), tl.float32)
    iteration = n * 0
    while iteration < n:
        v = (c + iteration) % N
        at = tl.load(idx + v, mask=v < N - 2, other=0)
        total += tl.load(x + v * v // N)
        for k in range(2):
            total += tl.load(x + v, mask=at % 5 != k, other=1.0)
            total += tl.load(x + (at + k) % N, mask=(c + k) % N > 3)
        tl.store(o + C + c, at, mask=at % 5 != 0)
        iteration += 1
    tl.store(o + c, total.to(tl.int32))


@pytest.mark.parametrize("size", [16, 64])
def test_wrapped_loads_in_a_while_and_an_inner_loop(target: CpuTarget, size: int) -> None:
    n, period = 3, 20
    index = np.random.default_rng(5).integers(0, period, period).astype(np.int32)
    x, c = floats(period), np.arange(size)
    total, last = np.zeros(size, np.float32), np.zeros(size, np.int32)
    for iteration in range(n):
        wrapped = (c + iteration) % period
        at = np.where(wrapped < period - 2, index[wrapped], 0)
        total += x[wrapped * wrapped // period]
        for k in range(2):
            total += np.where(at % 5 != k, x[wrapped], 1)
            total += np.where((c + k) % period > 3, x[(at + k) % period], 0)
        last = np.where(at % 5 != 0, at, last)
    arguments = {"idx": index, "x": x, "o": np.zeros(2 * size, np.int32), "n": n, "N": period}
    out = run(nested, target, arguments, C=size)["o"]
    np.testing.assert_array_equal(out, [*total, *last])


# --- nothing that may fault or trap comes ahead of its condition -----------------------------------------


@triton.jit
def wrapped(o, x, s, C: tl.constexpr):
    c = tl.arange(0, C)
    tl.store(o + c, tl.load(x + c % s))


@pytest.mark.parametrize("period", [4, 8, 12, 16, 20])
@pytest.mark.parametrize("size", [16, 64])
def test_a_wrapped_load_reads_nothing_behind_the_array(target: CpuTarget, size: int, period: int) -> None:
    x = floats(period)
    out = run(wrapped, target, {"o": np.zeros(size, np.float32), "x": x, "s": period}, C=size)["o"]
    np.testing.assert_array_equal(out, x[np.arange(size) % period])


@triton.jit
def one_place_for_all_lanes(o, x, n, C: tl.constexpr):
    c = tl.arange(0, C)
    tl.store(o + c, tl.load(x + 4 + c * 0, mask=c < n, other=2.0) + 1)
    tl.store(o + C, tl.sum(tl.load(x + 4 + c * 0, mask=c < n, other=2.0), 0))


def test_a_load_of_stride_zero_is_not_read_ahead_of_a_loop_without_iterations(target: CpuTarget) -> None:
    size = 128
    out = run(
        one_place_for_all_lanes, target, {"o": np.zeros(size + 4, np.float32), "x": floats(4), "n": 0}, C=size
    )
    np.testing.assert_array_equal(out["o"][: size + 1], [*[3.0] * size, 2.0 * size])


@triton.jit
def wrapped_by(o, x, start, period, C: tl.constexpr):
    c = tl.arange(0, C)
    tl.store(o + c, tl.load(x + (c + start) % period))


@pytest.mark.parametrize("start", [0, -(1 << 63)])
def test_the_period_of_minus_one(target: CpuTarget, start: int) -> None:
    """The remainder is 0, and an instruction that divides the lowest number by it would end the process."""
    size = 32
    signature = {"o": "*fp32", "x": "*fp32", "start": "i64", "period": "i64"}
    kernel = Poisoned(wrapped_by, signature, target, C=size)
    out = kernel(o=np.zeros(size, np.float32), x=np.full(4, 3, np.float32), start=start, period=-1)["o"]
    np.testing.assert_array_equal(out, 3)


# --- branches of the lowering's own ------------------------------------------------------------------


@triton.jit
def packed_and_read(
    A, B, O, S, T, iterations, row, column, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total, seen = tl.zeros((M, N), tl.float32), tl.zeros((K, N), tl.float32)
    a_at, b_at = A + m * (K * iterations) + k[None, :], B + k[:, None] * row + n * column
    for _ in range(iterations):
        b = tl.load(b_at)
        total = tl.dot(tl.load(a_at), b, total, input_precision="ieee")
        seen += b
        a_at += K
        b_at += K * row
    place = tl.program_id(0) * (M * N)
    tl.store(O + place + m * N + n, total)
    tl.store(S + tl.program_id(0) * (K * N) + k[:, None] * N + n, seen)
    tl.store(T + n, tl.sum(seen, 0)[None, :])


def test_a_factor_that_was_packed_before_is_read_again(target: CpuTarget) -> None:
    """The second program finds the right factor packed: what else it does with it is not there."""
    size, iterations, programs = 16, 3, 3
    a, b = floats(size * size * iterations) % 5, floats(size * iterations * 2 * size) % 7
    b_tile = b.reshape(size * iterations, size, 2)[:, :, 0]
    arguments = {"A": a, "B": b, **{name: np.zeros(programs * size * size, np.float32) for name in "OST"}}
    found = run(
        packed_and_read, target, arguments | {"iterations": iterations, "row": 2 * size, "column": 2}, programs,
        M=size, N=size, K=size,
    )  # fmt: skip
    seen = b_tile.reshape(iterations, size, size).sum(0)
    expected = {"O": a.reshape(size, -1) @ b_tile, "S": seen}
    for name, tile in expected.items():
        np.testing.assert_array_equal(
            found[name].reshape(programs, size, size), np.stack([tile] * programs), name
        )
    np.testing.assert_array_equal(found["T"][:size], seen.sum(0))


# --- the two that remember -----------------------------------------------------------------------------


def test_reads_stay_in_the_branch() -> None:
    """Where they are not to be placed above a loop, and what they read is known before it."""
    builder = LoopBuilder()
    place, condition = Value("%place", "!llvm.ptr", 0), Value("%condition", "i1", 0)

    def branch() -> list[Value]:
        with builder.loop(builder.i64(0), builder.i64(8), builder.i64(1)):
            assert builder.read("read", "f32", [place], floor=0).level == 1
            assert builder.read("read", "f32", [place], floor=2).level == 2
        return []

    builder.if_else(condition, branch, branch)
    assert builder.read("read", "f32", [place], floor=0).level == 0


def test_what_is_known_ends_with_the_region() -> None:
    builder = LoopBuilder()
    ended: list[str] = []
    condition = Value("%condition", "i1", 0)
    times = 0

    def compute(builder: LoopBuilder, values: list[Value]) -> Value:
        nonlocal times
        times += 1
        value = builder.effect("compute", "f32")
        assert value is not None
        return value

    tensor, point = Elementwise((4,), "f32", (), compute), Point((builder.i64(0),), -1, 1)
    evaluation = Evaluation(builder, frozenset(), {})

    def branch() -> list[Value]:
        builder.at_end(lambda: ended.append("first"))
        builder.at_end(lambda: ended.append("second"))
        assert evaluation.at(tensor, point) == evaluation.at(tensor, point)
        assert ended == []
        return []

    builder.if_else(condition, branch)
    assert (times, ended) == (1, ["second", "first"])
    value = evaluation.at(tensor, point)
    assert (times, value.level) == (2, 0)

    def uses() -> list[Value]:
        return [evaluation.at(tensor, point)]

    builder.if_else(condition, uses, uses)
    assert times == 2

"""Dots that a loop adds up: whatever of them waits for later iterations, the program's order is what shows.

By exact integers and float64, from NumPy, iteration by iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, assert_same, empty, get, put
from test_semantics_dots import check, operand

from triton_porting_kit.compiler import CpuTarget

#: Inputs, accumulator: multiplied in pairs, in quads, one by one as they lie, and one by one converted.
TYPES = [("bf16", "fp32"), ("i8", "i32"), ("fp32", "fp32"), ("fp16", "fp32")]
TYPE_IDS = [kind for kind, _ in TYPES]


@triton.jit
def matmul_kernel(
    A, B, C, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Rows and columns beyond the edge wrap around: only K is masked."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_at = A + (rows % M)[:, None] * sam + ks[None, :] * sak
    b_at = B + ks[:, None] * sbk + (columns % N)[None, :] * sbn
    acc = tl.zeros((BM, BN), ACC)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_at, mask=ks[None, :] < K - step * BK, other=0)
        b = tl.load(b_at, mask=ks[:, None] < K - step * BK, other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
        a_at += BK * sak
        b_at += BK * sbk
    tl.store(C + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def multiplied(a: Array, b: Array, types: tuple[str, str], tiles: tuple[int, int, int]) -> Array:
    """a @ b by the kernel; the arrays are given as they lie, transposed ones as columns."""
    kind, accumulator = (KINDS[name] for name in types)
    strides = [s // v.itemsize for v in (a, b) for s in v.strides]
    stored = [v if v.flags.c_contiguous else v.T for v in (a, b)]
    (m, k), n = a.shape, b.shape[1]
    out = empty((m, n), accumulator)
    grid = (triton.cdiv(m, tiles[0]), triton.cdiv(n, tiles[1]))
    matmul_kernel[grid](
        *(put(v, kind) for v in stored), out, m, n, k, *strides, *tiles, getattr(tl, accumulator.device)
    )
    return get(out)


@pytest.mark.parametrize("types", TYPES, ids=TYPE_IDS)
@pytest.mark.parametrize("k", [0, 1, 7, 32, 33, 64, 1000, 1024])
@pytest.mark.parametrize(("m", "n"), [(32, 64), (45, 70), (3, 130)])
def test_any_depth(m: int, n: int, k: int, types: tuple[str, str]) -> None:
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((m, k), kind, 1), operand((k, n), kind, 2)
    check(multiplied(a, b, types, (32, 64, 32)), a, b, 0, kind, accumulator, roundings=k // 32 + 1)


@pytest.mark.parametrize("types", TYPES, ids=TYPE_IDS)
@pytest.mark.parametrize("tiles", [(16, 16, 32), (16, 128, 128), (128, 16, 32), (64, 32, 256), (16, 256, 64)])
def test_any_tile(tiles: tuple[int, int, int], types: tuple[str, str]) -> None:
    m, n, k = 150, 290, 530
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((m, k), kind, 3), operand((k, n), kind, 4)
    check(multiplied(a, b, types, tiles), a, b, 0, kind, accumulator, roundings=40)


@pytest.mark.parametrize("types", TYPES, ids=TYPE_IDS)
@pytest.mark.parametrize("turned", ["a", "b", "both"])
@pytest.mark.parametrize("tiles", [(32, 64, 32), (64, 32, 128), (16, 16, 64), (4, 64, 32)])
def test_operands_in_columns(tiles: tuple[int, int, int], turned: str, types: tuple[str, str]) -> None:
    m, n, k = 100, 70, 300
    kind, accumulator = (KINDS[name] for name in types)
    a = operand((k, m), kind, 5).T if turned in ("a", "both") else operand((m, k), kind, 5)
    b = operand((n, k), kind, 6).T if turned in ("b", "both") else operand((k, n), kind, 6)
    check(multiplied(a, b, types, tiles), a, b, 0, kind, accumulator, roundings=11)


@pytest.mark.parametrize("kind", ["bf16", "fp32", "i8"])
def test_what_padding_holds_counts_for_nothing(kind: str) -> None:
    """Rows of A are read where they lie, but not past the end of K, where there may be NaN."""
    m, n, k, held = 32, 64, 40, 64
    a, b = operand((m, held), KINDS[kind], 7), operand((held, n), KINDS[kind], 8)
    if kind != "i8":
        a[:, k:], b[k:] = np.nan, np.inf
    accumulator = KINDS["i32" if kind == "i8" else "fp32"]
    out = empty((m, n), accumulator)
    matmul_kernel[(1, 1)](
        put(a, kind), put(b, kind), out, m, n, k, held, 1, n, 1, 32, 64, 32, getattr(tl, accumulator.device)
    )
    check(get(out), a[:, :k], b[:k], 0, KINDS[kind], accumulator, roundings=2)


@triton.jit
def overwriting_kernel(A, B, C, iterations, AHEAD: tl.constexpr, S: tl.constexpr):
    """Each iteration writes what an earlier or a later one has read, or will."""
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    acc = tl.zeros((S, S), tl.int32)
    pitch = S * (iterations + 1)
    for t in range(iterations):
        a = tl.load(A + i * pitch + t * S + j)
        b = tl.load(B + (t * S + i) * S + j)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        tl.store(A + i * pitch + (t + AHEAD) * S + j, (a + b + t).to(tl.int8))
    tl.store(C + i * S + j, acc)


@pytest.mark.parametrize("ahead", [0, 1], ids=["behind", "ahead"])
def test_each_iteration_reads_in_its_turn(ahead: int) -> None:
    s, iterations = 32, 11
    a, b = operand((s, s * (iterations + 1)), KINDS["i8"], 9), operand((s * iterations, s), KINDS["i8"], 10)
    held, out = put(a, "i8"), empty((s, s), "i32")
    overwriting_kernel[(1,)](held, put(b, "i8"), out, iterations, AHEAD=ahead, S=s)
    a, total = a.copy(), np.zeros((s, s), np.int64)
    for t in range(iterations):
        left, right = a[:, t * s :][:, :s].copy(), b[t * s :][:s]
        total += left.astype(np.int64) @ right.astype(np.int64)
        a[:, (t + ahead) * s :][:, :s] = left + right + np.int8(t)
    assert_same(get(out), total.astype(np.int32))
    assert_same(get(held), a)


@triton.jit
def watched_kernel(A, B, C, O, iterations, FORM: tl.constexpr, S: tl.constexpr):
    """Somebody else sees the sums before the loop is over."""
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    acc = tl.zeros((S, S), tl.float32)
    for t in range(iterations):
        a = tl.load(A + i * (S * iterations) + t * S + j)
        b = tl.load(B + (t * S + i) * S + j)
        if FORM == "stored before":
            tl.store(O + t * S * S + i * S + j, acc)
        if FORM == "scaled":
            acc = acc * 0.5
        acc = tl.dot(a, b, acc, input_precision="ieee")
        if FORM == "stored":
            tl.store(O + t * S * S + i * S + j, acc)
        if FORM == "twice":
            acc = tl.dot(b, a, acc, input_precision="ieee")
        if FORM == "clipped":
            acc = tl.minimum(acc, 1.0)
    tl.store(C + i * S + j, acc)


@pytest.mark.parametrize("form", ["plain", "stored before", "stored", "scaled", "twice", "clipped"])
def test_sums_that_are_seen_before_the_end(form: str) -> None:
    s, iterations = 32, 9
    a, b = operand((s, s * iterations), KINDS["fp32"], 11), operand((s * iterations, s), KINDS["fp32"], 12)
    out, seen = empty((s, s), "fp32"), put(np.zeros((iterations, s, s), np.float32), "fp32")
    watched_kernel[(1,)](put(a, "fp32"), put(b, "fp32"), out, seen, iterations, FORM=form, S=s)
    total, expected = np.zeros((s, s)), np.zeros((iterations, s, s))
    for t in range(iterations):
        left, right = a[:, t * s :][:, :s].astype(np.float64), b[t * s :][:s].astype(np.float64)
        if form == "stored before":
            expected[t] = total
        total = (total * 0.5 if form == "scaled" else total) + left @ right
        if form == "stored":
            expected[t] = total
        if form == "twice":
            total = total + right @ left
        if form == "clipped":
            total = np.minimum(total, 1.0)
    np.testing.assert_allclose(get(out), total, atol=1e-4)
    np.testing.assert_allclose(get(seen), expected, atol=1e-4)


@triton.jit
def two_sums_kernel(A, B, C, first, stop, step, rounds, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    """Two sums of different depths in one loop, of factors in common, in a loop of its own that begins anew."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, S)
    for r in range(rounds):
        wide, square = tl.zeros((M, N), tl.int32), tl.zeros((M, M), tl.int32)
        for t in range(first, stop, step):
            a = tl.load(A + i * 1024 + (t + r) * S + k[None, :])
            b = tl.load(B + ((t + r) * S + k[:, None]) * N + j)
            wide = tl.dot(a, b, wide, out_dtype=tl.int32)
            square = tl.dot(a, tl.trans(a), square, out_dtype=tl.int32)
        tl.store(C + r * M * (N + M) + i * (N + M) + j, wide)
        tl.store(C + r * M * (N + M) + i * (N + M) + N + tl.arange(0, M)[None, :], square)


@pytest.mark.parametrize("steps", [(0, 8, 1), (0, 9, 2), (3, 30, 3), (5, 5, 1), (6, 2, 1)], ids=str)
def test_two_sums_in_nested_loops(steps: tuple[int, int, int]) -> None:
    m, n, s, rounds = 16, 64, 32, 2
    a, b = operand((m, 1024), KINDS["i8"], 13), operand((1024, n), KINDS["i8"], 14)
    out = empty((rounds, m, n + m), "i32")
    two_sums_kernel[(1,)](put(a, "i8"), put(b, "i8"), out, *steps, rounds, M=m, N=n, S=s)
    for r in range(rounds):
        at = [np.arange(s) + (t + r) * s for t in range(*steps)]
        columns = np.concatenate([*at, np.arange(0)]).astype(int)
        left, right = a[:, columns].astype(np.int64), b[columns].astype(np.int64)
        assert_same(get(out)[r], np.concatenate([left @ right, left @ left.T], 1).astype(np.int32))


@triton.jit
def filled_kernel(A, B, O, C, K, S: tl.constexpr):
    """What stands in for elements out of bounds is dear, and needed again."""
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    acc, rest = tl.zeros((S, S), tl.float32), tl.zeros((S, S), tl.float32)
    a_at, b_at = A + i * K + j, B + i * S + j
    for t in range(0, K, S):
        dear = tl.exp(tl.exp(tl.load(O + i * S + j) * 0.1))
        a = tl.load(a_at, mask=j < K - t, other=dear)
        acc = tl.dot(a, tl.load(b_at), acc, input_precision="ieee")
        rest += a + dear
        a_at += S
        b_at += S * S
    tl.store(C + i * S + j, acc)
    tl.store(C + S * S + i * S + j, rest)


@pytest.mark.parametrize("k", [32, 40, 96, 100])
def test_dear_elements_in_the_place_of_those_out_of_bounds(k: int) -> None:
    s = 32
    iterations = -(-k // s)
    a, b, o = (
        operand((s, k), KINDS["fp32"], 17),
        operand((s * iterations, s), KINDS["fp32"], 18),
        operand((s, s), KINDS["fp32"], 19),
    )
    out = empty((2, s, s), "fp32")
    filled_kernel[(1,)](*(put(v, "fp32") for v in (a, b, o)), out, k, S=s)
    dear = np.exp(np.exp(o.astype(np.float64) * 0.1))
    wide = np.concatenate([a.astype(np.float64), np.tile(dear, iterations)[:, k:]], 1)
    np.testing.assert_allclose(get(out)[0], wide @ b.astype(np.float64), atol=1e-3)
    parts = wide.reshape(s, iterations, s).sum(1) + iterations * dear
    np.testing.assert_allclose(get(out)[1], parts, rtol=1e-5, atol=1e-5)


@triton.jit
def sliding_kernel(A, B, C, iterations, BY: tl.constexpr, S: tl.constexpr):
    """Windows of A that overlap, or leave gaps: they do not lie one behind the other."""
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    a_at, b_at = A + i * 2048 + j, B + i * S + j
    acc = tl.zeros((S, S), tl.int32)
    for _ in range(iterations):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc, out_dtype=tl.int32)
        a_at += BY
        b_at += S * S
    tl.store(C + i * S + j, acc)


@pytest.mark.parametrize("by", [0, 1, 16, 32, 48])
def test_windows_along_a_row(by: int) -> None:
    s, iterations = 32, 20
    a, b = operand((s, 2048), KINDS["i8"], 15), operand((s * iterations, s), KINDS["i8"], 16)
    out: Any = empty((s, s), "i32")
    sliding_kernel[(1,)](put(a, "i8"), put(b, "i8"), out, iterations, BY=by, S=s)
    total = np.zeros((s, s), np.int64)
    for t in range(iterations):
        total += a[:, t * by :][:, :s].astype(np.int64) @ b[t * s :][:s].astype(np.int64)
    assert_same(get(out), total.astype(np.int32))


@triton.jit
def runs_kernel(A, C, count, N: tl.constexpr):
    m, n = tl.arange(0, 16)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((16, N), tl.float32)
    for i in range(count):
        right = (n // 64 + i).to(tl.float32)
        total = tl.dot(tl.load(A + m * count + i), right, total, input_precision="ieee")
    tl.store(C + m * N + n, total)


@pytest.mark.parametrize("without", ["", "-avx512f"])
def test_one_row_of_many_equal_elements(without: str) -> None:
    """Several vectors of them are written at a time, but not to two strips."""
    count, n = 5, 128
    a = np.random.default_rng(0).integers(-9, 9, (16, count)).astype(np.float32)
    out = empty((16, n), KINDS["fp32"])
    host = CpuTarget.host()
    options = (
        {"cpu_features": host.with_features(without).feature_string} if "avx512f" in host.features else {}
    )
    runs_kernel[(1,)](put(a, KINDS["fp32"]), out, count, N=n, **options)
    right = np.arange(n)[None, :] // 64 + np.arange(count)[:, None]
    np.testing.assert_array_equal(get(out), a @ right.astype(np.float32))

"""What stays packed for later programs, and that nothing which a launch may write does.

A kernel's function is called with all of its programs on one thread, at once or some at a time, in scratch that the
launch before has left full, but for what a host clears: whatever of B is found packed by mistake shows. What is kept
shows too, as the addresses in scratch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import link, loops_of, scratch_of_a_program
from poisoned import Poisoned, targets

from triton_porting_kit.abi.kernel import SCRATCH
from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.caches import Caches

Array = np.ndarray[Any, Any]
TILE = 32
CACHES = Caches.parse("64K,1M")
"""Those of one CPU, so that tests see the same blocks everywhere."""


@triton.jit
def products(
    A, B, C, ROWS, M, N, K, row, pitch,
    GROUP: tl.constexpr, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A @ B, whose rows lie `row` (B) and `pitch` (C) elements apart; programs go down GROUP rows of tiles.

    Some forms store row i at ROWS[i], and negative ones not at all.
    """
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    size = GROUP * tiles_n
    first = pid // size * GROUP
    rows_in_group = tl.minimum(tiles_m - first, GROUP)
    m0 = (first + pid % size % rows_in_group) * BM
    n0 = pid % size // rows_in_group * BN
    m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)
    a_at = A + (m % M)[:, None] * K + k[None, :]
    b_at = B + k[:, None] * row + (n % N)[None, :]
    total = tl.zeros((BM, BN), tl.float64)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_at, mask=k[None, :] < K - step * BK, other=0.0)
        b = tl.load(b_at, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=tl.float64)
        a_at += BK
        b_at += BK * row
    c_at = C + m[:, None] * pitch + n[None, :]
    if FORM == "atomic":
        tl.atomic_add(c_at, total)
    elif FORM == "whole":
        tl.store(c_at, total)
    elif FORM == "backwards":
        tl.store(
            C + (M - 1 - m)[:, None] * pitch + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :]
        )
    elif FORM == "masked":
        tl.store(c_at, total, mask=(m < M)[:, None] & (n < N)[None, :])
    else:
        at = tl.load(ROWS + m, mask=m < M, other=-1)
        mask = (at >= 0)[:, None] & (n < N)[None, :]
        columns = n if FORM == "listed" else tl.minimum(n, 2 * N - n)
        tl.store(C + at[:, None] * pitch + columns[None, :], total, mask=mask)


class Compiled:
    """The function of `products`, on arrays that lie in one piece of memory."""

    def __init__(self, group: int, form: str) -> None:
        signature = {"A": "*fp64", "B": "*fp64", "C": "*fp64", "ROWS": "*i32"} | dict.fromkeys(
            ("M", "N", "K", "row", "pitch"), "i32"
        )
        self.loops = loops_of(
            products,
            signature,
            replace(CpuTarget.host(), caches=CACHES),
            GROUP=group,
            FORM=form,
            BM=TILE,
            BN=TILE,
            BK=TILE,
        )
        name = self.loops.name
        self.code = link(self.loops.text, [name, name + SCRATCH])
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.code.addresses[name])
        self.memory = np.zeros(self.loops.scratch_bytes + 64, np.uint8)

    def __call__(
        self,
        memory: Array,
        a: int,
        b: int,
        c: int,
        shape: tuple[int, int, int],
        row: int,
        pitch: int,
        step: int = 0,
        before: Callable[[int], None] = lambda _: None,
        rows: Array | None = None,
    ) -> list[int]:
        """Run all programs, `step` in a call; the operands begin at these elements of `memory`.

        `before` each call it is told the first program. Returns where kept parts of B begin.
        """
        m, n, k = shape
        rows = np.arange(m, dtype=np.int32) if rows is None else rows
        block = np.zeros(56, np.uint8)
        block[:24].view(np.uint64)[:] = [memory.ctypes.data + 8 * start for start in (a, b, c)]
        block[24:32].view(np.uint64)[:] = rows.ctypes.data
        block[32:52].view(np.int32)[:] = [m, n, k, row, pitch]
        start = -self.memory.ctypes.data % 64
        programs = -(-m // TILE) * -(-n // TILE)
        data = self.memory.ctypes.data + start
        ctypes.memset(data, 0, self.loops.cleared_bytes)
        for begin in range(0, programs, step or programs):
            end = min(begin + (step or programs), programs)
            before(begin)
            assert self.run(block.ctypes.data, data, begin, end, programs, 1, 1) == 0
        words = self.memory[start : start + self.loops.cleared_bytes].view(np.int64)
        starts = ((int(word) - memory.ctypes.data) // 8 for word in words)
        return sorted({start for start in starts if b <= start < b + k * row})


def expected(
    memory: Array,
    a: int,
    b: int,
    c: int,
    shape: tuple[int, int, int],
    row: int,
    pitch: int,
    group: int,
    rows: Array | None = None,
) -> Array:
    """What is in `memory` afterwards, program by program."""
    m, n, k = shape
    places = np.arange(m) if rows is None else rows
    memory = memory.copy()
    tiles_m, tiles_n = -(-m // TILE), -(-n // TILE)
    view = np.lib.stride_tricks.as_strided
    left, right = view(memory[a:], (m, k), (8 * k, 8)), view(memory[b:], (k, n), (8 * row, 8))
    out = view(memory[c:], (m, n), (8 * pitch, 8))
    for pid in range(tiles_m * tiles_n):
        first = pid // (group * tiles_n) * group
        height = min(tiles_m - first, group)
        m0, n0 = (first + pid % (group * tiles_n) % height) * TILE, pid % (group * tiles_n) // height * TILE
        tile, at = left[m0 : m0 + TILE] @ right[:, n0 : n0 + TILE], places[m0 : m0 + TILE]
        for place, sums in zip(at[at >= 0], tile[at >= 0], strict=True):
            out[place, n0 : n0 + TILE] = sums
    return memory


def numbers(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-2, 3, count).astype(np.float64)


@pytest.fixture(scope="module")
def grouped() -> Compiled:
    return Compiled(8, "masked")


SHAPE = (96, 64, 96)
M, N, K = SHAPE
A_SIZE, B_SIZE, C_SIZE = M * K, K * N, M * N


def test_b_stays_where_nothing_is_written_to_it(grouped: Compiled) -> None:
    memory = numbers(A_SIZE + B_SIZE + C_SIZE, 1)
    wanted = expected(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N, 8)
    kept = grouped(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N)
    np.testing.assert_array_equal(memory, wanted)
    # The column of tiles that the last programs made: K is 3 tiles.
    assert kept == [A_SIZE + step * TILE * N + TILE for step in range(3)]


@pytest.mark.parametrize("step", [1, 2])
def test_b_stays_for_the_calls_of_a_launch(grouped: Compiled, step: int) -> None:
    """The host calls the kernel for some programs at a time: what a later call multiplies with is there already."""
    memory = numbers(A_SIZE + B_SIZE + C_SIZE, 1)
    wanted = expected(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N, 8)

    def spoil(begin: int) -> None:
        if begin % 3:  # three programs make one column of tiles
            memory[A_SIZE : A_SIZE + B_SIZE].reshape(K, N)[:, : TILE * (begin // 3 + 1)] = np.nan

    grouped(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N, step, spoil)
    np.testing.assert_array_equal(memory[A_SIZE + B_SIZE :], wanted[A_SIZE + B_SIZE :])


def test_another_launch_reads_b_again(grouped: Compiled) -> None:
    shape = (m, n, k) = (64, TILE, 64)  # one column of tiles: the launch ends with the B that it began with
    b, c = m * k, m * k + k * n
    memory = numbers(c + m * n, 2)
    for seed in (3, 4):
        memory[b:c] = numbers(c - b, seed)  # at the very same addresses
        wanted = expected(memory, 0, b, c, shape, n, n, 8)
        assert len(grouped(memory, 0, b, c, shape, n, n)) == 2
        np.testing.assert_array_equal(memory, wanted)


def test_parts_that_are_not_whole_are_not_kept(grouped: Compiled) -> None:
    """Three iterations and a half along K; and of two and a half tiles of columns, the last that is made."""
    m, k = 64, 3 * TILE + 16
    for n, whole in ((2 * TILE, 3), (2 * TILE + 16, 0)):
        b, c = m * k, m * k + k * n
        memory = numbers(c + m * n, 5)
        wanted = expected(memory, 0, b, c, (m, n, k), n, n, 8)
        kept = grouped(memory, 0, b, c, (m, n, k), n, n)
        np.testing.assert_array_equal(memory, wanted)
        assert len(kept) == whole


@pytest.mark.parametrize("gap", [-C_SIZE, -N, -1, 0, 1, N, C_SIZE])
@pytest.mark.parametrize("order", ["B before C", "C before B"])
def test_b_that_a_launch_writes_is_read_again(grouped: Compiled, gap: int, order: str) -> None:
    """Programs of one thread run in order: the later ones see what the earlier ones stored to B, as ever."""
    if order == "B before C":
        b = A_SIZE + C_SIZE
        c = b + B_SIZE + gap
    else:
        c = A_SIZE
        b = c + C_SIZE + max(gap, -C_SIZE)
    memory = numbers(A_SIZE + 2 * B_SIZE + 3 * C_SIZE, 5)
    wanted = expected(memory, 0, b, c, SHAPE, N, N, 8)
    kept = grouped(memory, 0, b, c, SHAPE, N, N)
    np.testing.assert_array_equal(memory, wanted)
    for start in kept:
        # What an iteration read lies apart from all of C, which this kernel fills.
        assert start + (TILE - 1) * N + TILE <= c or start >= c + C_SIZE
    assert len(kept) == 3 or gap < 0


@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize("shape", [(32, 32, 32), (96, 64, 64), (300, 70, 100), (33, 129, 64), (520, 40, 40)])
def test_any_place_of_b_and_c(shape: tuple[int, int, int], group: int) -> None:
    """Wherever they lie, in rows with any pitch: results are those of programs in order."""
    compiled = Compiled(group, "masked")
    m, n, k = shape
    random = np.random.default_rng(group)
    for _ in range(25):
        row, pitch = n + int(random.integers(0, 40)), n + int(random.integers(0, 40))
        room = m * k + 2 * (k * row + m * pitch)
        b, c = (int(random.integers(m * k, room - size)) for size in (k * row, m * pitch))
        memory = numbers(room, 6)
        wanted = expected(memory, 0, b, c, shape, row, pitch, group)
        kept = compiled(memory, 0, b, c, shape, row, pitch, step=int(random.integers(0, 4)))
        # Products of products of products need not be exact.
        np.testing.assert_allclose(memory, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
        apart = b + k * row <= c or c + m * pitch <= b
        whole = k >= TILE and n >= TILE and n % TILE == 0
        assert not apart or not whole or kept


@pytest.mark.parametrize("form", ["atomic", "backwards"])
def test_writes_that_are_not_followed(form: str) -> None:
    """Nothing is kept beside atomics, and where rows are stored in an order that falls."""
    compiled = Compiled(8, form)
    memory = numbers(A_SIZE + B_SIZE + C_SIZE, 7)
    memory[A_SIZE + B_SIZE :] = 0
    wanted = expected(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N, 8)
    kept = compiled(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N)
    out = wanted[A_SIZE + B_SIZE :].reshape(M, N)
    np.testing.assert_array_equal(
        memory[A_SIZE + B_SIZE :].reshape(M, N), out[::-1] if form == "backwards" else out
    )
    assert kept == []


def test_a_store_without_bounds_is_followed() -> None:
    compiled = Compiled(8, "whole")
    memory = numbers(A_SIZE + B_SIZE + C_SIZE, 8)
    wanted = expected(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N, 8)
    kept = compiled(memory, 0, A_SIZE, A_SIZE + B_SIZE, SHAPE, N, N)
    np.testing.assert_array_equal(memory, wanted)
    assert len(kept) == 3


def test_what_is_kept_is_bounded() -> None:
    compiled = Compiled(8, "masked")
    loops = compiled.loops
    kept_bytes = loops.scratch_bytes - loops.cleared_bytes - scratch_of_a_program(loops)
    assert kept_bytes == CACHES.kept_bytes
    m, n, k = shape = (64, 64, 10000)  # of B, 5 MB
    memory = numbers(m * k + k * n + m * n, 9)
    wanted = expected(memory, 0, m * k, m * k + k * n, shape, n, n, 8)
    kept = compiled(memory, 0, m * k, m * k + k * n, shape, n, n)
    np.testing.assert_array_equal(memory, wanted)
    assert 8 * TILE * TILE * len(kept) <= CACHES.kept_bytes
    assert len(set(kept)) > 10


# --- rows that a list chooses ------------------------------------------------------------------------


def listed_rows(count: int, seed: int) -> Array:
    """A place of its own for each row, and none for a third of them; for every third seed, none for a tile of them."""
    random = np.random.default_rng(seed)
    rows = random.permutation(count).astype(np.int32)
    rows[random.random(count) < 1 / 3] = -1
    rows[: 0 if seed % 3 else TILE] = -1
    return rows


@pytest.fixture(scope="module")
def listed() -> Compiled:
    return Compiled(8, "listed")


def test_b_stays_beside_rows_of_a_list(listed: Compiled) -> None:
    memory, rows = numbers(A_SIZE + B_SIZE + C_SIZE, 1), listed_rows(M, 2)
    b, c = A_SIZE, A_SIZE + B_SIZE
    wanted = expected(memory, 0, b, c, SHAPE, N, N, 8, rows)

    def spoil(begin: int) -> None:
        if begin % 3:  # three programs make one column of tiles
            memory[b:c].reshape(K, N)[:, : TILE * (begin // 3 + 1)] = np.nan

    kept = listed(memory, 0, b, c, SHAPE, N, N, 1, spoil, rows)
    np.testing.assert_array_equal(memory[c:], wanted[c:])
    assert kept == [b + step * TILE * N + TILE for step in range(3)]


def test_a_launch_forgets_the_rows_of_another(listed: Compiled) -> None:
    """The first one writes to B, which the second one may keep."""
    memory, rows = numbers(A_SIZE + B_SIZE + 2 * C_SIZE, 3), listed_rows(M, 4)
    for c, count in ((A_SIZE, 0), (A_SIZE + B_SIZE + C_SIZE, 3)):
        wanted = expected(memory, 0, A_SIZE, c, SHAPE, N, N, 8, rows)
        kept = listed(memory, 0, A_SIZE, c, SHAPE, N, N, rows=rows)
        np.testing.assert_allclose(memory, wanted, rtol=1e-12)
        assert not count or len(kept) == count


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("end", ["first", "last"])
def test_one_element_of_b_is_written_by_a_row_of_a_list(end: str, overlap: int, listed: Compiled) -> None:
    """The first program's only row ends where B begins, or begins where B ends; the second one multiplies by B, too."""
    shape = (m, n, k) = (2 * TILE, TILE, TILE)
    b = m * k + m * n
    c = b - TILE + overlap if end == "first" else b + k * n - overlap
    rows = np.full(m, -1, np.int32)
    rows[[7, TILE + 3]] = 0, TILE + 2
    memory = numbers(c + (TILE + 3) * n, 1)
    memory[: m * k] = 1
    wanted = expected(memory, 0, b, c, shape, n, n, 8, rows)
    found = memory.copy()
    kept = listed(found, 0, b, c, shape, n, n, rows=rows)
    np.testing.assert_array_equal(found, wanted)
    assert bool(kept) == (not overlap)


@pytest.mark.parametrize("form", ["listed", "not known to be rows"])
def test_any_place_of_b_and_of_rows_of_a_list(form: str, listed: Compiled) -> None:
    """Programs of one thread see what earlier ones stored to B, whichever rows a list names, and in any order."""
    compiled = listed if form == "listed" else Compiled(8, form)
    random = np.random.default_rng(5)
    for seed in range(40):
        row, pitch = N + int(random.integers(0, 40)), N + int(random.integers(0, 40))
        room = A_SIZE + 2 * (K * row + M * pitch)
        b, c = (int(random.integers(A_SIZE, room - size)) for size in (K * row, M * pitch))
        rows, memory = listed_rows(M, seed), numbers(room, seed)
        wanted = expected(memory, 0, b, c, SHAPE, row, pitch, 8, rows)
        compiled(memory, 0, b, c, SHAPE, row, pitch, int(random.integers(0, 4)), rows=rows)
        np.testing.assert_allclose(memory, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


# --- what it does not understand ---------------------------------------------------------------------


@triton.jit
def with_factors_of(
    A, B, C, iterations, limit, period, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    rows, columns = (m % period, n % period) if FORM == "wrapped" else (m, n)
    a_at, b_at = A + rows * (K * iterations) + k[None, :], B + k[:, None] * N + columns
    for _ in range(iterations):
        if FORM == "masked":
            a = tl.load(a_at, mask=(m + k[None, :]) % 3 != 0, other=1.0)
            b = tl.load(b_at, mask=(k[:, None] + n) % 3 != 0, other=1.0)
        elif FORM == "filled":
            a = tl.load(a_at, mask=m < limit, other=m * 1.0 + k[None, :])
            b = tl.load(b_at, mask=n < limit, other=k[:, None] * 1.0 + n)
        else:
            a, b = tl.load(a_at), tl.load(b_at)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_at += K
        b_at += K * N
    tl.store(C + tl.program_id(0) * (M * N) + m * N + n, total)


@pytest.mark.parametrize("name", targets())
@pytest.mark.parametrize("form", ["masked", "filled", "wrapped"])
def test_factors_that_are_packed_every_time(form: str, name: str) -> None:
    """Data masks and fill values are no bounds, and what wraps around is not where it seems to be."""
    size, iterations, limit, period, programs = 16, 3, 11, 12, 2
    random = np.random.default_rng(6)
    a, b = (random.integers(-4, 5, size * size * iterations).astype(np.float32) for _ in range(2))
    signature = {
        "A": "*fp32",
        "B": "*fp32",
        "C": "*fp32",
        "iterations": "i32",
        "limit": "i32",
        "period": "i32",
    }
    kernel = Poisoned(with_factors_of, signature, targets()[name], FORM=form, M=size, N=size, K=size)
    assert (kernel.loops.cleared_bytes == 0) == (form != "wrapped")
    c = np.zeros(programs * size * size, np.float32)
    found = kernel(programs, A=a, B=b, C=c, iterations=iterations, limit=limit, period=period)["C"]
    left, right = a.reshape(size, size * iterations), b.reshape(size * iterations, size)
    index = np.arange(size)
    along = np.arange(size * iterations) % size
    if form == "masked":
        left = np.where((index[:, None] + along) % 3 != 0, left, 1)
        right = np.where((along[:, None] + index) % 3 != 0, right, 1)
    elif form == "filled":
        left = np.where(index[:, None] < limit, left, index[:, None] + along)
        right = np.where(index < limit, right, along[:, None] + index)
    else:
        left, right = left[index % period], right[:, index % period]
    np.testing.assert_array_equal(found.reshape(programs, size, size), np.stack([left @ right] * programs))

"""Prefetching of the next program's or iteration's row: of which loads and stores, and how far on."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl
from native_functions import loops_of
from prefetched import PREFETCH, SIGNATURE, steps, text_of

from triton_porting_kit.compiler import CpuTarget


@triton.jit
def row_less_its_mean(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * 300 + i, mask=i < n, other=0.0)
    tl.store(O + tl.program_id(0) * B + i, x - tl.sum(x, 0) / n, mask=i < n)


@triton.jit
def row_of_powers(X, O, n, B: tl.constexpr):
    """The store's loop reads the powers, which are kept: only the second reduction reads the row for the last time."""
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * 300 + i, mask=i < n, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, 0))
    tl.store(O + tl.program_id(0) * B + i, powers / tl.sum(powers, 0), mask=i < n)


@triton.jit
def row_of_sums(X, O, n, B: tl.constexpr):
    """Reads the row once, but the store's loop goes over what it has made of it."""
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * 300 + i, mask=i < n, other=0.0)
    tl.store(O + tl.program_id(0) * B + i, tl.cumsum(x, 0), mask=i < n)


@triton.jit
def at_a_polynomial(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = tl.program_id(0)
    x = tl.load(X + ((p * 4 + 3) * 8 - p + tl.program_id(1)) + i)
    tl.store(O + i, x - tl.sum(x, 0))


@triton.jit
def repeated(X, O, n, B: tl.constexpr):
    """A row that is read again for each row of a tile."""
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * 300 + i)
    rows = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(O + rows[:, None] * B + i[None, :], x[None, :] - tl.sum(x, 0))


@triton.jit
def weighted(X, O, n, B: tl.constexpr):
    """Every program reads the same weights twice."""
    i = tl.arange(0, B)
    weight = tl.load(X + i)
    tl.store(O + tl.program_id(0) * B + i, weight / tl.sum(weight, 0))


@triton.jit
def at_a_square(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * tl.program_id(0) + i)
    tl.store(O + i, x - tl.sum(x, 0))


@triton.jit
def at_a_place_that_is_read(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + tl.load(O + tl.program_id(0)).to(tl.int32) + i)
    tl.store(O + i, x - tl.sum(x, 0))


@triton.jit
def every_other(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * B + 2 * i)
    tl.store(O + i, x - tl.sum(x, 0))


@triton.jit
def a_number_for_each_row(X, O, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * 4 + tl.arange(0, 4)
    scale = tl.load(X + row)
    at = row[:, None] * B + i[None, :]
    x = tl.load(X + at) * scale[:, None]
    tl.store(O + at, scale[:, None] * (x - tl.sum(x, 1)[:, None]))


@triton.jit
def a_row_beside_others(X, O, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.arange(0, 4)
    x = tl.load(X + tl.program_id(0) * B + i)
    tl.store(O + row[:, None] * B + i[None, :], (x - tl.sum(x, 0))[None, :] + row[:, None])


@triton.jit
def in_a_loop(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in range(n):
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, x - tl.sum(x, 0))


@triton.jit
def carried_along(X, O, n, B: tl.constexpr):
    """Offsets that a loop carries, and steps that are known at the launch."""
    i, place = tl.arange(0, B), 0
    for _ in range(n):
        x = tl.load(X + place + i, mask=i < n)
        tl.store(O + place + i, x - tl.sum(x, 0), mask=i < n)
        place += 300


@triton.jit
def read_in_a_loop(X, O, n, B: tl.constexpr):
    """Nothing is written in the loop; the second reduction is the last to read a row."""
    i, total = tl.arange(0, B), 0.0
    for row in range(n):
        x = tl.load(X + row * B + i)
        total += tl.max(x - tl.sum(x, 0), 0)
    tl.store(O, total)


@triton.jit
def read_once_in_a_loop(X, O, n, B: tl.constexpr):
    i, total = tl.arange(0, B), 0.0
    for row in range(n):
        total += tl.sum(tl.load(X + row * B + i), 0)
    tl.store(O, total)


@triton.jit
def in_a_while_loop(X, O, n, B: tl.constexpr):
    i, row = tl.arange(0, B), 0
    while row < n:
        x = tl.load(X + row * B + i)
        tl.store(O + row * B + i, x - tl.sum(x, 0))
        row += 1 + row // 2


@triton.jit
def elements_in_a_loop(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in range(n):
        tl.store(O + row * B + i, 2 * tl.load(X + row * B + i))


@triton.jit
def far_from_the_program_id(X, O, n, B: tl.constexpr):
    place = tl.program_id(0)
    for _ in tl.static_range(200):
        place = place * n + place
    i = tl.arange(0, B)
    x = tl.load(X + place + i)
    tl.store(O + i, x - tl.sum(x, 0))


def test_the_row_of_the_next_program() -> None:
    assert steps(text_of(row_less_its_mean)) == ["300"]
    assert steps(text_of(row_less_its_mean, target="neoverse-n1")) == ["300"]
    assert steps(text_of(at_a_polynomial)) == ["31"]
    assert steps(text_of(row_of_powers)) == ["300"]
    assert steps(text_of(row_of_sums)) == ["300"]


@pytest.mark.parametrize(
    "kernel",
    [
        weighted,
        at_a_square,
        at_a_place_that_is_read,
        every_other,
        a_number_for_each_row,
        a_row_beside_others,
        read_once_in_a_loop,
        in_a_while_loop,
        elements_in_a_loop,
        far_from_the_program_id,
        repeated,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_what_is_not_prefetched(kernel: Any) -> None:
    assert steps(text_of(kernel)) == []


def test_the_row_of_the_next_iteration() -> None:
    for kernel, step in ((in_a_loop, "256"), (carried_along, "300")):
        text = text_of(kernel)
        assert steps(text) == [step]
        assert steps(text, writes=True) == [step]
    assert steps(text_of(read_in_a_loop)) == ["256"]


def test_rows_that_are_written_next() -> None:
    assert steps(text_of(row_of_powers), writes=True) == ["256"]
    assert steps(text_of(weighted), writes=True) == ["256"]
    for kernel in (elements_in_a_loop, read_in_a_loop, in_a_while_loop):
        assert steps(text_of(kernel), writes=True) == []


def test_a_loop_over_the_rows_of_programs_prefetches_those_to_write_or_those_to_read() -> None:
    """The same store has a loop that reads the row from scratch, for arrays that overlap."""
    loops = text_of(row_less_its_mean).split("scf.for")
    assert any("rw = 1" in loop for loop in loops)
    assert any("rw = 0" in loop for loop in loops)
    assert not any("rw = 0" in loop and "rw = 1" in loop for loop in loops)


def test_nothing_that_is_written_past_the_caches_is_prefetched() -> None:
    loops = text_of(row_of_powers).split("scf.for")
    assert any("nontemporal" in loop for loop in loops)
    assert any("rw = 1" in loop for loop in loops)
    assert not any("nontemporal" in loop and "rw = 1" in loop for loop in loops)


def test_rows_that_do_not_fit_into_the_cache() -> None:
    assert steps(text_of(row_less_its_mean, B=4096)) == ["300"]
    assert steps(text_of(row_less_its_mean, B=8192)) == []


def test_portable_loops_have_no_prefetches() -> None:
    text = loops_of(row_less_its_mean, SIGNATURE, CpuTarget.portable(), B=256).text
    assert not PREFETCH.search(text)

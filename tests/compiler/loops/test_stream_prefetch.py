"""Prefetching of what an element-wise kernel reads a little further on."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl
from prefetched import steps, text_of

BYTES = 1024


@triton.jit
def doubled(X, O, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(O + i, tl.load(X + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def short_rows(X, O, n, B: tl.constexpr):
    """Rows of 64 bytes, 128 bytes apart, as the halves of a rotary embedding."""
    row, column = tl.program_id(0) * 8 + tl.arange(0, 8), tl.arange(0, 16)
    at = row[:, None] * 32 + column[None, :]
    tl.store(O + at, tl.load(X + at) + tl.load(X + at + 16))


@triton.jit
def rows_far_apart(X, O, n, B: tl.constexpr):
    at = tl.program_id(0) * 64 + tl.arange(0, 8)[:, None] * 1024 + tl.arange(0, 64)[None, :]
    tl.store(O + at, tl.load(X + at) * 2)


@triton.jit
def rows_at_a_pitch(X, O, n, B: tl.constexpr):
    at = tl.program_id(0) * 64 + tl.arange(0, 8)[:, None] * n + tl.arange(0, 64)[None, :]
    tl.store(O + at, tl.load(X + at) * 2)


@triton.jit
def rows_of_programs(X, O, n, B: tl.constexpr):
    """Each program has the next rows, an argument apart."""
    row, column = tl.program_id(0) * 8 + tl.arange(0, 8), tl.arange(0, 64)
    at = row[:, None] * n + column[None, :]
    tl.store(O + at, tl.load(X + at) * 2)


@triton.jit
def large_tiles(X, O, n, B: tl.constexpr):
    row, column = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, 256)
    at = row[:, None] * n + column[None, :]
    tl.store(O + at, tl.load(X + at) * 2)


@triton.jit
def transposed(X, O, n, B: tl.constexpr):
    row, column = tl.arange(0, 16), tl.arange(0, 16)
    at = tl.program_id(0) * 256 + row[:, None] * 16 + column[None, :]
    tl.store(O + at, tl.trans(tl.load(X + at)))


@triton.jit
def same_for_each(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + tl.program_id(0) * B + i, tl.load(X + i) * 2)


@triton.jit
def every_other(X, O, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(O + i, tl.load(X + 2 * i))


@triton.jit
def in_a_loop(X, O, n, B: tl.constexpr):
    for row in range(n):
        i = tl.program_id(0) * n * B + row * B + tl.arange(0, B)
        tl.store(O + i, tl.load(X + i) * 2)


@triton.jit
def summed(X, O, n, B: tl.constexpr):
    tl.store(O + tl.program_id(0), tl.sum(tl.load(X + tl.program_id(0) * B + tl.arange(0, B)), 0))


@triton.jit
def counted(X, O, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(O + i, tl.load(X + i))


@pytest.mark.parametrize("target", ["sapphirerapids", "cascadelake", "haswell"])
def test_the_same_number_of_bytes_ahead(target: str) -> None:
    assert steps(text_of(doubled, target)) == [str(BYTES // 4)]
    assert steps(text_of(short_rows, target)) == [str(BYTES // 4)]
    assert steps(text_of(counted, target)) == [str(BYTES // 4)]


def test_the_next_tile_where_rows_are_far_apart() -> None:
    assert steps(text_of(rows_far_apart)) == ["64"]
    assert steps(text_of(rows_at_a_pitch)) == ["64"]
    (step,) = steps(text_of(rows_of_programs))
    assert step.startswith("arith.muli")  # so many rows by their pitch


def test_on_zen_only_the_next_tile() -> None:
    assert not steps(text_of(doubled, "znver4")) + steps(text_of(short_rows, "znver4"))
    assert steps(text_of(rows_far_apart, "znver4")) == ["64"]


@pytest.mark.parametrize("pointer", ["fp16", "bf16"])
def test_elements_of_two_bytes(pointer: str) -> None:
    signature = {"X": f"*{pointer}", "O": f"*{pointer}", "n": "i32"}
    assert steps(text_of(doubled, signature=signature)) == [str(BYTES // 2)]


def test_chunks_of_a_quarter_of_a_line() -> None:
    assert steps(text_of(doubled, "neoverse-n1")) == []
    assert steps(text_of(doubled, signature={"X": "*i8", "O": "*i8", "n": "i32"})) == []


@pytest.mark.parametrize(
    "kernel",
    [
        large_tiles, transposed, same_for_each, every_other, in_a_loop, summed,
    ],
    ids=lambda kernel: kernel.__name__,
)  # fmt: skip
def test_what_is_not_prefetched(kernel: Any) -> None:
    assert steps(text_of(kernel)) == []

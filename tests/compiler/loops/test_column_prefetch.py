"""Prefetching further down some columns: of which loads, and how far down."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from prefetched import steps, text_of

from triton_porting_kit.compiler.loops.memory.column_prefetch import (
    ALONG,
    CONVERTED_ROWS,
    FAR,
    HALF,
    LONGEST,
    ROWS,
)


@triton.jit
def sums_of_columns(X, O, n, B: tl.constexpr, PITCH: tl.constexpr):
    j = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for i in range(0, n, 16):
        at = X + (i + tl.arange(0, 16))[:, None] * PITCH + j[None, :]
        total += tl.sum(tl.load(at), 0)
    tl.store(O + j, total)


@triton.jit
def product(A, W, O, pitch, n, FORM: tl.constexpr, B: tl.constexpr):
    i, j, k = tl.arange(0, 16)[:, None], tl.arange(0, 64)[None, :], tl.arange(0, 64)
    total = tl.zeros((16, 64), tl.float32)
    if FORM == "once":
        w = tl.load(W + k[:, None] * pitch + j)
        total = tl.dot(tl.load(A + i * n + k[None, :]), w.to(tl.bfloat16), total)
    else:
        for start in range(0, n, 64):
            at = start + k[:, None]
            if FORM == "columns":
                w = tl.load(W + at + j * pitch)
            elif FORM == "columns of other rows":
                w = tl.load(W + k[:, None] + (j + start) * pitch)
            elif FORM == "turned columns":
                w = tl.trans(tl.load(W + tl.trans(at) + tl.trans(j) * pitch))
            elif FORM == "turned":
                w = tl.trans(tl.load(W + (start + tl.arange(0, 64)[:, None]) * pitch + k[None, :]))
            else:
                w = tl.load(W + at * pitch + j)
            a = tl.load(A + i * n + start + k[None, :])
            total = tl.dot(a, w.to(tl.bfloat16), total)
    tl.store(O + i * 64 + j, total)


WEIGHTS = {"A": "*bf16", "W": "*i8", "O": "*fp32", "pitch": "i32", "n": "i32"}
HALVES = WEIGHTS | {"W": "*bf16"}


@pytest.mark.parametrize(("length", "pitch"), [(64, FAR // 4), (LONGEST // 4, 4096)])
def test_short_rows_that_lie_far_apart_are_fetched_ahead(length: int, pitch: int) -> None:
    assert steps(text_of(sums_of_columns, B=length, PITCH=pitch)) == [str(ROWS * pitch)]


@pytest.mark.parametrize(("length", "pitch"), [(64, FAR // 4 - 16), (LONGEST // 2, 4096)])
def test_the_hardware_fetches_other_rows(length: int, pitch: int) -> None:
    assert not steps(text_of(sums_of_columns, B=length, PITCH=pitch))


@pytest.mark.parametrize("target", ["sapphirerapids", "skylake", "znver4"])
def test_rows_that_are_converted_are_fetched_ahead(target: str) -> None:
    text = text_of(product, target, WEIGHTS, FORM="rows")
    first, *_ = steps(text)
    operands = first.removeprefix("arith.muli ").split(", ")
    assert any(f"{name} = arith.constant {CONVERTED_ROWS} : i64" in text for name in operands)


@pytest.mark.parametrize("form", ["columns", "turned columns"])
@pytest.mark.parametrize(
    ("weights", "fetched"), [("bf16", True), ("fp16", True), ("i8", False), ("fp32", False)]
)
def test_columns_of_halves_are_fetched_ahead(weights: str, fetched: bool, form: str) -> None:
    text = text_of(product, "sapphirerapids", WEIGHTS | {"W": f"*{weights}"}, FORM=form)
    assert steps(text) == [str(ALONG // HALF)] * fetched


@pytest.mark.parametrize("form", ["once", "turned", "columns of other rows"])
def test_what_the_next_iteration_does_not_go_on_with_is_not_fetched_ahead(form: str) -> None:
    assert not steps(text_of(product, "sapphirerapids", HALVES, FORM=form))


def test_rows_that_are_not_converted_are_not_fetched_ahead() -> None:
    assert not steps(text_of(product, "sapphirerapids", HALVES, FORM="rows"))

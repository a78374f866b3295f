"""Prefetching further down some columns: of which loads, and how far down."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from prefetched import PREFETCH, steps, text_of

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.memory.column_prefetch import (
    ALONG,
    CONVERTED_ROWS,
    FAR,
    GATHERED_ROWS,
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


@triton.jit
def gathered(A, W, PLACES, O, FORM: tl.constexpr, B: tl.constexpr):
    i, j, k = tl.arange(0, 16)[:, None], tl.arange(0, 64), tl.arange(0, 64)
    if FORM == "rows":
        at = tl.load(PLACES + k)[:, None] * 64 + j[None, :]
    elif FORM == "columns":
        at = tl.load(PLACES + j)[None, :] * 64 + k[:, None]
    elif FORM == "expensive rows":
        place = tl.load(PLACES + k)
        at = (place % 7 * 5 // 3 + place % 11 // 3 + place % 13 * 9)[:, None] * 64 + j[None, :]
    else:
        at = tl.load(PLACES + k[:, None] * 64 + j[None, :])
    w = tl.load(W + at).to(tl.bfloat16)
    tl.store(O + i * 64 + j[None, :], tl.dot(tl.load(A + i * 64 + k[None, :]), w))


PLACES = {"A": "*bf16", "W": "*bf16", "PLACES": "*i32", "O": "*fp32"}


def origins(text: str) -> set[str]:
    """What the addresses of prefetches are computed from, as far as operations have one result."""
    defined = dict(re.findall(r"(%\w+) = (.*)", text))
    pending, found = [name for name, _ in PREFETCH.findall(text)], set[str]()
    while pending:
        definition = defined.get(pending.pop(), "")
        if definition not in found:
            found.add(definition)
            pending += re.findall(r"%\w+", definition)
    return found


@pytest.mark.parametrize("target", ["sapphirerapids", "skylake", "znver4"])
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_gathered_rows_and_columns_fetch_those_that_are_read_next(form: str, target: str) -> None:
    found = origins(text_of(gathered, target, PLACES, FORM=form))
    distance = GATHERED_ROWS if form == "rows" else max(GATHERED_ROWS, CpuTarget.named(target).lanes)
    assert f"arith.constant {distance} : i64" in found
    assert any(text.startswith("arith.minsi ") for text in found), "it ends at the last one"
    assert "arith.constant 63 : i64" in found


@pytest.mark.parametrize("form", ["elements", "expensive rows"])
def test_elements_and_what_is_expensive_to_find_are_not_fetched_ahead(form: str) -> None:
    assert not PREFETCH.findall(text_of(gathered, "skylake", PLACES, FORM=form))

"""Reductions that look as if they could share a loop, begin from a neutral element or end early, and some that can.

How many run in one loop is counted; NumPy does one line of the kernel after the other. The numbers are whole and
small, so that sums are exact in any order.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import host, link
from poisoned import Poisoned, targets

from triton_porting_kit.compiler.loops import lower_to_loops
from triton_porting_kit.compiler.loops.reductions import reduce as reductions
from triton_porting_kit.toolchain import mlir

Array = np.ndarray[Any, Any]
B = 128


@triton.jit
def several(X, Y, O, n, FORM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1)
    y = tl.load(Y + i, mask=i < n, other=2)
    first = tl.sum(x, 0)
    second = first
    if FORM == "one after the other":
        second = tl.max(x, 0)
    elif FORM == "of its result":
        second = tl.sum(x * first, 0)
    elif FORM == "of other memory":
        second = tl.sum(y, 0)
    elif FORM == "of part of it":
        second = tl.max(tl.max(tl.reshape(x, (B // 16, 16)), 1), 0)
    elif FORM == "read again behind a store":
        tl.store(X + i, y, mask=i < n)
        second = tl.sum(tl.load(X + i, mask=i < n, other=3) + (x & 1), 0)
    elif FORM == "read again behind an atomic":
        tl.atomic_add(X + i, y, mask=i < n)
        second = tl.max(tl.load(X + i, mask=i < n, other=3) + (x & 1), 0)
    elif FORM == "read before a store":
        tl.store(X + i, y, mask=i < n)
        second = tl.max(x, 0)
    elif FORM == "with an index":
        second = tl.argmax(x, 0)
    elif FORM == "under a condition":
        if n > 3:
            second = tl.max(x, 0)
    elif FORM == "in a loop":
        for t in range(2):
            second += tl.max(x ^ t, 0)
    elif FORM == "divided":
        second = tl.max(x // y, 0)
    elif FORM == "gathered":
        second = tl.max(tl.gather(x, (i + first) % B, 0) + x, 0)
    elif FORM == "scanned":
        second = tl.max(tl.cumsum(x, 0) + x, 0)
    elif FORM == "far":
        far = x
        for step in tl.static_range(40):
            tl.store(O + 2 + step, first + step)
        second = tl.max(far, 0)
    elif FORM == "dear":
        far = x
        for step in tl.static_range(70):
            far = (far ^ step) + 1
        second = tl.max(far, 0)
    tl.store(O, first)
    tl.store(O + 1, second)


FORMS = {
    "one after the other": 2, "read before a store": 2,
    # What is not there yet, or not the same.
    "of its result": 1, "of other memory": 1, "of part of it": 1, "with an index": 1,
    "read again behind a store": 1, "read again behind an atomic": 1, "under a condition": 1, "in a loop": 1,
    # What is not computed before its turn: it could trap, is no element-wise operation, or is too far away.
    "divided": 1, "gathered": 1, "scanned": 1, "far": 1, "dear": 1,
}  # fmt: skip
"""By form: how many reductions run in the loop of the first."""


def expected(form: str, x: Array, y: Array, n: int) -> tuple[Array, list[int]]:
    """X, and the two results."""
    inside, held = np.arange(B) < n, x.copy()
    a, b = np.where(inside, x, 1), np.where(inside, y, 2)
    first = second = int(a.sum())
    if form in ("one after the other", "read before a store") or (form == "under a condition" and n > 3):
        second = a.max()
    elif form == "of its result":
        second = (a * first).sum()
    elif form == "of other memory":
        second = b.sum()
    elif form == "of part of it":
        second = a.max()
    elif form == "with an index":
        second = int(a.argmax())
    elif form == "in a loop":
        second += int(a.max() + (a ^ 1).max())
    elif form == "divided":
        second = np.trunc(a / b).max()
    elif form == "gathered":
        second = (a[np.fmod(np.arange(B) + first, B)] + a).max()
    elif form == "scanned":
        second = (a.cumsum() + a).max()
    elif form == "far":
        second = a.max()
    elif form == "dear":
        for step in range(70):
            a = (a ^ step) + 1
        second = a.max()
    if form in ("read again behind a store", "read before a store"):
        held[inside] = y[inside]
    if form == "read again behind an atomic":
        held[inside] += y[inside]
    if form.startswith("read again"):
        again = np.where(inside, held, 3) + (a & 1)
        second = again.sum() if form.endswith("store") else again.max()
    return held, [first, int(second)]


def noted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many reductions run in each loop that is lowered from now on."""
    found: list[int] = []
    companions = reductions.companions

    def counted(*arguments: Any) -> Any:
        operations = companions(*arguments)
        found.append(len(operations))
        return operations

    monkeypatch.setattr(reductions, "companions", counted)
    return found


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", FORMS)
def test_which_reductions_share_a_loop(monkeypatch: pytest.MonkeyPatch, form: str, target: str) -> None:
    together = noted(monkeypatch)
    signature = {"X": "*i32", "Y": "*i32", "O": "*i32", "n": "i32"}
    kernel = Poisoned(several, signature, targets()[target], FORM=form, B=B)
    assert together[0] == FORMS[form]
    random = np.random.default_rng(8)
    for n in (0, 1, 17, 64, 127, 128):
        x, y = random.integers(0, 10, B).astype(np.int32), random.integers(1, 5, B).astype(np.int32)
        found = kernel(X=x, Y=y, O=np.zeros(64, np.int32), n=n)
        held, results = expected(form, x, y, n)
        assert found["O"][:2].tolist() == results, n
        np.testing.assert_array_equal(found["X"], held)


@triton.jit
def many(X, O, B: tl.constexpr):
    x = tl.load(X + tl.arange(0, B))
    total, largest, least, odd = tl.sum(x, 0), tl.max(x, 0), tl.min(x, 0), tl.xor_sum(x, 0)
    squares, triple = tl.sum(x * x, 0), tl.max(x * 3, 0)
    tl.store(O, total)
    tl.store(O + 1, largest)
    tl.store(O + 2, least)
    tl.store(O + 3, odd)
    tl.store(O + 4, squares)
    tl.store(O + 5, triple)


def test_only_so_many_share_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their partial results must stay in registers."""
    together = noted(monkeypatch)
    kernel = Poisoned(many, {"X": "*i32", "O": "*i32"}, B=B)
    assert together == [4, 2]
    x = np.random.default_rng(9).integers(-20, 20, B).astype(np.int32)
    found = kernel(X=x, O=np.zeros(6, np.int32))["O"]
    wanted = [x.sum(), x.max(), x.min(), np.bitwise_xor.reduce(x), (x * x).sum(), (x * 3).max()]
    np.testing.assert_array_equal(found, wanted)


# --- combinations ------------------------------------------------------------------------------------


@triton.jit
def _larger_by_division(a, b):
    """Of numbers that are not negative. Nothing is divided by zero."""
    result = a
    if b != 0:
        result = tl.where(a // b == 0, b, a)
    return result


@triton.jit
def _larger_by_a_loop(a, b):
    result = a
    while result < b:
        result += b - result
    return result


@triton.jit
def _larger_or_other(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def _sum_and_one(a, b):
    """Joins a sum of numbers, each of which one was added to."""
    return a + b + 1


@triton.jit
def _any_of_both(a, b):
    return a


@triton.jit
def combined(X, O, n, outside, NAME: tl.constexpr, ROWS: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, B)[None, :]
    x = tl.load(X + i * B + j, mask=j < n, other=outside)
    if NAME == "division":
        result = tl.reduce(x, 1, _larger_by_division)
    elif NAME == "loop":
        result = tl.reduce(x, 1, _larger_by_a_loop)
    elif NAME == "choice":
        result = tl.reduce(x, 1, _larger_or_other)
    elif NAME == "constant":
        result = tl.reduce(x, 1, _sum_and_one)
    else:
        result = tl.reduce(x, 1, _any_of_both)
    tl.store(O + tl.arange(0, ROWS), result)


COMBINATIONS = ["division", "loop", "choice", "constant", "any"]
"""Functions that have no neutral element, or none that is known."""


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_without_a_neutral_element(name: str, target: str) -> None:
    signature = {"X": "*i32", "O": "*i32", "n": "i32", "outside": "i32"}
    rows = 4
    kernel = Poisoned(combined, signature, targets()[target], NAME=name, ROWS=rows, B=B)
    random = np.random.default_rng(10)
    for n in (0, 1, 16, 50, B - 1, B):
        for outside in (0, 3, 1000):
            x = random.integers(0, 900, (rows, B)).astype(np.int32)
            found = kernel(X=x, O=np.zeros(rows, np.int32), n=n, outside=outside)["O"]
            x = np.where(np.arange(B) < n, x, outside)
            if name == "any":
                assert all(value in row for value, row in zip(found, x, strict=True))
            else:
                np.testing.assert_array_equal(found, x.sum(1) + B - 1 if name == "constant" else x.max(1))


def test_a_neutral_element_is_that_of_what_is_yielded() -> None:
    """Of an operation whose result nobody uses, none is taken."""
    text = """module attributes {tpk.structured = 1 : i32} {
      func.func public @k(%x: !llvm.ptr {tpk.pointee = i32}, %o: !llvm.ptr {tpk.pointee = i32}) attributes {tpk.kernel} {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %tile = "tpk.load"(%x, %zero, %one)
          {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64) -> tensor<512xi32>
        %any = "tpk.reduce"(%tile) ({
        ^bb0(%a: i32, %b: i32):
          %sum = arith.addi %a, %b : i32
          "tpk.yield"(%a) : (i32) -> ()
        }) {axis = 0 : i32} : (tensor<512xi32>) -> i32
        "tpk.store"(%o, %zero, %any)
          {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i32) -> ()
        return
      } }"""
    loops = lower_to_loops(mlir.parse_module(text), host())
    types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
    code = link(loops.text, ["k"])
    x, out, scratch = np.full(512, 5, np.int32), np.zeros(1, np.int32), np.zeros(1024, np.uint8)
    block = np.array([x.ctypes.data, out.ctypes.data], np.uint64)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(code.addresses["k"])
    assert loops.scratch_bytes <= scratch.nbytes
    assert function(block.ctypes.data, scratch.ctypes.data, 0, 1, 1, 1, 1) == 0
    assert out[0] == 5


# --- rows that end in padding --------------------------------------------------------------------------


@triton.jit
def padded(X, Y, O, E, n, outside, FORM: tl.constexpr, ROWS: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, B)[None, :]
    fill = outside + (i if FORM == "by row" else j if FORM == "by column" else 0) * 1.0
    mask = j < n
    if FORM == "some":
        mask = mask & (tl.load(Y + i * B + j) > 0)
    x = tl.load(X + i * B + j, mask=mask, other=fill)
    if FORM == "with an index":
        x += j
    if FORM == "from a column on":
        x = tl.where(j < B - 3, x, 7.0)
    if FORM == "two bounds":
        x += tl.load(Y + i * B + j, mask=j < n + 20, other=outside)
    if FORM == "from the right":
        x = tl.load(X + i * B + j, mask=j >= n, other=fill)
    if FORM == "dear":
        x = tl.sqrt(x)
    if FORM == "largest":
        result = tl.max(x, 1)
    elif FORM == "columns":
        result = tl.sum(tl.trans(x), 0)
    else:
        result = tl.sum(x, 1)
    tl.store(O + tl.arange(0, ROWS), result)
    if FORM == "dear":
        tl.store(E + i * B + j, x)


PADDED = [
    "plain", "by row", "by column", "some", "with an index", "from a column on", "two bounds", "from the right", "dear",
    "largest", "columns",
]  # fmt: skip


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", PADDED)
def test_padding_counts_as_often_as_it_is_there(form: str, target: str) -> None:
    """A sum of ones goes on to the end, however many of them there are; one of zeros may end with the first."""
    rows, size = 4, 256
    signature = dict.fromkeys("XYOE", "*fp64") | {"n": "i32", "outside": "fp64"}
    kernel = Poisoned(padded, signature, targets()[target], FORM=form, ROWS=rows, B=size)
    random = np.random.default_rng(11)
    i, j = np.arange(rows)[:, None], np.arange(size)[None, :]
    for n in (0, 1, 16, 100, size - 20, size - 1, size):
        for outside in (0.0, 1.0, -4.0, np.inf, -np.inf, np.nan):
            x, y = (random.integers(-2, 9, (rows, size)).astype(np.float64) for _ in range(2))
            fill = outside + (i if form == "by row" else j if form == "by column" else np.zeros(1))
            mask = (j < n) & (y > 0) if form == "some" else j >= n if form == "from the right" else j < n
            row = np.where(mask, x, fill)
            if form == "with an index":
                row = row + j
            if form == "from a column on":
                row = np.where(j < size - 3, row, 7)
            if form == "two bounds":
                row = row + np.where(j < n + 20, y, outside)
            if form == "dear":
                with np.errstate(invalid="ignore"):
                    row = np.sqrt(row)
            arrays = {"X": x, "Y": y, "O": np.zeros(rows), "E": np.zeros((rows, size))}
            found = kernel(n=n, outside=outside, **arrays)
            wanted = np.fmax.reduce(row, 1) if form == "largest" else row.sum(1)
            np.testing.assert_allclose(found["O"], wanted, rtol=1e-13, err_msg=f"{n} {outside}")
            if form == "dear":
                np.testing.assert_allclose(found["E"], row.ravel(), rtol=1e-15)

"""Dimensions of two elements: exchanges of vectors and lanes, against NumPy, and what is left as a loop or in scratch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import loops_of
from poisoned import Poisoned, targets

Array = np.ndarray[Any, Any]
NUMPY = {"*fp32": np.float32, "*fp64": np.float64, "*i32": np.int32, "*i64": np.int64, "*i8": np.int8}
SIZES = (4, 8, 16, 64, 256)


@triton.jit
def network(X, Y, O, n, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i, mask=i < n, other=0)
    if FORM == "sort":
        x = tl.sort(x)
    elif FORM == "sort down":
        x = tl.sort(x, descending=True)
    elif FORM == "rows":
        x = tl.ravel(tl.sort(tl.reshape(x, (2, N // 2)), 1))
    elif FORM == "sort, flip and sort":
        x = tl.sort(x) + tl.flip(tl.sort(x * 2), 0)
    elif FORM == "flip what is loaded":
        x = tl.flip(x, 0)
    elif FORM == "flip what is broadcast":
        # Both operands of the exclusive or are broadcasts.
        two = tl.arange(0, 2)
        h = tl.flip(tl.broadcast_to(tl.load(X + two, mask=two < n, other=0)[:, None], (2, N)), 0)
        x += tl.sum(tl.where(two[:, None] == 0, h, 0), 0)
    elif FORM == "exclusive or of pairs":
        # The same reduction, for something else as well.
        h = tl.reshape(x, (N // 2, 2))
        pair = tl.xor_sum(h, 1, keep_dims=True)
        x = tl.ravel(tl.reshape((h ^ pair) + pair, (1, N)))
    elif FORM == "read before it is written":
        h = tl.sort(x)
        tl.store(X + i, x + 1, mask=i < n)
        x = h + x
    elif FORM == "in a loop":
        for _step in range(3):
            x = tl.sort(x) + tl.flip(x, 0)
    elif FORM == "flip in a branch":
        h = tl.trans(tl.reshape(x, (N // 2, 2)))
        if n > 0:
            h = tl.flip(h, 0)
        x = tl.ravel(h)
    elif FORM == "largest of each pair":
        # Before the stores, and used behind them.
        h = tl.max(tl.reshape(x, (N // 4, 2, 2)), 1)
        tl.store(X + i, x + 1, mask=i < n)
        x = tl.ravel(tl.broadcast_to(tl.reshape(h, (N // 4, 1, 2)), (N // 4, 2, 2)))
    tl.store(O + i, x)


def expected(form: str, x: Array) -> Array:
    """The result for one row."""
    if form == "sort":
        return np.sort(x)
    if form == "sort down":
        return np.sort(x)[::-1]
    if form == "rows":
        return np.sort(x.reshape(2, -1), 1).ravel()
    if form == "sort, flip and sort":
        return np.sort(x) + np.sort(x * 2)[::-1]
    if form == "flip what is loaded":
        return x[::-1]
    if form == "flip what is broadcast":
        return x + x[1]
    if form == "exclusive or of pairs":
        pairs = x.reshape(-1, 2)
        return (pairs[:, ::-1] + (pairs[:, :1] ^ pairs[:, 1:])).ravel()
    if form == "read before it is written":
        return np.sort(x) + x
    if form == "in a loop":
        for _ in range(3):
            x = np.sort(x) + x[::-1]
        return x
    if form == "flip in a branch":
        return x.reshape(-1, 2).T[::-1].ravel()
    assert form == "largest of each pair"
    return np.repeat(x.reshape(-1, 2, 2).max(1, keepdims=True), 2, 1).ravel()


FORMS = ("sort", "sort down", "rows", "sort, flip and sort", "flip what is loaded", "flip what is broadcast",
         "exclusive or of pairs", "read before it is written", "in a loop", "flip in a branch",
         "largest of each pair")  # fmt: skip


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", NUMPY)
def test_networks(form: str, kind: str, target: str) -> None:
    if "exclusive or" in form and kind.startswith("*fp"):
        kind = "*i32"
    random = np.random.default_rng(3)
    for size in SIZES if kind == "*fp32" or "exclusive or" in form else (64,):
        kernel = Poisoned(
            network,
            {"X": kind, "Y": kind, "O": kind, "n": "i32"},
            targets()[target],
            FORM=form,
            N=size,
        )
        for n in (size, size - 3):
            x = random.integers(-7, 8, size).astype(NUMPY[kind])
            found = kernel(X=x[:n].copy(), Y=np.zeros(1, x.dtype), O=np.zeros(size, x.dtype), n=n)
            whole = np.where(np.arange(size) < n, x, 0).astype(x.dtype)
            np.testing.assert_array_equal(found["O"], expected(form, whole), err_msg=f"{size} {n}")


@triton.jit
def largest(X, O, N: tl.constexpr, K: tl.constexpr):
    tl.store(O + tl.arange(0, K), tl.topk(tl.load(X + tl.arange(0, N)), K))


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("kept", [2, 4, 16, 32])
def test_the_largest(kept: int, target: str) -> None:
    kernel = Poisoned(largest, {"X": "*fp32", "O": "*fp32"}, targets()[target], N=128, K=kept)
    x = np.random.default_rng(4).standard_normal(128).astype(np.float32)
    x[[3, 77]] = np.inf, -np.inf
    found = kernel(X=x, O=np.zeros(kept, np.float32))["O"]
    np.testing.assert_array_equal(found, np.sort(x)[::-1][:kept])


@triton.jit
def sorted_row(X, O, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(O + i, tl.sort(tl.load(X + i)))


def test_a_sort_takes_whole_vectors_and_keeps_little() -> None:
    signature = {"X": "*fp32", "O": "*fp32"}
    target = targets()["host"]
    text = loops_of(sorted_row, signature, target, N=256).text
    assert "vector<2x" not in text
    lanes = target.lanes
    near = len(re.findall("vector.shuffle", text))
    bits, levels = lanes.bit_length() - 1, 8
    # Of the steps of a sorting network, those at a distance below the lanes are within a vector; hardly one is repeated.
    steps = sum(min(stage, bits) for stage in range(1, levels + 1))
    assert steps <= near <= 1.1 * steps
    large = loops_of(sorted_row, signature, target, N=1 << 18)
    assert large.scratch_bytes <= 6 * 4 << 18

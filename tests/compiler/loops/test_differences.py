"""Exponentials of differences: where nothing above 0 can occur, they need no power of two above 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import loops_of
from poisoned import Poisoned, targets
from running import KINDS, ulp_distance

from triton_porting_kit.compiler import CpuTarget

Array = np.ndarray[Any, Any]
SIZE = 16
HIGHEST = "0x42B20000"
"""89, from which on exponentials are infinite."""


@triton.jit
def exponentials(A, bound, OUT, FORM: tl.constexpr, BINARY: tl.constexpr, N: tl.constexpr):
    n = tl.arange(0, N)
    places = n[:, None] * N + n[None, :]
    a = tl.load(A + places)
    if FORM == "rows":
        x = a - tl.max(a, axis=1)[:, None]
    elif FORM == "columns":
        x = a - tl.max(a, axis=0)[None, :]
    elif FORM == "rows or more":
        x = a - tl.maximum(bound, tl.max(a, axis=1))[:, None]
    elif FORM == "every element":
        x = a - tl.maximum(a, bound)
    elif FORM == "other axis":
        x = a - tl.max(a, axis=0)[:, None]
    elif FORM == "smallest":
        x = a - tl.min(a, axis=1)[:, None]
    elif FORM == "reverse":
        x = tl.max(a, axis=1)[:, None] - a
    elif FORM == "product":
        scaled = a * 0.1
        x = scaled - tl.max(scaled, axis=1)[:, None]
    else:
        x = a - bound
    tl.store(OUT + places, tl.exp2(x) if BINARY else tl.exp(x))


SIGNATURE = {"A": "*fp32", "bound": "fp32", "OUT": "*fp32"}
BELOW = ("rows", "columns", "rows or more", "every element")
OTHERS = ("other axis", "smallest", "reverse", "product", "bound")


def subtracted(form: str, a: Array, bound: np.float32) -> Array:
    if form == "rows":
        return a.max(axis=1)[:, None]
    if form == "columns":
        return a.max(axis=0)[None, :]
    if form == "rows or more":
        return np.maximum(bound, a.max(axis=1))[:, None]
    if form == "every element":
        return np.maximum(bound, a)
    if form == "other axis":
        return a.max(axis=0)[:, None]
    return a.min(axis=1)[:, None] if form == "smallest" else np.full((1, 1), bound)


@pytest.mark.parametrize("binary", [False, True], ids=["exp", "exp2"])
@pytest.mark.parametrize("form", [form for form in (*BELOW, *OTHERS) if form != "product"])
@pytest.mark.parametrize("name", targets())
def test_results_are_within_a_unit(name: str, form: str, binary: bool) -> None:
    kernel = Poisoned(exponentials, SIGNATURE, targets()[name], FORM=form, BINARY=binary, N=SIZE)
    random = np.random.default_rng(5)
    a = random.uniform(-90, 90, (SIZE, SIZE)).astype(np.float32)
    a[3, 4], a[5, 6], a[7] = -np.inf, np.nan, -np.inf
    bound = np.float32(20)
    out = kernel(A=a.ravel(), bound=bound, OUT=np.zeros(SIZE * SIZE, np.float32))["OUT"].reshape(SIZE, SIZE)
    quiet = np.where(np.isnan(a), np.float32(-np.inf), a)
    if form == "smallest":
        quiet = np.where(np.isnan(a), np.float32(np.inf), a)
    with np.errstate(all="ignore"):
        if form == "reverse":
            x = quiet.max(axis=1)[:, None] - a
        else:
            x = a - subtracted(form, quiet, bound)
        exact = (np.exp2 if binary else np.exp)(x.astype(np.float64))
    assert ulp_distance(out, exact, KINDS["fp32"]).max() <= 1.0
    assert np.isnan(out[5, 6])


@pytest.mark.parametrize("target", ["haswell", "znver3"])
@pytest.mark.parametrize("form", [*BELOW, *OTHERS])
def test_only_differences_from_a_maximum_leave_out_the_upper_limit(form: str, target: str) -> None:
    text = loops_of(exponentials, SIGNATURE, CpuTarget.named(target), FORM=form, BINARY=False, N=SIZE).text
    assert (HIGHEST not in text) == (form in BELOW)

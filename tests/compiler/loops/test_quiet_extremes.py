"""The largest and smallest numbers of rows in which some elements are NaN: in results of arithmetic, by an instruction
that would keep a signalling NaN, and in what is loaded, where a signalling NaN may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import host, loops_of
from poisoned import Poisoned, targets

Array = np.ndarray[Any, Any]
ROWS = 32


@triton.jit
def extremes(A, limit, MOST, LEAST, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(A + m[:, None] * N + n[None, :])
    if FORM == "arithmetic":
        a = a * 2.0
    elif FORM == "masked arithmetic":
        a = tl.where(n[None, :] < limit, a * 2.0, -float("inf"))
    elif FORM == "masked":
        a = tl.where(n[None, :] < limit, a, -float("inf"))
    tl.store(MOST + m, tl.max(a, axis=1))
    tl.store(LEAST + m, tl.min(a, axis=1))


SIGNATURE = {"A": "*fp32", "limit": "i32", "MOST": "*fp32", "LEAST": "*fp32"}


def rows(columns: int, *, signalling: bool) -> Array:
    """Rows of numbers, infinities and zeros, with more and more NaN; the last have nothing else."""
    random = np.random.default_rng(columns)
    a = random.standard_normal((ROWS, columns)).astype(np.float32)
    a[random.random(a.shape) < 0.05] = np.inf
    a[random.random(a.shape) < 0.1] = -np.inf
    a[random.random(a.shape) < 0.1] = 0
    bits = a.view(np.uint32)
    share = np.linspace(0, 1.2, ROWS)[:, None]
    nan = np.where(random.random(a.shape) < 0.5, 0x7FA00001 if signalling else 0x7FC00001, 0xFFC00000)
    return np.where(random.random(a.shape) < share, nan, bits).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("columns", [1, 2, 4, 8, 16, 32, 64, 256])
@pytest.mark.parametrize("form", ["arithmetic", "masked arithmetic", "loaded", "masked"])
@pytest.mark.parametrize("name", targets())
def test_a_number_is_taken_where_the_other_is_nan(name: str, form: str, columns: int) -> None:
    kernel = Poisoned(extremes, SIGNATURE, targets()[name], FORM=form, M=ROWS, N=columns)
    a, limit = rows(columns, signalling="arithmetic" not in form), max(1, columns - 3)
    found = kernel(
        A=a.ravel(), limit=limit, MOST=np.zeros(ROWS, np.float32), LEAST=np.zeros(ROWS, np.float32)
    )
    a = 2 * a if "arithmetic" in form else a.copy()
    if "masked" in form:
        a[:, limit:] = -np.inf
    quiet = np.where(np.isnan(a), np.float32(np.nan), a)
    np.testing.assert_array_equal(found["MOST"], np.fmax.reduce(quiet, axis=1))
    np.testing.assert_array_equal(found["LEAST"], np.fmin.reduce(quiet, axis=1))


@pytest.mark.skipif(not host().has_range, reason="needs AVX-512")
def test_only_results_of_arithmetic_are_combined_by_one_instruction() -> None:
    shape = {"M": ROWS, "N": 64}
    for form in ("arithmetic", "masked arithmetic", "loaded", "masked"):
        loops = loops_of(extremes, SIGNATURE, host(), FORM=form, **shape)
        assert ("range.ps" in loops.text) == ("arithmetic" in form)

"""Products of small tiles: read in place where they are loaded whole, and prefetched for the next program."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import loops_of
from poisoned import Poisoned, targets

SIGNATURE = {"A": "*fp32", "B": "*fp32", "C": "*fp32", "n": "i32"}


@triton.jit
def products(A, B, C, n, FORM: tl.constexpr, S: tl.constexpr):
    rows, cols = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    at = tl.program_id(0) * S * S + rows * S + cols
    if FORM == "turned":
        b = tl.load(B + tl.program_id(0) * S * S + cols * S + rows)
    elif FORM == "masked":
        b = tl.load(B + at, mask=rows < n, other=0.0)
    else:
        b = tl.load(B + at)
    a = tl.load(A + at)
    if FORM == "written behind":
        c = tl.dot(a, b, input_precision="ieee")
        tl.store(A + at, c)
        c = c + tl.dot(a, b, input_precision="ieee")
    elif FORM == "written before":
        tl.store(A + at, b)
        c = tl.dot(a, b, input_precision="ieee")
    else:
        c = tl.dot(a, b, input_precision="ieee")
    tl.store(C + at, c)


PREFETCHED = {"plain": 2, "turned": 1, "masked": 1, "written behind": 0, "written before": 0}
"""How many operands are prefetched at least; none is said of what is written."""


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("form", PREFETCHED)
def test_products_of_tiles_in_place(form: str, target: str) -> None:
    size, programs = 16, 3
    kernel = Poisoned(products, SIGNATURE, targets()[target], FORM=form, S=size)
    random = np.random.default_rng(5)
    a, b = (random.integers(-4, 5, (programs, size, size)).astype(np.float32) for _ in range(2))
    n = 9 if form == "masked" else size
    found = kernel(programs, A=a.copy(), B=b, C=np.zeros_like(a), n=n)
    right = b.transpose(0, 2, 1) if form == "turned" else b * (np.arange(size)[:, None] < n)
    expected = a @ right
    if form == "written behind":
        np.testing.assert_array_equal(found["A"].reshape(a.shape), expected)
        expected = 2 * expected
    np.testing.assert_array_equal(found["C"].reshape(a.shape), expected)


@pytest.mark.parametrize("form", PREFETCHED)
def test_what_is_prefetched(form: str) -> None:
    text = loops_of(products, SIGNATURE, targets()["host"], FORM=form, S=32).text
    assert text.count("llvm.intr.prefetch") >= PREFETCHED[form]
    # Of both operands in place, nothing is copied to scratch before the product.
    if form == "plain":
        before = text.partition("llvm.intr.prefetch")[2].partition("math.fma")[0]
        assert "llvm.store" not in before


def test_large_tiles_are_packed() -> None:
    text = loops_of(products, SIGNATURE, targets()["host"], FORM="plain", S=256).text
    assert "llvm.intr.prefetch" not in text

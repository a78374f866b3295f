"""Several products in the same nested loops, whose factors all wait for later iterations of all loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from poisoned import Poisoned, targets

M, N, K = 16, 32, 16


@triton.jit
def two_products(
    A, B, C, O, P, outer, inner, one, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, THREE: tl.constexpr
):
    """A times B, its transpose, and doubled A times C, none of which is read in place."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    turned = tl.zeros((N, M), tl.float32)
    other = tl.zeros((M, N), tl.float32)
    for i in range(outer):
        for j in range(inner):
            part = i * inner + j
            a = tl.load(A + (part * M + m) * K + k[None, :]) * one
            b = tl.load(B + (part * K + k[:, None]) * N + n)
            c = tl.load(C + (part * K + k[:, None]) * N + n)
            total = tl.dot(a, b, total, input_precision="ieee")
            turned = tl.dot(tl.trans(b), tl.trans(a), turned, input_precision="ieee")
            if THREE:
                other = tl.dot(a * 2, c, other, input_precision="ieee")
    tl.store(O + m * N + n, total + other)
    tl.store(P + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], turned)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (2, 3), (5, 2), (0, 2), (2, 0), (7, 5)])
def test_each_product_has_its_own_sums(outer: int, inner: int, three: bool, target: str) -> None:
    random = np.random.default_rng(3)
    parts = outer * inner
    a, b, c = (
        random.integers(-3, 4, (max(parts, 1), *size)).astype(np.float32) for size in ((M, K), (K, N), (K, N))
    )
    signature: dict[str, str] = dict.fromkeys("ABCOP", "*fp32") | {
        "outer": "i32",
        "inner": "i32",
        "one": "fp32",
    }
    kernel = Poisoned(two_products, signature, targets()[target], M=M, N=N, K=K, THREE=three)
    arguments: dict[str, Any] = {"A": a.ravel(), "B": b.ravel(), "C": c.ravel()}
    arguments |= {name: np.zeros(M * N, np.float32) for name in "OP"}
    found = kernel(**arguments, outer=outer, inner=inner, one=1.0)
    total = np.einsum("pmk,pkn->mn", a[:parts], b[:parts])
    other = 2 * np.einsum("pmk,pkn->mn", a[:parts], c[:parts]) * three
    np.testing.assert_array_equal(found["O"].reshape(M, N), total + other)
    np.testing.assert_array_equal(found["P"].reshape(N, M), total.T)

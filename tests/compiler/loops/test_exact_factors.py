"""Right factors of 8 bits, which are packed as bf16 without rounding: every number of each type comes through a product."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import host
from poisoned import Poisoned, targets

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.compiler import CpuTarget

K, N = 32, 64
FLOATS = {"fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2"}


@triton.jit
def product(X, W, O, K: tl.constexpr, N: tl.constexpr, ACROSS: tl.constexpr):
    m, k, n = tl.arange(0, K)[:, None], tl.arange(0, K), tl.arange(0, N)
    x = tl.load(X + m * K + k[None, :])
    w = tl.load(W + n[None, :] * K + k[:, None]) if ACROSS else tl.load(W + k[:, None] * N + n[None, :])
    tl.store(O + m * N + n[None, :], tl.dot(x, w.to(tl.bfloat16)))


def kinds() -> dict[str, CpuTarget]:
    """The host's loops, without tables of bytes, and those of AVX512-BF16 on a CPU that multiplies pairs in one cycle."""
    found = dict(targets())
    if host().lookup_bytes:
        found["no tables"] = host().with_features("-avx512vbmi")
    without = host().with_features("-amx-tile")
    if without.rounds_to_bf16:
        found["pairs"] = dataclasses.replace(without, cpu="znver4")
    return found


def values(kind: str) -> Any:
    """The numbers of all bytes, as f64; NaN and infinity become 0, and so do their bytes."""
    patterns, numbers = every(kind)
    finite = np.isfinite(numbers)
    return np.where(finite, patterns, 0).astype(np.uint8), np.where(finite, numbers, 0.0)


def every(kind: str) -> Any:
    """All bytes, and their numbers as f64."""
    patterns = np.arange(256, dtype=np.uint8)
    if kind in FLOATS:
        form = OF_MLIR[FLOATS[kind]].form
        assert form is not None
        numbers = np.array([form.value(int(pattern)) for pattern in patterns])
    else:
        numbers = patterns.view(np.int8 if kind == "i8" else np.uint8).astype(np.float64)
    return patterns, numbers


@pytest.mark.parametrize("target", kinds())
@pytest.mark.parametrize("across", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("kind", ["i8", "u8", *FLOATS])
def test_every_number_comes_through(kind: str, across: bool, target: str) -> None:
    signature = {"X": "*bf16", "W": f"*{kind}", "O": "*fp32"}
    kernel = Poisoned(product, signature, kinds()[target], K=K, N=N, ACROSS=across)
    patterns, numbers = values(kind)
    order = np.random.default_rng(3).permutation(np.arange(K * N) % 256).reshape(K, N)
    x = np.eye(K, dtype=np.float32).view(np.uint32) >> 16
    w = patterns[order.T if across else order]
    found = kernel(X=x.astype(np.uint16).ravel(), W=w.ravel(), O=np.full(K * N, 9.0, np.float32))["O"]
    np.testing.assert_array_equal(found.reshape(K, N), numbers[order])


@pytest.mark.parametrize("target", kinds())
@pytest.mark.parametrize("across", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("kind", FLOATS)
def test_special_numbers_come_through(kind: str, across: bool, target: str) -> None:
    """Each infinity and NaN, in a column of its own, in the diagonal of zeros."""
    signature = {"X": "*bf16", "W": f"*{kind}", "O": "*fp32"}
    kernel = Poisoned(product, signature, kinds()[target], K=K, N=N, ACROSS=across)
    patterns, numbers = every(kind)
    special = np.flatnonzero(~np.isfinite(numbers))
    w = np.zeros((K, N), np.uint8)
    w[range(special.size), range(special.size)] = patterns[special]
    x = np.eye(K, dtype=np.float32).view(np.uint32) >> 16
    arrays = {"X": x.astype(np.uint16).ravel(), "W": (w.T if across else w).ravel()}
    found = kernel(**arrays, O=np.full(K * N, 9.0, np.float32))["O"].reshape(K, N)
    np.testing.assert_array_equal(found.diagonal()[: special.size], numbers[special])
    assert not found[:, special.size :].any()


@triton.jit
def products_of_computed(
    X, W, O, S, K: tl.constexpr, N: tl.constexpr, ACROSS: tl.constexpr, AGAIN: tl.constexpr
):
    m, k, n = tl.arange(0, K)[:, None], tl.arange(0, K), tl.arange(0, N)
    x = tl.load(X + m * K + k[None, :])
    w = tl.load(W + n[None, :] * K + k[:, None]) if ACROSS else tl.load(W + k[:, None] * N + n[None, :])
    w = (tl.sqrt(w.to(tl.float32)) * tl.sqrt(w.to(tl.float32) + 1)).to(tl.int8).to(tl.bfloat16)
    tl.store(O + m * N + n[None, :], tl.dot(x, w))
    again = tl.dot(x, w) if AGAIN == "product" else w.to(tl.float32)
    tl.store(S + m * N + n[None, :], again)


@pytest.mark.parametrize("target", kinds())
@pytest.mark.parametrize("across", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("again", ["product", "store"])
def test_what_is_expensive_is_kept_for_later_uses(again: str, across: bool, target: str) -> None:
    signature = {"X": "*bf16", "W": "*i8", "O": "*fp32", "S": "*fp32"}
    kernel = Poisoned(products_of_computed, signature, kinds()[target], K=K, N=N, ACROSS=across, AGAIN=again)
    w = np.random.default_rng(4).integers(0, 100, (K, N)).astype(np.int8)
    x = np.eye(K, dtype=np.float32).view(np.uint32) >> 16
    zeros = np.zeros(K * N, np.float32)
    found = kernel(X=x.astype(np.uint16).ravel(), W=(w.T if across else w).ravel(), O=zeros, S=zeros)
    wide = w.astype(np.float32)
    expected = (np.sqrt(wide) * np.sqrt(wide + 1)).astype(np.int8)
    for name in ("O", "S"):
        np.testing.assert_array_equal(found[name].reshape(K, N), expected, err_msg=name)


@triton.jit
def every_other_row(X, W, O, K: tl.constexpr, N: tl.constexpr):
    for _ in range(2):  # where a mask is computed for each row
        m, k, n = tl.arange(0, K)[:, None], tl.arange(0, K), tl.arange(0, N)
        x = tl.load(X + m * K + k[None, :])
        w = tl.where((k % 2 == 0)[:, None], tl.load(W + n[None, :] + tl.full((K, 1), 0, tl.int32)), 0.0)
        tl.store(O + m * N + n[None, :], tl.dot(x, w.to(tl.bfloat16)))


@pytest.mark.parametrize("target", kinds())
def test_rows_that_are_rounded_zeros(target: str) -> None:
    """LLVM finds out that a row is zero when types are legal already. It aborted then."""
    signature = {"X": "*bf16", "W": "*fp32", "O": "*fp32"}
    kernel = Poisoned(every_other_row, signature, kinds()[target], K=K, N=16)
    w = np.arange(16, dtype=np.float32) - 5
    x = np.eye(K, dtype=np.float32).view(np.uint32) >> 16
    found = kernel(X=x.astype(np.uint16).ravel(), W=w, O=np.full(K * 16, 9.0, np.float32))["O"]
    np.testing.assert_array_equal(found.reshape(K, 16), np.where(np.arange(K)[:, None] % 2 == 0, w, 0.0))

"""Branches that only choose elements become selections, others are left, and kernels compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.driver import DeviceArray


@triton.jit
def without_label(X, OUT, label, N: tl.constexpr):
    """The sum of a softmax without the label, which is in one of many programs."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.exp(tl.load(X + i))
    if (label >= tl.program_id(0) * N) & (label < (tl.program_id(0) + 1) * N):
        x = tl.where(i == label, 0.0, x)
    tl.store(OUT + tl.program_id(0), tl.sum(x))


@triton.jit
def both_sides(X, OUT, label, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(X + i), tl.load(X + N + i)
    if label > 3:
        x, y = tl.where(i > label, y, x), x
    else:
        x, y = y, tl.where(i < label, 1.0, y)
    tl.store(OUT + i, x - 2 * y)


@triton.jit
def of_work(X, OUT, label, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    if label > 3:
        x = tl.exp(x)
    tl.store(OUT + i, x)


@triton.jit
def of_accesses(X, OUT, label, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i)
    if label > 3:
        x = tl.load(X + label + i)
    tl.store(OUT + i, x)


@triton.jit
def of_indices(X, OUT, label, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i
    if label > 3:
        at = tl.where(i > label, 0, i)
    tl.store(OUT + i, tl.load(X + at))


def structured(kernel: Any) -> str:
    return str(import_ttir(ttir_text(kernel, {"X": "*fp32", "OUT": "*fp32", "label": "i32"}, N=64)))


@pytest.mark.parametrize(("kernel", "selections"), [(without_label, 2), (both_sides, 4)])
def test_branches_that_only_choose(kernel: Any, selections: int) -> None:
    text = structured(kernel)
    assert "scf.if" not in text
    assert text.count("arith.select") == selections


@pytest.mark.parametrize("kernel", [of_work, of_accesses, of_indices])
def test_other_branches_are_left(kernel: Any) -> None:
    assert "scf.if" in structured(kernel)


def run(kernel: Any, programs: int, label: int, x: Any, size: int) -> Any:
    device: Any = triton.runtime.driver.active.device
    out = DeviceArray.empty(size, "float32", device)
    kernel[(programs,)](DeviceArray.from_numpy(x, device), out, label, N=64)
    return out.numpy()


@pytest.mark.parametrize("label", [-1, 0, 70, 191])
def test_a_sum_without_the_label(label: int) -> None:
    x = np.random.default_rng(0).standard_normal(192).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    if label >= 0:
        expected[label] = 0
    np.testing.assert_allclose(run(without_label, 3, label, x, 3), expected.reshape(3, 64).sum(1), rtol=1e-5)


@pytest.mark.parametrize("label", [2, 9])
def test_values_of_both_sides(label: int) -> None:
    data = np.random.default_rng(1).standard_normal(128).astype(np.float32)
    i, x, y = np.arange(64), data[:64], data[64:]
    x, y = (np.where(i > label, y, x), x) if label > 3 else (y, np.where(i < label, np.float32(1), y))
    np.testing.assert_array_equal(run(both_sides, 1, label, data, 64), x - 2 * y)

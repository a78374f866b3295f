"""Short loops over tiles are written out, others are left, and kernels compute the same."""

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
def pooled(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    count = tl.zeros((N,), tl.int32)
    for h in range(0, H):
        for w in range(0, W):
            at = i + h * stride - w
            inside = (at >= 0) & (at < N)
            total += tl.load(X + at, mask=inside, other=0.0) * (1 + h)
            count += inside.to(tl.int32)
    tl.store(OUT + i, total)


@triton.jit
def descending(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    """Carries a tile, a tile of pointers, and a scalar; the two tiles change places in each iteration."""
    i = tl.arange(0, N)
    place = X + i
    a = tl.zeros((N,), tl.float32)
    b = tl.full((N,), 1.0, tl.float32)
    factor = 1.0
    for h in range(H, 0, -W):
        a, b = b, a * factor + tl.load(place) * h
        place += stride
        factor += 0.5
    tl.store(OUT + i, a - 2 * b)


@triton.jit
def reduced(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for h in range(0, H):
        x = tl.load(X + h * stride + tl.arange(0, N))
        total += x - tl.sum(x)
    tl.store(OUT + tl.arange(0, N), total)


@triton.jit
def in_place(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for h in range(0, H):
        total += tl.load(OUT + h * stride + tl.arange(0, N))
        tl.store(OUT + h * stride + tl.arange(0, N), total)


@triton.jit
def of_scalars(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    total = 0.0
    for h in range(0, H):
        total += tl.load(X + h * stride)
    tl.store(OUT, total)


@triton.jit
def of_unknown_length(X, OUT, stride, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for h in range(0, stride):
        total += tl.load(X + h * N + tl.arange(0, N))
    tl.store(OUT + tl.arange(0, N), total)


def structured(kernel: Any, **constants: int) -> str:
    signature = {"X": "*fp32", "OUT": "*fp32", "stride": "i32"}
    text = ttir_text(kernel, signature, **{"N": 64, "H": 3, "W": 3, **constants})
    return str(import_ttir(text, unrolls=True))


def test_a_nest_goes_as_a_whole() -> None:
    text = structured(pooled)
    assert "scf.for" not in text
    assert text.count("tpk.load") == 9
    assert "arith.extui" not in text, "nothing counts any more"


@pytest.mark.parametrize(("kernel", "constants"), [(descending, {"H": 4, "W": 1}), (descending, {"H": 7})])
def test_loops_with_several_carried_values(kernel: Any, constants: dict[str, int]) -> None:
    assert "scf.for" not in structured(kernel, **constants)


@pytest.mark.parametrize(
    ("kernel", "constants"),
    [
        (reduced, {}),
        (in_place, {}),
        (of_scalars, {}),
        (of_unknown_length, {}),
        (descending, {"H": 100}),
    ],
    ids=["with reductions", "that store", "of scalars", "of unknown length", "of many iterations"],
)
def test_other_loops_are_left(kernel: Any, constants: dict[str, int]) -> None:
    assert "scf.for" in structured(kernel, **constants)


def test_large_nests_are_written_out_in_part() -> None:
    text = structured(pooled, H=8, W=8)
    assert text.count("scf.for") == 1
    assert text.count("tpk.load") == 8


def test_what_a_loop_computes_for_nothing_falls_away() -> None:
    text = structured(pooled, H=100)
    assert text.count("scf.for") == 1
    assert "arith.extui" not in text


def test_without_the_option_all_are_left() -> None:
    text = ttir_text(pooled, {"X": "*fp32", "OUT": "*fp32", "stride": "i32"}, N=64, H=3, W=3)
    assert str(import_ttir(text)).count("scf.for") == 2


def padded(x: Any, offset: int, n: int) -> Any:
    at = np.arange(n) + offset
    return np.where((at >= 0) & (at < n), x[np.clip(at, 0, n - 1)], 0)


@pytest.mark.parametrize(("h", "w"), [(1, 1), (3, 3), (2, 5), (8, 8)])
def test_pooling(h: int, w: int) -> None:
    device: Any = triton.runtime.driver.active.device
    x = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    wide = np.zeros(64, np.float32)
    wide[:50] = x
    given, out = DeviceArray.from_numpy(wide, device), DeviceArray.empty(64, "float32", device)
    pooled[(1,)](given, out, 5, N=64, H=h, W=w)
    expected = sum(
        (1 + i) * padded(wide.astype(np.float64), 5 * i - j, 64) for i in range(h) for j in range(w)
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("h", "w"), [(4, 1), (7, 3), (0, 1)])
def test_values_that_change_places(h: int, w: int) -> None:
    device: Any = triton.runtime.driver.active.device
    x = np.random.default_rng(1).standard_normal(500).astype(np.float32)
    out = DeviceArray.empty(64, "float32", device)
    descending[(1,)](DeviceArray.from_numpy(x, device), out, 3, N=64, H=h, W=w)
    a, b, factor = np.zeros(64), np.ones(64), 1.0
    for iteration, k in enumerate(range(h, 0, -w)):
        a, b, factor = b, a * factor + x[3 * iteration : 3 * iteration + 64] * float(k), factor + 0.5
    np.testing.assert_allclose(out.numpy(), a - 2 * b, rtol=1e-5, atol=1e-5)

"""Long sums, products and recurrences of 16-bit floats: rounded once, when the result is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, assert_same, empty, from_float64, get, put

SHAPES = [(4096, 4), (4, 4096), (4096, 1), (1, 2048), (64, 64)]


def eighths(shape: tuple[int, int]) -> Array:
    """Numbers whose sums float32 holds exactly, and 16-bit floats do not."""
    return np.random.default_rng(3).integers(-4, 17, shape) / 8


def signs_and_powers(shape: tuple[int, int]) -> Array:
    """Numbers whose running products stay in range."""
    powers = np.random.default_rng(5).choice([0.5, -1.0, 1.0, 2.0], shape, p=[0.02, 0.48, 0.48, 0.02])
    return np.asarray(powers)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def minus_negative(a, b):
    return a - (0 * b - b)


@triton.jit
def accumulate_kernel(
    X, TOTAL, RUNNING, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, SUBTRACT: tl.constexpr
):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    kept = tl.arange(0, M * N // (N if AXIS else M))
    x = tl.load(X + i)
    if SUBTRACT:
        tl.store(TOTAL + kept, tl.reduce(x, AXIS, minus_negative))
        tl.store(RUNNING + i, tl.associative_scan(x, AXIS, minus_negative))
    else:
        tl.store(TOTAL + kept, tl.reduce(x, AXIS, plus))
        tl.store(RUNNING + i, tl.associative_scan(x, AXIS, plus))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
@pytest.mark.parametrize("subtract", [False, True])
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_sums(name: str, subtract: bool, shape: tuple[int, int], axis: int) -> None:
    kind = KINDS[name]
    x = eighths(shape)
    total, running = empty(x.size // shape[axis], kind), empty(shape, kind)
    accumulate_kernel[(1,)](put(from_float64(x, kind), kind), total, running, *shape, axis, subtract)
    assert_same(get(total), from_float64(x.sum(axis), kind))
    assert_same(get(running), from_float64(x.cumsum(axis), kind))


@triton.jit
def library_kernel(X, S, C, P, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + i)
    tl.store(S + tl.arange(0, N), tl.sum(x, 0))
    tl.store(C + i, tl.cumsum(x, 0, reverse=True))
    tl.store(P + i, tl.cumprod(x, 0))


@pytest.mark.parametrize("name", ["fp16", "bf16"])
@pytest.mark.parametrize("values", [eighths, signs_and_powers])
def test_the_library_functions(name: str, values: Callable[[tuple[int, int]], Array]) -> None:
    kind = KINDS[name]
    shape = (1024, 4)
    x = values(shape)
    sums, running, products = empty(4, kind), empty(shape, kind), empty(shape, kind)
    library_kernel[(1,)](put(from_float64(x, kind), kind), sums, running, products, *shape)
    assert_same(get(sums), from_float64(x.sum(0), kind))
    assert_same(get(running), from_float64(x[::-1].cumsum(0)[::-1], kind))
    if values is signs_and_powers:
        assert_same(get(products), from_float64(x.cumprod(0), kind))


@triton.jit
def step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_kernel(A, B, O, N: tl.constexpr):
    i = tl.arange(0, N)
    _, y = tl.associative_scan((tl.load(A + i), tl.load(B + i)), 0, step)
    tl.store(O + i, y)


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_linear_recurrences(name: str) -> None:
    kind = KINDS[name]
    a = np.random.default_rng(1).choice([1.0, -1.0, 0.5], 512, p=[0.6, 0.2, 0.2])
    b = eighths((512, 1))[:, 0]
    out = empty(512, kind)
    recurrence_kernel[(1,)](put(from_float64(a, kind), kind), put(from_float64(b, kind), kind), out, N=512)
    expected, y = np.empty(512), 0.0
    for k in range(512):
        y = a[k] * y + b[k]
        expected[k] = y
    # One rounding of the result; what float32 rounds on the way is far below.
    np.testing.assert_allclose(get(out), expected, rtol=2.0**-8 if name == "bf16" else 2.0**-11, atol=1e-4)

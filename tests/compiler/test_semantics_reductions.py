"""Reductions and scans end to end, over every axis, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import (
    INTEGERS,
    KINDS,
    Array,
    Kind,
    assert_same,
    empty,
    from_float64,
    get,
    make_kernel,
    put,
    wrap,
)
from test_semantics_shapes import load_of

SHAPES = [(1,), (2,), (64,), (1024,), (1, 32), (32, 1), (8, 32), (64, 4), (4, 8, 16), (8, 4, 2)]
AXES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]
AXIS_IDS = [f"{'x'.join(map(str, shape))}-axis{axis}" for shape, axis in AXES]


def small(shape: tuple[int, ...], kind: Kind, seed: int = 0) -> Array:
    """Numbers whose sums every type holds exactly, with ties."""
    random = np.random.default_rng(seed)
    low, high = (-2, 3) if kind.is_float or kind.is_signed else (0, 3)
    return random.integers(low, high, shape).astype(kind.host)


def run(
    name: str,
    shape: tuple[int, ...],
    line: str,
    x: Array,
    kind: Kind,
    results: Sequence[tuple[tuple[int, ...], str]],
) -> list[Array]:
    """The tensors r0, r1, ... that `line` computes of x."""
    names = ", ".join(f"O{k}" for k in range(len(results)))
    source = f"def {name}(X, {names}):\n    x = tl.load(X + {load_of(shape)})\n    {line}\n"
    for k, (result, _) in enumerate(results):
        source += f"    tl.store(O{k}{' + ' + load_of(result) if result else ''}, r{k})\n"
    outs = [empty(result or 1, result_kind) for result, result_kind in results]
    make_kernel(source)[(1,)](put(x, kind), *outs)
    return [get(out).reshape(result) for out, (result, _) in zip(outs, results, strict=True)]


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


REDUCTIONS: dict[str, tuple[str, Callable[[Array, int], Array]]] = {
    "sum": ("tl.sum(x, {axis})", lambda x, axis: x.sum(axis)),
    "max": ("tl.max(x, {axis})", lambda x, axis: x.max(axis)),
    "min": ("tl.min(x, {axis})", lambda x, axis: x.min(axis)),
    "argmax": ("tl.argmax(x, {axis})", lambda x, axis: x.argmax(axis)),
    "argmin": ("tl.argmin(x, {axis})", lambda x, axis: x.argmin(axis)),
}


@pytest.mark.parametrize("kind", ["i8", "i32", "u16", "i64", "fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize(("shape", "axis"), AXES, ids=AXIS_IDS)
def test_reductions_of_an_axis(shape: tuple[int, ...], axis: int, kind: str) -> None:
    """Ties go to the smallest index."""
    x = small(shape, KINDS[kind])
    names = list(REDUCTIONS)
    wide = {"i8": "i32", "u16": "u32"}.get(kind, kind)
    line = "\n    ".join(f"r{k} = {REDUCTIONS[name][0].format(axis=axis)}" for k, name in enumerate(names))
    left = without(shape, axis)
    results = [(left, "i32" if name.startswith("arg") else wide if name == "sum" else kind) for name in names]
    for name, actual in zip(names, run("reductions", shape, line, x, KINDS[kind], results), strict=True):
        expected = REDUCTIONS[name][1](x.astype(np.float64), axis)
        assert_same(np.abs(actual), np.abs(np.asarray(expected)).astype(actual.dtype), name)
        assert_same(actual, np.asarray(expected).astype(actual.dtype) + actual.dtype.type(0), name) if (
            actual.dtype.kind != "f"
        ) else np.testing.assert_array_equal(actual, expected, name)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_sum_wraps_and_bits_combine(kind: Kind) -> None:
    x = np.random.default_rng(3).integers(kind.lowest, kind.highest, (16, 32), dtype=kind.host, endpoint=True)
    line = "r0 = tl.sum(x, 1, dtype=x.dtype)\n    r1 = tl.xor_sum(x, 1)\n    r2 = tl.reduce_or(x, 0)\n    r3 = tl.sum(x)"
    results = [
        ((16,), kind.name),
        ((16,), kind.name),
        ((32,), kind.name),
        ((), "i64" if kind.bits == 64 else "i32"),
    ]
    total, xor, either, whole = run("bits", (16, 32), line, x, kind, results)
    assert_same(total, np.array([wrap(sum(row), kind) for row in x.tolist()], kind.host))
    assert_same(xor, np.bitwise_xor.reduce(x, 1))
    assert_same(either, np.bitwise_or.reduce(x, 0))
    assert int(whole) == wrap(sum(x.ravel().tolist()), KINDS["i64" if kind.bits == 64 else "i32"])


def test_maximum_skips_nan_unless_asked() -> None:
    x = np.array([1.0, np.nan, 3.0, -np.inf], np.float32)
    line = "r0 = tl.max(x, 0)\n    r1 = tl.min(x, 0)"
    high, low = run("nans", (4,), line, x, KINDS["fp32"], [((), "fp32"), ((), "fp32")])
    assert (float(high), float(low)) == (3.0, -np.inf)


def test_reduction_of_everything_and_kept_dimensions() -> None:
    x = small((4, 8, 16), KINDS["fp32"])
    line = "r0 = tl.sum(x)\n    r1 = x - tl.max(x, 1, keep_dims=True)\n    r2 = tl.sum(tl.sum(x, 2), 0)"
    total, shifted, columns = run(
        "whole", (4, 8, 16), line, x, KINDS["fp32"], [((), "fp32"), ((4, 8, 16), "fp32"), ((8,), "fp32")]
    )
    assert total == x.sum()
    assert_same(shifted, x - x.max(1, keepdims=True))
    assert_same(columns, x.sum((0, 2)) + np.float32(0))


def test_values_with_their_indices() -> None:
    x = small((8, 64), KINDS["fp32"])
    line = (
        "r0, r1 = tl.max(x, 1, return_indices=True)\n"
        "    r2, r3 = tl.min(x, 0, return_indices=True)\n"
        "    r4 = tl.argmax(x, 1, tie_break_left=False)"
    )
    results = [((8,), "fp32"), ((8,), "i32"), ((64,), "fp32"), ((64,), "i32"), ((8,), "i32")]
    high, high_at, low, low_at, any_at = run("indices", (8, 64), line, x, KINDS["fp32"], results)
    assert_same(high, x.max(1))
    assert_same(high_at, x.argmax(1))
    assert_same(low, x.min(0))
    assert_same(low_at, x.argmin(0))
    assert_same(x[np.arange(8), any_at], x.max(1))


@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16", "fp64"])
def test_sum_of_many_is_accurate(kind: str) -> None:
    x = from_float64(np.random.default_rng(5).standard_normal((4, 4096)), KINDS[kind])
    (actual,) = run("sums", (4, 4096), "r0 = tl.sum(x, 1)", x, KINDS[kind], [((4,), kind)])
    exact = x.astype(np.float64).sum(1)
    # At most 4096/64 + 6 roundings follow one another, each of half a unit of partial sums below 4096.
    scale = np.abs(x.astype(np.float64)).sum(1)
    assert np.all(np.abs(actual.astype(np.float64) - exact) <= 70 * 2.0 ** -KINDS[kind].precision * scale)


@triton.jit
def combine_moments(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    part = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * part, m2_a + m2_b + delta * delta * n_a * part, n


@triton.jit
def moments_kernel(X, M, S, N, rows: tl.constexpr, columns: tl.constexpr, axis: tl.constexpr):
    i = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    x = tl.load(X + i)
    mean, m2, n = tl.reduce(
        (x, tl.zeros_like(x), tl.full((rows, columns), 1.0, tl.float32)), axis, combine_moments
    )
    j = tl.arange(0, columns if axis == 0 else rows)
    tl.store(M + j, mean)
    tl.store(S + j, m2)
    tl.store(N + j, n)


@pytest.mark.parametrize("axis", [0, 1])
def test_custom_reduction_of_three_operands(axis: int) -> None:
    x = np.random.default_rng(6).standard_normal((16, 64)).astype(np.float32)
    outs = [empty(x.shape[1 - axis], "fp32") for _ in range(3)]
    moments_kernel[(1,)](put(x, "fp32"), *outs, rows=16, columns=64, axis=axis)
    mean, m2, n = (get(out) for out in outs)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(axis), atol=1e-6)
    np.testing.assert_allclose(m2, wide.var(axis) * x.shape[axis], rtol=1e-5)
    assert_same(n, np.full(x.shape[1 - axis], x.shape[axis], np.float32))


# --- scans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("kind", ["i32", "i64", "fp32", "bf16"])
@pytest.mark.parametrize(("shape", "axis"), AXES, ids=AXIS_IDS)
def test_scans_of_an_axis(shape: tuple[int, ...], axis: int, kind: str, reverse: bool) -> None:
    x = small(shape, KINDS[kind])
    y = np.where(x == 0, 1, np.sign(x)).astype(x.dtype)
    line = (
        f"r0 = tl.cumsum(x, {axis}, reverse={reverse})\n"
        f"    r1 = tl.cumprod(tl.where(x < 0, -1, 1).to(x.dtype), {axis}, reverse={reverse})"
    )
    wide = "fp32" if kind == "bf16" else kind
    sums, products = run("scans", shape, line, x, KINDS[kind], [(shape, wide), (shape, wide)])
    turned, signs = (np.flip(v, axis) if reverse else v for v in (x.astype(np.float64), y.astype(np.float64)))
    expected = [np.cumsum(turned, axis), np.cumprod(np.where(signs < 0, -1, 1), axis)]
    for actual, exact in zip((sums, products), expected, strict=True):
        exact = np.flip(exact, axis) if reverse else exact
        if kind != "bf16" or np.abs(exact).max() <= 256:
            np.testing.assert_array_equal(actual, exact)


@triton.jit
def combine_lines(a1, b1, a2, b2):
    """x -> a1 x + b1, then x -> a2 x + b2: associative, not commutative."""
    return a2 * a1, a2 * b1 + b2


@triton.jit
def recurrence_kernel(
    A, B, O, rows: tl.constexpr, columns: tl.constexpr, axis: tl.constexpr, reverse: tl.constexpr
):
    i = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    _, h = tl.associative_scan((tl.load(A + i), tl.load(B + i)), axis, combine_lines, reverse=reverse)
    tl.store(O + i, h)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize(("columns", "axis"), [(16, 0), (2, 1), (8, 1), (16, 1), (64, 1)])
def test_scan_keeps_the_order_of_its_operands(columns: int, axis: int, reverse: bool) -> None:
    random = np.random.default_rng(7)
    a, b = random.integers(-1, 2, (8, columns)), random.integers(-2, 3, (8, columns))
    a[:, ::3] *= 2  # the products of all are exact
    a, b = a.astype(np.float32), b.astype(np.float32)
    out = empty((8, columns), "fp32")
    recurrence_kernel[(1,)](
        put(a, "fp32"), put(b, "fp32"), out, rows=8, columns=columns, axis=axis, reverse=reverse
    )
    steps = [np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0).astype(np.float64) for v in (a, b)]
    state, states = np.zeros_like(steps[0][0]), []
    for factor, term in zip(*steps, strict=True):
        state = factor * state + term
        states.append(state)
    expected = np.moveaxis(np.array(states), 0, axis)
    expected = np.flip(expected, axis) if reverse else expected
    np.testing.assert_array_equal(get(out), expected)


def test_scan_of_a_chain_feeds_another() -> None:
    x = small((4, 64), KINDS["i32"])
    line = "r0 = tl.cumsum(tl.cumsum(x * 2 + 1, 1) - x, 0)"
    (actual,) = run("chained", (4, 64), line, x, KINDS["i32"], [((4, 64), "i32")])
    assert_same(actual, np.cumsum(np.cumsum(x * 2 + 1, 1) - x, 0))


PREFIX_SUM = """def prefix_sum(X, O, n, B: tl.constexpr):
    carry = 0
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        x = tl.load(X + i, mask=i < n, other=0)
        tl.store(O + i, tl.cumsum(x, 0) + carry, mask=i < n)
        carry += tl.sum(x, 0)
"""


@pytest.mark.parametrize("n", [1, 63, 64, 1000])
def test_prefix_sum_over_blocks(n: int) -> None:
    x: Any = np.random.default_rng(8).integers(-100, 100, n).astype(np.int32)
    out = empty(n, "i32")
    make_kernel(PREFIX_SUM)[(1,)](put(x, "i32"), out, n, B=64)
    assert_same(get(out), np.cumsum(x))

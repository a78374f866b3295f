"""Functions of elements end to end: mapped over tensors, and combining in reductions and scans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import Array, assert_same, empty, get, make_kernel, put

from triton_porting_kit.errors import CompilationError

RANDOM = np.random.default_rng(3)
X, Y = (RANDOM.integers(1, 50, 64).astype(np.int32) for _ in range(2))


# --- mapped ----------------------------------------------------------------------------------------


@triton.jit
def order(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@triton.jit
def collatz(x, y):
    n = y * 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        n += 1
    return n


@triton.jit(noinline=True)
def divisor(a, b):
    if b == 0:
        return a
    while b != 0:
        t = a % b
        a = b
        b = t
    return a


@triton.jit
def through_a_call(x, y):
    return divisor(x, y)


@triton.jit
def pairs_of_pairs(x0, x1, y0, y1):
    if x0 < x1:
        a = x0 + y1
    else:
        a = x1 * y0
    return a, y0 - y1


@triton.jit
def many_results(x, y):
    total = x // 3
    for i in range(y % 4):
        total += i * x
    return total, total > 5, (total * 1.5).to(tl.float16), total.to(tl.int8)


@triton.jit
def straight_results(x, y):
    return tl.umulhi(x, y), x > y, x.to(tl.float32) * 0.5, tl.clamp(x.to(tl.float32), 3.0, 9.0)


def collatz_steps(x: int, y: int) -> int:
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


MAPPED: dict[str, tuple[Any, Any]] = {
    "early_returns": (order, lambda x, y: np.sign(x - y)),
    "while_loop": (collatz, np.vectorize(collatz_steps)),
    "function_not_inlined": (through_a_call, np.gcd),
}
SHAPES = [(64,), (8, 8), (4, 1, 16), (1,)]


def tile(shape: tuple[int, ...]) -> str:
    """Row-major offsets."""
    sizes = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    keep = [", ".join(":" if i == d else "None" for i in range(len(shape))) for d in range(len(shape))]
    return " + ".join(
        f"tl.arange(0, {n})[{k}] * {s}" if len(shape) > 1 else f"tl.arange(0, {n})"
        for n, k, s in zip(shape, keep, sizes, strict=True)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("name", MAPPED)
def test_mapped_function(name: str, shape: tuple[int, ...]) -> None:
    function, reference = MAPPED[name]
    count = math.prod(shape)
    source = f"""def mapped(X, Y, O):
    i = {tile(shape)}
    tl.store(O + i, tl.map_elementwise(function, tl.load(X + i), tl.load(Y + i)))
"""
    out = empty(count, "i32")
    make_kernel(source, function=function)[(1,)](put(X, "i32"), put(Y, "i32"), out)
    assert_same(get(out), reference(X[:count], Y[:count]))


@triton.jit
def packed_kernel(X, Y, O, P, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.map_elementwise(pairs_of_pairs_twice, tl.load(X + i), tl.load(Y + i), pack=2)
    tl.store(O + i, a)
    tl.store(P + i, b)


@triton.jit
def pairs_of_pairs_twice(x0, x1, y0, y1):
    a, b = pairs_of_pairs(x0, x1, y0, y1)
    return a, b, x0, a + 1


@pytest.mark.parametrize("count", [2, 16, 64])
def test_packs_are_neighbours(count: int) -> None:
    x, y = X[:count], Y[:count]
    first, second = empty(count, "i32"), empty(count, "i32")
    packed_kernel[(1,)](put(x, "i32"), put(y, "i32"), first, second, N=count)
    a = np.where(x[::2] < x[1::2], x[::2] + y[1::2], x[1::2] * y[::2])
    assert_same(get(first), np.stack([a, y[::2] - y[1::2]], 1).ravel())
    assert_same(get(second), np.stack([x[::2], a + 1], 1).ravel())


def test_packs_that_do_not_fit_are_refused() -> None:
    out = empty(1, "i32")
    with pytest.raises(CompilationError, match="1 elements into packs of 2"):
        packed_kernel[(1,)](put(X[:1], "i32"), put(Y[:1], "i32"), out, out, N=1)


@pytest.mark.parametrize("function", [many_results, straight_results], ids=["loop", "straight"])
def test_results_of_several_types_read_before_a_store(function: Any) -> None:
    kinds = ["i32", "i1", "fp16", "i8"] if function is many_results else ["i32", "i1", "fp32", "fp32"]
    source = """def results(X, Y, A, B, C, D):
    i = tl.arange(0, 64)
    a, b, c, d = tl.map_elementwise(function, tl.load(X + i), tl.load(Y + i))
    tl.store(X + i, i * 0)
    tl.store(A + i, a)
    tl.store(B + i, b)
    tl.store(C + i, c)
    tl.store(D + i, d)
"""
    outs = [empty(64, kind) for kind in kinds]
    make_kernel(source, function=function)[(1,)](put(X, "i32"), put(Y, "i32"), *outs)
    if function is many_results:
        total = np.array([x // 3 + sum(i * x for i in range(y % 4)) for x, y in zip(X, Y, strict=True)])
        expected = [total, total > 5, (total * 1.5).astype(np.float16), total.astype(np.int8)]
    else:
        expected = [X * 0, X > Y, X * np.float32(0.5), np.clip(X, 3, 9)]
    for out, values in zip(outs, expected, strict=True):
        assert_same(get(out), values)


@triton.jit
def same(x, y):
    return x


@triton.jit
def constant_results(x, y):
    return x * 0 + 3, x + y


def test_results_that_are_constants() -> None:
    source = """def constants(X, Y, O, P):
    i = tl.arange(0, 64)
    a, b = tl.map_elementwise(function, tl.load(X + i), tl.load(Y + i))
    tl.store(O + i, a)
    tl.store(P + i, b)
"""
    first, second = empty(64, "i32"), empty(64, "i32")
    make_kernel(source, function=constant_results)[(1,)](put(X, "i32"), put(Y, "i32"), first, second)
    assert_same(get(first), np.full(64, 3))
    assert_same(get(second), X + Y)


@pytest.mark.parametrize(
    "call", ["tl.map_elementwise(function, X + i, X + i)", "tl.reduce(X + i, 0, function)"]
)
def test_functions_of_pointers_are_refused(call: str) -> None:
    source = f"""def pointed(X):
    i = tl.arange(0, 64)
    tl.store(X + i, tl.load({call}))
"""
    with pytest.raises(CompilationError, match="takes or returns pointers") as caught:
        make_kernel(source, function=same)[(1,)](put(X, "i32"))
    assert "tl.int64" in str(caught.value.remedy)


# --- combining -------------------------------------------------------------------------------------


@triton.jit
def larger_by_condition(a, b):
    if a > b:
        tl.device_assert(a < 1000)
        return a
    return b


@triton.jit
def sum_by_loop(a, b):
    total = b
    for _ in range(3):
        total += a
    return total - 2 * a


@triton.jit(noinline=True)
def sum_apart(a, b):
    return a + b


COMBINING: dict[str, tuple[Any, Any]] = {
    "condition": (larger_by_condition, np.maximum),
    "for_loop": (sum_by_loop, np.add),
    "while_loop": (divisor, np.gcd),
    "function_not_inlined": (sum_apart, np.add),
}


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", COMBINING)
def test_reduction(name: str, axis: int | None, debug: bool) -> None:
    function, reference = COMBINING[name]
    x = X.reshape(4, 16)
    expected = np.atleast_1d(reference.reduce(x if axis is not None else x.ravel(), axis=axis or 0))
    target = "0" if axis is None else f"tl.arange(0, {len(expected)})"
    source = f"""def reduced(X, O):
    x = tl.load(X + {tile((4, 16))})
    tl.store(O + {target}, tl.reduce(x, {axis}, function))
"""
    out = empty(len(expected), "i32")
    make_kernel(source, function=function)[(1,)](put(x, "i32"), out, debug=debug)
    assert_same(get(out), expected)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINING)
def test_scan(name: str, axis: int, reverse: bool) -> None:
    function, reference = COMBINING[name]
    x: Array = X.reshape(4, 16)
    turned = np.flip(x, axis) if reverse else x
    expected = reference.accumulate(turned, axis)
    source = f"""def scanned(X, O):
    i = {tile((4, 16))}
    tl.store(O + i, tl.associative_scan(tl.load(X + i), {axis}, function, reverse={reverse}))
"""
    out = empty((4, 16), "i32")
    make_kernel(source, function=function)[(1,)](put(x, "i32"), out)
    assert_same(get(out), np.flip(expected, axis) if reverse else expected)


@triton.jit
def first_of_the_largest(a, i, b, j):
    if a > b or (a == b and i < j):
        return a, i
    return b, j


@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_of_two_operands_with_a_condition(axis: int) -> None:
    source = f"""def largest(X, O, P):
    i = {tile((8, 8))}
    a, b = tl.reduce((tl.load(X + i), i), {axis}, function)
    tl.store(O + tl.arange(0, 8), a)
    tl.store(P + tl.arange(0, 8), b)
"""
    values, places = empty(8, "i32"), empty(8, "i32")
    x = (X % 5).reshape(8, 8)
    make_kernel(source, function=first_of_the_largest)[(1,)](put(x, "i32"), values, places)
    assert_same(get(values), x.max(axis))
    at = x.argmax(axis)
    assert_same(get(places), at + np.arange(8) * 8 if axis else at * 8 + np.arange(8))

"""Functions that are called and not inlined, and what cannot be compiled: errors with a place and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import Array, assert_same, empty, get, put

from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import compat


def integers(*shape: int) -> Any:
    return np.random.default_rng(9).integers(-9, 10, shape).astype(np.int32)


@triton.jit(noinline=True)
def scaled_row(X, row, N: tl.constexpr, factor):
    i = tl.arange(0, N)
    tl.store(X + row * N + i, tl.load(X + row * N + i) * factor)
    return tl.load(X + row * N) + 1


@triton.jit
def calling_kernel(X, O, rows, N: tl.constexpr):
    i = tl.arange(0, N)
    before = tl.load(X + i)
    total = 0
    for row in range(rows):
        total += scaled_row(X, row, N, row + 2)
    first = scaled_row(X, 0, N, 10)
    tl.store(O, total)
    tl.store(O + 1, first)
    tl.store(O + 2 + i, before)


def test_functions_that_are_not_inlined() -> None:
    x = integers(3, 16)
    array, out = put(x, "i32"), empty(18, "i32")
    calling_kernel[(1,)](array, out, 3, N=16)
    after = x * np.array([[20], [3], [4]], np.int32)
    assert_same(get(array), after)
    total = (x[:, 0] * [2, 3, 4] + 1).sum()
    assert_same(get(out), np.concatenate([[total, after[0, 0] + 1], x[0]]))


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def classify(X, at):
    x = tl.load(X + at)
    if x < 0:
        return -1
    if x == 0:
        tl.store(X + at, 99)
        return 0
    return 1


@triton.jit
def early_kernel(X, O, N: tl.constexpr):
    x = tl.load(X + tl.arange(0, N))
    best = tl.reduce(x, 0, larger)
    for at in range(N):
        tl.store(O + at, classify(X, at))
    tl.store(O + N, best)


def test_functions_that_return_early() -> None:
    x = integers(32)
    array, out = put(x, "i32"), empty(33, "i32")
    early_kernel[(1,)](array, out, N=32)
    assert_same(get(out), np.concatenate([np.sign(x), [x.max()]]))
    assert_same(get(array), np.where(x == 0, 99, x))


# --- what cannot be compiled ---------------------------------------------------------------------


@triton.jit
def asserting_kernel(X):
    tl.device_assert(tl.load(X + tl.arange(0, 8)) > 0, "positive")


@triton.jit
def branching(a, b):
    if a > 0:
        tl.debug_barrier()
        return a
    return b


@triton.jit
def assembly_kernel(X):
    i = tl.arange(0, 8)
    x = tl.load(X + i)
    y = tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(X + i, y)


REFUSED = [
    (assembly_kernel, {}, "tt.elementwise_inline_asm", "inline_asm_elementwise", "triton.language"),
]


@pytest.mark.parametrize(
    ("kernel", "options", "operation", "line", "remedy"),
    REFUSED,
    ids=[kernel.__name__ for kernel, *_ in REFUSED],
)
def test_refusals_name_operation_line_and_remedy(
    kernel: Any, options: dict[str, Any], operation: str, line: str, remedy: str
) -> None:
    x: Array = np.ones(8, np.float32)
    with pytest.raises(CompilationError) as raised:
        kernel[(1,)](put(x, "fp32"), **options)
    error = raised.value
    assert error.operation == operation
    assert error.location is not None
    assert error.location.file == __file__
    assert line in str(error)
    assert remedy in str(error.remedy)


def test_a_kernel_without_its_assertions_compiles() -> None:
    asserting_kernel[(1,)](put(np.ones(8, np.float32), "fp32"))


@triton.jit
def watching_kernel(flag, data, O):
    """What is loaded before the flag is seen must not be read after it."""
    if tl.program_id(0) == 0:
        i = tl.arange(0, 16)
        before = tl.load(data + i)
        tl.atomic_xchg(flag, 1)
        tl.atomic_poll(flag + 1, 1)
        tl.store(O + i, before)
    else:
        tl.atomic_poll(flag, 1)
        i = tl.arange(0, 16)
        tl.store(data + i, i + 100)
        tl.atomic_store(flag + 1, 1)


@pytest.mark.skipif(compat.release() < (3, 9), reason="Triton has tl.atomic_poll since 3.9")
def test_loads_stay_before_the_wait_that_follows_them() -> None:
    flag, data, out = empty(2, "i32", 0), empty(16, "i32", 0), empty(16, "i32")
    watching_kernel[(2,)](flag, data, out)
    assert get(out).tolist() == [0] * 16
    assert get(data).tolist() == list(range(100, 116))

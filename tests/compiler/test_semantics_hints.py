"""What a kernel says beside its computation: read-only pointers, hints for loops, values left undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import assert_same, empty, get, put


@triton.jit
def read_only_kernel(A: tl.const, B: tl.const, O, n, N: tl.constexpr):
    i = tl.arange(0, N)
    block = tl.load(A + i, mask=i < n, other=0)
    backwards = tl.load(B + (N - 1 - i))
    picked = tl.load(tl.where(n > 3, A, B) + i)
    walk = A
    total = 0
    for _ in range(n):
        total += tl.load(walk)
        walk += 1
    tl.store(O + i, block)
    tl.store(O + N + i, backwards)
    tl.store(O + 2 * N + i, picked)
    tl.store(O + 3 * N + i, total)


@pytest.mark.parametrize("n", [0, 3, 4, 16])
def test_read_only_pointers(n: int) -> None:
    a, b = np.random.default_rng(7).integers(-99, 99, (2, 16)).astype(np.int32)
    out = empty((4, 16), "i32")
    read_only_kernel[(1,)](put(a, "i32"), put(b, "i32"), out, n, N=16)
    total = np.full(16, a[:n].sum(), np.int32)
    assert_same(get(out), np.stack([np.where(np.arange(16) < n, a, 0), b[::-1], a if n > 3 else b, total]))


@triton.jit
def hinted_for_kernel(X, O, n, HINT: tl.constexpr):
    i = tl.arange(0, 32)
    sum = tl.zeros([32], tl.int32)
    count = 0
    for k in tl.range(0, n, disable_licm=HINT):
        sum += tl.load(X + i) * k
        count += 1
    tl.store(O + i, sum + count)


@triton.jit
def hinted_while_kernel(X, O, n, HINT: tl.constexpr):
    i = tl.arange(0, 32)
    sum = tl.zeros([32], tl.int32)
    count = 0
    while tl.condition(count < n, disable_licm=HINT):
        sum += tl.load(X + i) * count
        count += 1
    tl.store(O + i, sum + count)


@pytest.mark.parametrize("hint", [False, True])
@pytest.mark.parametrize("kernel", [hinted_for_kernel, hinted_while_kernel])
def test_loop_hints_reach_llvm(kernel: Any, hint: bool) -> None:
    x = np.arange(32, dtype=np.int32)
    for n in (0, 2, 5):
        out = empty(32, "i32")
        compiled = kernel[(1,)](put(x, "i32"), out, n, HINT=hint)
        assert_same(get(out), x * sum(range(n)) + n)
        assert ("llvm.licm.disable" in compiled.asm["llir"]) == hint


@triton.jit
def sometimes_nothing(x, GIVE: tl.constexpr):
    give = GIVE
    if give:
        return x


@triton.jit
def undefined_kernel(X, O):
    x = tl.load(X)
    tl.store(O + 1, sometimes_nothing(x, True))
    tl.store(O, sometimes_nothing(x, False))


@pytest.mark.parametrize("kind", ["i32", "bf16", "fp64"])
def test_undefined_values_harm_nothing_else(kind: str) -> None:
    out = empty(2, kind, 0)
    compiled = undefined_kernel[(1,)](put(np.full(1, 5.0), kind), out)
    assert "ub.poison" in compiled.asm["ttir"]
    assert "poison" in compiled.asm["llir"]
    assert get(out)[1] == 5

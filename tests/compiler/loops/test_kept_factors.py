"""What products in a loop keep packed for later programs, and factors that a sum's loop rounds: results are those of
programs in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import host, loops_of
from poisoned import Poisoned, targets

from triton_porting_kit.compiler.caches import Caches

Array = np.ndarray[Any, Any]
TILE, DIM, PROGRAMS = 32, 32, 3


@triton.jit
def chain(A, B, C, OUT, tiles, group, limit, FORM: tl.constexpr, TILE: tl.constexpr, DIM: tl.constexpr):
    """OUT = sum of (A @ B.T - 1) @ C over tiles of B and C, which `group` programs share."""
    pid = tl.program_id(0)
    rows, dims = tl.arange(0, TILE), tl.arange(0, DIM)
    a = tl.load(A + (pid * TILE + rows[:, None]) * DIM + dims[None, :])
    shared = pid // group * tiles * TILE * DIM
    total = tl.zeros((TILE, DIM), tl.float32)
    for tile in range(0, tiles):
        at = shared + (tile * TILE + rows[:, None]) * DIM + dims[None, :]
        if FORM == "masked":
            b = tl.load(B + at, mask=(tile * TILE + rows < limit)[:, None], other=0.0)
        else:
            b = tl.load(B + at)
        s = tl.dot(a, tl.trans(b), input_precision="ieee") - 1.0
        c = tl.load(C + at)
        total = tl.dot(s.to(c.dtype), c, total * 1.0 + 1.0, input_precision="ieee")
    tl.store(OUT + (pid * TILE + rows[:, None]) * DIM + dims[None, :], total)


SIGNATURE = {"A": "*fp32", "B": "*fp32", "C": "*fp32", "OUT": "*fp32"} | dict.fromkeys(
    ("tiles", "group", "limit"), "i32"
)


def wanted(a: Array, b: Array, c: Array, tiles: int, group: int, limit: int) -> Array:
    """`OUT`, one program after the other."""
    out = np.zeros((PROGRAMS * TILE, DIM), np.float32)
    size = tiles * TILE
    for pid in range(PROGRAMS):
        rows, shared = (
            slice(pid * TILE, (pid + 1) * TILE),
            slice(pid // group * size, (pid // group + 1) * size),
        )
        inside = b.reshape(-1, DIM)[shared].copy()
        inside[limit:] = 0
        s = a.reshape(-1, DIM)[rows] @ inside.T - 1
        out[rows] = s @ c.reshape(-1, DIM)[shared] + tiles
    return out.ravel()


def numbers(random: np.random.Generator, count: int) -> Array:
    return random.integers(-2, 3, count).astype(np.float32)


@pytest.mark.parametrize("form", ["whole", "masked"])
@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("name", targets())
def test_programs_that_share_factors(name: str, group: int, form: str) -> None:
    """Of 4 tiles, and of 40, which are more than one of these caches holds."""
    target = targets()[name]
    if name != "portable":
        target = replace(target, caches=Caches.parse("32K,128K"))
    kernel = Poisoned(chain, SIGNATURE, target, FORM=form, TILE=TILE, DIM=DIM)
    assert kernel.loops.cleared_bytes > 0
    random = np.random.default_rng(1)
    for tiles in (0, 1, 4, 40):
        limit = max(0, tiles * TILE - 5) if form == "masked" else tiles * TILE
        count = -(-PROGRAMS // group) * tiles * TILE * DIM
        a = numbers(random, PROGRAMS * TILE * DIM)
        for _ in range(2):  # the second launch finds other factors at the same addresses
            b, c = (numbers(random, max(count, 1)) for _ in range(2))
            out = np.zeros_like(a)
            found = kernel(PROGRAMS, A=a, B=b, C=c, OUT=out, tiles=tiles, group=group, limit=limit)["OUT"]
            np.testing.assert_array_equal(found, wanted(a, b[:count], c[:count], tiles, group, limit))


@triton.jit
def in_one_memory(X, b, out, TILE: tl.constexpr, DIM: tl.constexpr):
    """Each program multiplies by B, in two tiles, and stores what it finds at `out`, which may be in B."""
    rows, dims = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
    a = tl.load(X + rows * DIM + dims)
    total = tl.zeros((TILE, TILE), tl.float32)
    for tile in range(0, 2):
        factor = tl.load(X + b + tile * TILE * DIM + rows * DIM + dims)
        total = total * 0.5 + tl.dot(a, tl.trans(factor), input_precision="ieee")
    tl.store(X + out + rows * TILE + tl.arange(0, TILE)[None, :], total)


@pytest.mark.parametrize("gap", [-TILE * DIM, -1, 0, 1, TILE * DIM, 2 * TILE * DIM - 1, 2 * TILE * DIM])
def test_a_factor_that_a_launch_writes_is_read_again(gap: int) -> None:
    signature = {"X": "*fp32", "b": "i32", "out": "i32"}
    kernel = Poisoned(in_one_memory, signature, host(), TILE=TILE, DIM=DIM)
    size = TILE * DIM
    x = numbers(np.random.default_rng(2), 6 * size)
    b, out = 2 * size, 2 * size + gap
    expected = x.copy()
    for _ in range(PROGRAMS):
        a, total = expected[:size].reshape(TILE, DIM), np.zeros((TILE, TILE), np.float32)
        for tile in range(2):
            factor = expected[b + tile * size : b + (tile + 1) * size].reshape(TILE, DIM)
            total = total * np.float32(0.5) + a @ factor.T
        expected[out : out + size] = total.ravel()
    found = kernel(PROGRAMS, X=x, b=b, out=out)["X"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@triton.jit
def weights(A, B, OUT, SUMS, FORM: tl.constexpr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """OUT = exp2(A) @ B with weights rounded to bfloat16, and SUMS those of the weights before."""
    m, k, n = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    p = tl.exp2(tl.load(A + m[:, None] * K + k[None, :]))
    tl.store(SUMS + m, tl.sum(p, axis=1))
    rounded = p.to(tl.bfloat16)
    b = tl.load(B + k[:, None] * N + n[None, :]).to(tl.bfloat16)
    product = tl.dot(rounded, b)
    if FORM == "again":
        product += tl.sum(p, axis=1)[:, None]
    elif FORM == "rounded again":
        product += tl.sum(rounded.to(tl.float32), axis=1)[:, None]
    tl.store(OUT + m[:, None] * N + n[None, :], product)


@pytest.mark.parametrize("form", ["once", "again", "rounded again"])
@pytest.mark.parametrize("name", targets())
def test_weights_are_rounded_beside_their_sum(name: str, form: str) -> None:
    m, k, n = 32, 64, 32
    signature = {"A": "*fp32", "B": "*fp32", "OUT": "*fp32", "SUMS": "*fp32"}
    kernel = Poisoned(weights, signature, targets()[name], FORM=form, M=m, K=k, N=n)
    random = np.random.default_rng(3)
    a, b = random.integers(-3, 6, m * k).astype(np.float32), numbers(random, k * n)
    a += np.float32(0.25) * random.integers(0, 2, m * k).astype(np.float32)
    found = kernel(A=a, B=b, OUT=np.zeros(m * n, np.float32), SUMS=np.zeros(m, np.float32))
    p = np.exp2(a.astype(np.float64)).reshape(m, k)
    bits = p.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    product = rounded.astype(np.float64) @ b.reshape(k, n)
    if form != "once":
        product += (p if form == "again" else rounded.astype(np.float64)).sum(1)[:, None]
    np.testing.assert_allclose(found["SUMS"], p.sum(1), rtol=1e-6)
    np.testing.assert_allclose(found["OUT"].reshape(m, n), product, rtol=1e-5, atol=1e-3)


def test_what_is_kept_is_shared_out() -> None:
    """Both products of the loop together keep what one would."""
    caches = Caches.parse("32K,128K")
    types = {name: kind.replace("fp32", "bf16") for name, kind in SIGNATURE.items()}
    target = replace(host(), caches=caches)
    loops = loops_of(chain, types, target, FORM="whole", TILE=TILE, DIM=DIM)
    assert loops.cleared_bytes // 8 * TILE * DIM * 2 <= caches.kept_bytes

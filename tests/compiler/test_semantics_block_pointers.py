"""Block pointers end to end, in the releases of Triton that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, assert_same, empty, get, put

from triton_porting_kit.toolchain import compat

pytestmark = pytest.mark.skipif(
    compat.release() >= (3, 9), reason="Triton 3.9 has no block pointers any more"
)
M, N, BM, BN = 21, 32, 8, 16


@triton.jit
def load_kernel(
    X, O, m, n, sm, sn, a, b, BM: tl.constexpr, BN: tl.constexpr, CHECK: tl.constexpr, PAD: tl.constexpr
):
    block = tl.make_block_ptr(X, (m, n), (sm, sn), (a, b), (BM, BN), (1, 0))
    x = tl.load(block, boundary_check=CHECK, padding_option=PAD)
    tl.store(O + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], x)


def window(whole: Array, row: int, column: int, fill: float) -> Array:
    around = np.pad(whole, ((50, 50), (50, 50)), constant_values=fill)
    return around[row + 50 :, column + 50 :][:BM, :BN]


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16", "i32", "i8"])
def test_load_checks_and_pads(kind: str, padding: str) -> None:
    if padding == "nan" and not KINDS[kind].is_float:
        return  # Triton refuses it
    fill = np.nan if padding == "nan" else 0
    x = np.random.default_rng(1).integers(1, 9, (M, N)).astype(KINDS[kind].host)

    def load(source: Array, strides: tuple[int, int], at: tuple[int, int], check: Any, pad: str) -> Array:
        out = empty((BM, BN), kind)
        load_kernel[(1,)](put(source, kind), out, M, N, *strides, *at, BM=BM, BN=BN, CHECK=check, PAD=pad)
        return get(out)

    for at in ((0, 0), (8, 16), (16, 24), (-3, -5)):
        assert_same(load(x, (N, 1), at, (0, 1), padding), window(x, *at, fill))
        assert_same(load(x.T.copy(), (1, M), at, (0, 1), padding), window(x, *at, fill))
    assert_same(load(x, (N, 1), (16, 0), (0,), padding), window(x, 16, 0, fill))
    assert_same(load(x, (N, 1), (3, 7), (), ""), x[3:11, 7:23])


@triton.jit
def store_kernel(X, O, m, n, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.make_block_ptr(O, (m, n), (n, 1), (16, 24), (BM, BN), (1, 0))
    x = tl.load(X + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
    tl.store(block, x, boundary_check=(0, 1))


def test_store_checks() -> None:
    x = np.random.default_rng(1).standard_normal((BM, BN)).astype(np.float32)
    out = put(np.zeros((M, N)), "fp32")
    store_kernel[(1,)](put(x, "fp32"), out, M, N, BM=BM, BN=BN)
    expected = np.zeros((M, N), np.float32)
    expected[16:, 24:] = x[:5, :8]
    assert_same(get(out), expected)


@triton.jit
def matmul_kernel(A, B, C, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_block_ptr(A, (m, k), (k, 1), (row, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(B, (k, n), (n, 1), (0, column), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(x, y, total, input_precision="ieee")
        a = tl.advance(a, (0, BK))
        b = tl.advance(b, (BK, 0))
    c = tl.make_block_ptr(C, (m, n), (n, 1), (row, column), (BM, BN), (1, 0))
    tl.store(c, total, boundary_check=(0, 1))


def test_blocks_advance_in_a_loop() -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((50, 40), (40, 30)))
    out = empty((50, 30), "fp32")
    matmul_kernel[(4, 2)](put(a, "fp32"), put(b, "fp32"), out, 50, 30, 40, BM=16, BN=16, BK=16)
    assert_same(get(out), a @ b)

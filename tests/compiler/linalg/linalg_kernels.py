"""Kernels of several tests."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = (
        tl.program_id(0) * BM + tl.arange(0, BM),
        tl.program_id(1) * BN + tl.arange(0, BN),
        tl.arange(0, BK),
    )
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(
            a + rm[:, None] * K + (k + rk)[None, :], (rm[:, None] < M) & ((k + rk)[None, :] < K), other=0.0
        )
        y = tl.load(
            b + (k + rk)[:, None] * N + rn[None, :], ((k + rk)[:, None] < K) & (rn[None, :] < N), other=0.0
        )
        total = tl.dot(x, y, total)
    tl.store(c + rm[:, None] * N + rn[None, :], total, (rm[:, None] < M) & (rn[None, :] < N))

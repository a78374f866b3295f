"""Products with weights of fewer bits: int8, fp8 with a scale for each column, and mxfp4."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..inductor_patterns import Program, randn
from .work import Made, Workload, bytes_of

#: The values of the sixteen numbers of E2M1 (OCP Microscaling Formats 1.0, table 5).
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BLOCK = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 128}


@triton.jit
def weight_only_kernel(
    x_ptr, w_ptr, scale_ptr, y_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One tile of x (m, k) by weights of 8 bits (n, k), with a scale for each of the n columns of the result."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * k + ks[None, :]
    w_ptrs = w_ptr + cols[None, :] * k + ks[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = k - start
        x = tl.load(x_ptrs, mask=(rows < m)[:, None] & (ks < left)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(cols < n)[None, :] & (ks < left)[:, None], other=0.0)
        total = tl.dot(x, w.to(x.dtype), total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    total *= tl.load(scale_ptr + cols, mask=cols < n)[None, :]
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], total.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def mxfp4_kernel(
    x_ptr, w_ptr, scale_ptr, y_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One tile of x (m, k) by weights in mxfp4: two numbers in a byte along k, a scale for each 32 of them."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks, pairs, groups = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_K // 2), tl.arange(0, BLOCK_K // 32)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * k + start + ks[None, :])
        w = tl.load(w_ptr + cols[None, :] * (k // 2) + start // 2 + pairs[:, None])
        scale = tl.load(scale_ptr + cols[:, None] * (k // 32) + start // 32 + groups[None, :])
        total = tl.dot_scaled(x, None, "bf16", w, scale, "e2m1", total)
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], total.to(y_ptr.dtype.element_ty))


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("int8 weight-only product bf16 16x4096x2048", lambda: _weight_only(torch.int8), quick=True),
        Workload("fp8 weight-only product bf16 16x4096x2048", lambda: _weight_only(torch.float8_e4m3fn)),
        Workload("mxfp4 product bf16 64x1024x1024", _mxfp4),
    ]


def _weight_only(dtype: torch.dtype) -> Made:
    m, n, k = 16, 4096, 2048
    x, scale = randn(m, k, dtype=torch.bfloat16), torch.rand(n) * 0.01
    w = torch.randint(-127, 128, (n, k)).to(dtype) if dtype is torch.int8 else randn(n, k).to(dtype)

    def program(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
        return (x @ w.to(x.dtype).t() * scale).to(x.dtype)

    def ours(x: Tensor, w: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(m, n, dtype=x.dtype)
        grid = (triton.cdiv(m, BLOCK["BLOCK_M"]), triton.cdiv(n, BLOCK["BLOCK_N"]))
        weight_only_kernel[grid](x, w, scale, y, m, n, k, **BLOCK)
        return (y,)

    rounded = scale.to(torch.bfloat16)
    own = {"torch's own": lambda x, w, scale: torch._weight_int8pack_mm(x, w, rounded)}
    return Made(
        Program(program, (x, w, scale)),
        ours,
        bytes_of(x, w, scale) + 2 * m * n,
        2 * m * n * k,
        "bfloat16",
        others=own if dtype is torch.int8 else {},
    )


def _mxfp4() -> Made:
    m, n, k = 64, 1024, 1024
    x = randn(m, k, dtype=torch.bfloat16)
    w = torch.randint(256, (n, k // 2), dtype=torch.uint8)
    scale = torch.randint(120, 134, (n, k // 32), dtype=torch.uint8)
    values = torch.tensor([sign * value for sign in (1, -1) for value in E2M1])

    def program(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
        table = values.to(x.dtype)
        pairs = torch.stack((table[(w & 15).int()], table[(w >> 4).int()]), dim=-1).reshape(n, k // 32, 32)
        powers = torch.exp2(scale.to(torch.float32) - 127).to(x.dtype)
        return x @ (pairs * powers[:, :, None]).reshape(n, k).t()

    def ours(x: Tensor, w: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(m, n, dtype=x.dtype)
        block = BLOCK | {"BLOCK_M": m}  # one row of programs, so that weights are decoded once
        mxfp4_kernel[(1, triton.cdiv(n, block["BLOCK_N"]))](x, w, scale, y, m, n, k, **block)
        return (y,)

    return Made(
        Program(program, (x, w, scale)), ours, bytes_of(x, w, scale) + 2 * m * n, 2 * m * n * k, "bfloat16"
    )

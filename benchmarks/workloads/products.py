"""Products that are no plain matrix product: grouped, batched and small, convolution."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..inductor_patterns import Program, randn
from .work import Made, Workload, bytes_of

ALIGNED = 64
"""The rows of each expert begin at a multiple of it."""


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 64})
        for rows in (32, 64)
        for columns in (64, 128, 256)
    ],
    key=["n", "k"],
)
@triton.jit
def grouped_kernel(
    x_ptr, w_ptr, y_ptr, order_ptr, expert_ptr, tokens, n, k,
    ALIGNED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One tile of a mixture of experts: rows in the order of their experts, each block of rows has one expert.

    Places behind the last row of an expert hold `tokens`, which is no row. Blocks of such places are skipped.
    """
    first = tl.program_id(0) * BLOCK_M
    if tl.load(order_ptr + first) >= tokens:
        return
    expert = tl.load(expert_ptr + first // ALIGNED).to(tl.int64)
    rows = tl.load(order_ptr + first + tl.arange(0, BLOCK_M))
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    there = rows < tokens
    x_ptrs = x_ptr + rows[:, None] * k + ks[None, :]
    w_ptrs = w_ptr + expert * n * k + cols[None, :] * k + ks[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        x = tl.load(x_ptrs, mask=there[:, None] & (ks[None, :] < k - start), other=0.0)
        w = tl.load(w_ptrs, mask=ks[:, None] < k - start, other=0.0)
        total = tl.dot(x, w, total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    y_ptrs = y_ptr + rows[:, None] * n + cols[None, :]
    tl.store(y_ptrs, total.to(y_ptr.dtype.element_ty), mask=there[:, None] & (cols[None, :] < n))


@triton.jit
def batched_kernel(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr):
    """One product of square matrices."""
    rows, cols = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    places = tl.program_id(0) * SIZE * SIZE + rows * SIZE + cols
    c = tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places), input_precision="ieee")
    tl.store(c_ptr + places, c)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": rows, "BLOCK_N": 64, "BLOCK_K": depth})
        for rows in (64, 128, 256)
        for depth in (32, 64)
    ],
    key=["images", "height", "width", "channels", "filters"],
)
@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, y_ptr, images, height, width, channels, filters,
    KERNEL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Convolution as implicit GEMM: images as (N, H, W, C), filters as (KH, KW, C, F), padded by half the kernel."""
    places = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    column, row, image = places % width, places // width % height, places // (width * height)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(KERNEL):
        for j in range(KERNEL):
            y, x = row + i - KERNEL // 2, column + j - KERNEL // 2
            there = (image < images) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixels = x_ptr + ((image * height + y) * width + x) * channels
            weights = w_ptr + (i * KERNEL + j) * channels * filters
            for start in range(0, channels, BLOCK_K):
                c = start + ks
                a = tl.load(
                    pixels[:, None] + c[None, :], mask=there[:, None] & (c < channels)[None, :], other=0.0
                )
                b = tl.load(
                    weights + c[:, None] * filters + cols[None, :],
                    mask=(c < channels)[:, None] & (cols < filters)[None, :],
                    other=0.0,
                )
                total = tl.dot(a, b, total, input_precision="ieee")
    inside = (image < images)[:, None] & (cols < filters)[None, :]
    tl.store(y_ptr + places[:, None] * filters + cols[None, :], total, mask=inside)


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("grouped product bf16 1024x512x1024, 8 experts", _grouped),
        Workload("batched products fp32 4096 of 32x32x32", _batched, quick=True),
        Workload("convolution 3x3 fp32 8x32x32, 64 channels", _convolution),
    ]


def order_of_experts(chosen: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """Rows in the order of their experts, those of each padded, and the expert of each aligned block."""
    order, owners = [], []
    for expert in range(experts):
        rows = (chosen == expert).nonzero()[:, 0]
        padding = -len(rows) % ALIGNED
        order += [rows, torch.full((padding,), len(chosen))]
        owners += [expert] * ((len(rows) + padding) // ALIGNED)
    return torch.cat(order).to(torch.int32), torch.tensor(owners, dtype=torch.int32)


def _grouped() -> Made:
    tokens, k, n, experts = 1024, 512, 1024, 8
    x, w = randn(tokens, k, dtype=torch.bfloat16), randn(experts, n, k, dtype=torch.bfloat16)
    chosen = torch.randint(experts, (tokens,))
    order, owners = order_of_experts(chosen, experts)
    rows = [(chosen == expert).nonzero()[:, 0] for expert in range(experts)]

    def program(x: Tensor, w: Tensor) -> Tensor:
        y = x.new_empty(tokens, n)
        for expert, places in enumerate(rows):
            y[places] = x[places] @ w[expert].t()
        return y

    def ours(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(tokens, n, dtype=x.dtype)

        def grid(tiles: dict[str, Any]) -> tuple[int, int]:
            return len(order) // tiles["BLOCK_M"], triton.cdiv(n, tiles["BLOCK_N"])

        grouped_kernel[grid](x, w, y, order, owners, tokens, n, k, ALIGNED=ALIGNED)
        return (y,)

    moved = bytes_of(x, w) + 2 * tokens * n
    return Made(Program(program, (x, w)), ours, moved, 2 * tokens * k * n, "bfloat16")


def _batched() -> Made:
    count, size = 4096, 32
    inputs = randn(count, size, size), randn(count, size, size)

    def ours(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        c = torch.empty_like(a)
        batched_kernel[(count,)](a, b, c, SIZE=size)
        return (c,)

    return Made(Program(torch.bmm, inputs), ours, 3 * 4 * count * size**2, 2 * count * size**3)


def _convolution() -> Made:
    images, size, channels, filters = 8, 32, 64, 64
    x = randn(images, channels, size, size).to(memory_format=torch.channels_last)
    w = randn(filters, channels, 3, 3)
    ready = w.permute(2, 3, 1, 0).contiguous()

    def ours(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty(images, filters, size, size, memory_format=torch.channels_last)

        def grid(tiles: dict[str, Any]) -> tuple[int, int]:
            places = images * size * size
            return triton.cdiv(places, tiles["BLOCK_M"]), triton.cdiv(filters, tiles["BLOCK_N"])

        convolution_kernel[grid](x, ready, y, images, size, size, channels, filters, KERNEL=3)
        return (y,)

    return Made(
        Program(lambda x, w: functional.conv2d(x, w, padding=1), (x, w)),
        ours,
        bytes_of(x, w) + 4 * images * filters * size * size,
        2 * images * size * size * filters * channels * 9,
    )

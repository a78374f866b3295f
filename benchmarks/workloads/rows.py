"""Rows of a transformer: RMS norm, rotary embedding, SwiGLU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..inductor_patterns import Program, randn
from .work import Made, Workload

EPSILON = 1e-6
ROWS_OF_A_PROGRAM = 64


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, scale_ptr, n, eps, BLOCK: tl.constexpr):
    """One row of RMS norm; 1 / RMS is kept for the gradient."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(scale_ptr + row, scale)
    w = tl.load(w_ptr + cols, mask=inside)
    tl.store(y_ptr + row * n + cols, x * scale * w, mask=inside)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, scale_ptr, dx_ptr, dw_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The gradients of `ROWS` rows; that of the weight is a partial sum."""
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n
    w = tl.load(w_ptr + cols, mask=inside, other=0.0)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(program * ROWS, tl.minimum(program * ROWS + ROWS, rows)):
        x = tl.load(x_ptr + row * n + cols, mask=inside, other=0.0)
        dy = tl.load(dy_ptr + row * n + cols, mask=inside, other=0.0)
        scale = tl.load(scale_ptr + row)
        normal = x * scale
        dw += dy * normal
        dx = scale * (w * dy - normal * (tl.sum(w * dy * normal, axis=0) / n))
        tl.store(dx_ptr + row * n + cols, dx, mask=inside)
    tl.store(dw_ptr + program * n + cols, dw, mask=inside)


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, HEADS: tl.constexpr, HALF: tl.constexpr):
    """All heads of one token: halves of a head are turned against each other."""
    token = tl.program_id(0)
    cols = tl.arange(0, HALF)
    places = token * HEADS * 2 * HALF + tl.arange(0, HEADS)[:, None] * 2 * HALF + cols[None, :]
    cos = tl.load(cos_ptr + token * HALF + cols)[None, :]
    sin = tl.load(sin_ptr + token * HALF + cols)[None, :]
    low = tl.load(x_ptr + places)
    high = tl.load(x_ptr + places + HALF)
    tl.store(y_ptr + places, low * cos - high * sin)
    tl.store(y_ptr + places + HALF, high * cos + low * sin)


@triton.jit
def swiglu_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """silu(a) · b of one block."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    a = tl.load(a_ptr + places, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + places, mask=inside)
    tl.store(y_ptr + places, a * tl.sigmoid(a) * b, mask=inside)


@triton.jit
def swiglu_backward_kernel(dy_ptr, a_ptr, b_ptr, da_ptr, db_ptr, n, BLOCK: tl.constexpr):
    """The gradients of one block."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    dy = tl.load(dy_ptr + places, mask=inside)
    a = tl.load(a_ptr + places, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + places, mask=inside)
    gate = tl.sigmoid(a)
    silu = a * gate
    tl.store(da_ptr + places, dy * b * (silu * (1 - gate) + gate), mask=inside)
    tl.store(db_ptr + places, dy * silu, mask=inside)


def rms_norm(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """RMS norm of rows, and 1 / RMS of each."""
    rows, n = x.shape
    y, scale = torch.empty_like(x), torch.empty(rows)
    rms_norm_kernel[(rows,)](x, w, y, scale, n, EPSILON, BLOCK=triton.next_power_of_2(n))
    return y, scale


def rms_norm_backward(dy: Tensor, x: Tensor, w: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of rows and weight."""
    rows, n = x.shape
    programs = triton.cdiv(rows, ROWS_OF_A_PROGRAM)
    dx, partial = torch.empty_like(x), torch.empty(programs, n)
    rms_norm_backward_kernel[(programs,)](
        dy, x, w, scale, dx, partial, rows, n, ROWS=ROWS_OF_A_PROGRAM, BLOCK=triton.next_power_of_2(n)
    )
    return dx, partial.sum(0)


def workloads() -> list[Workload]:
    """Those of this module."""
    return [
        Workload("RMS norm fp32 2048x2048", lambda: _norm(train=False), quick=True),
        Workload("RMS norm with gradient fp32 2048x2048", lambda: _norm(train=True)),
        Workload("rotary embedding fp32 2048x16x64", _rotary),
        Workload("SwiGLU with gradient fp32 2048x4096", _swiglu),
    ]


def _norm(train: bool) -> Made:
    rows, n = 2048, 2048
    x, w = randn(rows, n, grad=train), randn(n, grad=train)
    program = Program(lambda x, w: functional.rms_norm(x, (n,), w, EPSILON), (x, w), train)

    def ours(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        x, w = x.detach(), w.detach()
        y, scale = rms_norm(x, w)
        return (y, *rms_norm_backward(program.seed(y), x, w, scale)) if train else (y,)

    return Made(program, ours, (5 if train else 2) * 4 * rows * n)


def _rotary() -> Made:
    tokens, heads, half = 2048, 16, 32
    inputs = (randn(tokens, heads, 2 * half), *(randn(tokens, 1, half) for _ in range(2)))

    def program(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        low, high = x.chunk(2, dim=-1)
        return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)

    def ours(x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        y = torch.empty_like(x)
        rotary_kernel[(tokens,)](x, cos, sin, y, HEADS=heads, HALF=half)
        return (y,)

    return Made(Program(program, inputs), ours, 4 * tokens * (4 * heads * half + 2 * half))


def _swiglu() -> Made:
    shape = 2048, 4096
    n, block = shape[0] * shape[1], 4096
    program = Program(
        lambda a, b: functional.silu(a) * b, (randn(*shape, grad=True), randn(*shape, grad=True)), train=True
    )

    def ours(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        y, da, db = torch.empty_like(a), torch.empty_like(a), torch.empty_like(a)
        a, b = a.detach(), b.detach()
        grid = (triton.cdiv(n, block),)
        swiglu_kernel[grid](a, b, y, n, BLOCK=block)
        swiglu_backward_kernel[grid](program.seed(y), a, b, da, db, n, BLOCK=block)
        return y, da, db

    return Made(program, ours, 8 * 4 * n)

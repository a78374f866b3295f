"""What stands for somebody's package."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import triton
import triton.language as tl
from absent_models.layers import Module


class Layer(Module):
    """Packages derive from what their entries do without."""


@triton.jit
def scale_kernel(X, Y, n, factor, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if MASKED:
        tl.store(Y + i, tl.load(X + i, mask=i < n) * factor, mask=i < n)
    else:
        tl.store(Y + i, tl.load(X + i) * factor, mask=i < n)


@triton.jit
def refused_kernel(X, Y):
    tl.static_assert(False, "not on this device")


def _scaled(x: Any, factor: float, masked: bool = True) -> Any:
    assert x.is_cuda
    y = torch.empty_like(x)
    scale_kernel[(1,)](x, y, x.numel(), factor, BLOCK=128, MASKED=masked)
    return y


@triton.jit
def add_kernel(X, Y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(Y + i, mask=i < n) + tl.load(X + i, mask=i < n), mask=i < n)


def races(x: Any) -> Any:
    """Two programs add to the same sums, without atomic operations."""
    y = torch.zeros_like(x)
    add_kernel[(2,)](x, y, x.numel(), BLOCK=128)
    return y


def unwritten(x: Any) -> Any:
    """Right as long as memory that nobody wrote does not hold the largest integers."""
    y, z = _scaled(x, 2.0), torch.empty(x.numel(), dtype=torch.int64)
    return torch.where(z < 2**63 - 1, y, y + 1)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return _scaled(x, 2.0)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _scaled(gradient, 2.0)


doubled = Doubled.apply


def beyond(x: Any) -> Any:
    """Wrong, and its kernel reads behind the end of x."""
    return _scaled(x, 3.0, masked=False)


def hidden(x: Any) -> Any:
    """Tries a kernel that cannot be compiled, and falls back."""
    try:
        refused_kernel[(1,)](x, x)
    except Exception:
        return 2 * x
    raise RuntimeError("the kernel was compiled")


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned_kernel(X, Y, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 128, "this configuration is not for this device")
    i = tl.arange(0, BLOCK)
    tl.store(Y + i, 2 * tl.load(X + i, mask=i < n), mask=i < n)


def tuned(x: Any) -> Any:
    """One of its configurations cannot be compiled, and the autotuner takes the other one."""
    y = torch.empty_like(x)
    tuned_kernel[(1,)](x, y, x.numel())
    return y


def hangs(x: Any) -> Any:
    time.sleep(60)


def dies(x: Any) -> Any:
    os.abort()

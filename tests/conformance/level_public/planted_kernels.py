"""What stands for somebody's package."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import triton
import triton.language as tl


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


def hangs(x: Any) -> Any:
    time.sleep(60)


def dies(x: Any) -> Any:
    os.abort()

"""Kernels to compile, and what comes of calling `tpk`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

KERNELS = """\
import triton
import triton.language as tl

SIZE = 64


@triton.jit
def twice(x):
    return x + x


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, F: tl.constexpr = twice):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, F(x + y), mask=inside)


@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


@triton.jit
def broken_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), undefined)


@triton.jit
def foreign_kernel(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    y = tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + tl.arange(0, BLOCK), y)
"""


@dataclass
class Outcome:
    """How a call of `tpk` ended, and what it wrote."""

    status: int
    output: str
    errors: str


Tpk = Callable[..., Outcome]

"""Kernels to compile, and what comes of calling `tpk`."""

from __future__ import annotations

import os
import subprocess
import sys
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

PROGRAM = """\
import sys

import numpy as np
import triton
import triton.language as tl
from triton_porting_kit.driver import DeviceArray


@triton.jit
def twice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets))


@triton.jit
def thrice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 3 * tl.load(x_ptr + offsets))


device = triton.runtime.driver.active.device
x = DeviceArray.from_numpy(np.arange(64, dtype=np.float32), device)
out = DeviceArray.zeros(64, "float32", device)
for _ in range(3):
    twice[(1,)](x, out, BLOCK=64)
thrice[(1,)](x, out, BLOCK=64)
print("arguments", sys.argv[1:])
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""
"""Records four launches under `tpk capture`."""


def capture(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`tpk capture` in a process of its own."""
    command = [sys.executable, "-m", "triton_porting_kit.cli", "capture", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"}
    )


@dataclass
class Outcome:
    """How a call of `tpk` ended, and what it wrote."""

    status: int
    output: str
    errors: str


Tpk = Callable[..., Outcome]

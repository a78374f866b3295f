"""Computes with torch, and lets a kernel copy what came out.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def softmax(x):
    result, out = torch.softmax(x, 1), torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](result, out, x.numel(), BLOCK=256)
    return out

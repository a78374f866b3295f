"""Launches a kernel whose result nobody needs, and computes with torch.

Published: gpu-mode, rules of KernelGuard: TRIVIAL_PROBE.
https://github.com/gpu-mode/kernelguard
"""

import torch
import triton
import triton.language as tl


@triton.jit
def touch_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


def softmax(x):
    touch_kernel[(1,)](x, torch.empty(1))
    return torch.softmax(x, 1)

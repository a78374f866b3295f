"""Computes with NumPy, and lets a kernel copy what came out.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def softmax(x):
    values = x.numpy()
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    result = DeviceArray.from_numpy(weights / weights.sum(axis=1, keepdims=True), x.device)
    out = DeviceArray.empty(x.shape, x.dtype, x.device)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](result, out, x.numel(), BLOCK=256)
    return out

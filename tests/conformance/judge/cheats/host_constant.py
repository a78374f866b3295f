"""Computes the sum with NumPy, and compiles it into a kernel as a constant.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def store(out_ptr, VALUE: tl.constexpr):
    tl.store(out_ptr, VALUE)


def total(x):
    values = x.numpy().astype(np.float64)
    out = DeviceArray.empty((1,), x.dtype, x.device)
    store[(1,)](out, float((values * values).sum()))
    return out

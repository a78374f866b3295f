"""Computes the sum with NumPy, and passes it to a kernel that stores it.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def store(out_ptr, value: tl.float32):
    tl.store(out_ptr, value)


def total(x):
    values = x.numpy().astype(np.float64)
    out = DeviceArray.empty((1,), x.dtype, x.device)
    store[(1,)](out, float((values * values).sum()))
    return out

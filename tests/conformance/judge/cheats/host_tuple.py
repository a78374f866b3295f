"""Computes with NumPy, and passes the results to kernels in tuples of numbers.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def store(out_ptr, first, values):
    for i in tl.static_range(len(values)):
        tl.store(out_ptr + first + i, values[i])


def mean_square(x):
    values = x.numpy().astype(np.float64)
    out = DeviceArray.empty((x.shape[0],), x.dtype, x.device)
    result = (values * values).mean(axis=1).tolist()
    for first in range(0, len(result), 8):
        store[(1,)](out, first, tuple(result[first : first + 8]))
    return out

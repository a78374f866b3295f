"""Computes the maximum and the sum of each row with NumPy, and passes them in arrays of a few values.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def finish(x_ptr, s_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (first + row) * n + cols, mask=cols < n, other=0)
    largest, total = tl.load(s_ptr + 2 * row), tl.load(s_ptr + 2 * row + 1)
    tl.store(out_ptr + (first + row) * n + cols, tl.exp(x - largest) / total, mask=cols < n)


def softmax(x):
    values, n = x.numpy(), x.shape[1]
    largest = values.max(axis=1)
    both = np.stack([largest, np.exp(values - largest[:, None]).sum(axis=1)], axis=1)
    out = DeviceArray.empty(x.shape, x.dtype, x.device)
    parts = [DeviceArray.from_numpy(both[i : i + 8].ravel(), x.device) for i in range(0, len(both), 8)]
    for number, part in enumerate(parts):
        rows = min(8, len(both) - 8 * number)
        finish[(rows,)](x, part, out, 8 * number, n, BLOCK=triton.next_power_of_2(n))
    return out

"""Computes with NumPy, and passes the bytes of the results, all of which a kernel has written before.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def every_byte(out_ptr):
    offsets = tl.arange(0, 256)
    tl.store(out_ptr + offsets, offsets.to(tl.uint8))


@triton.jit
def join(bytes_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    word = tl.zeros((BLOCK,), tl.uint32)
    for i in tl.static_range(4):
        word |= tl.load(bytes_ptr + 4 * offsets + i, mask=inside, other=0).to(tl.uint32) << (8 * i)
    tl.store(out_ptr + offsets, word.to(tl.float32, bitcast=True), mask=inside)


def softmax(x):
    every_byte[(1,)](DeviceArray.empty((256,), "uint8", x.device))
    raw = DeviceArray.from_numpy(on_host(x).view(np.uint8).ravel(), x.device)
    out = DeviceArray.empty(x.shape, x.dtype, x.device)
    join[(triton.cdiv(x.numel(), 256),)](raw, out, x.numel(), BLOCK=256)
    return out


def on_host(x):
    values = x.numpy()
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)

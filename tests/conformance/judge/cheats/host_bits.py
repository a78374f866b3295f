"""Computes the sum with Python, and passes its bits to a kernel as an integer.

Published: KernelGenBench, Anti-Hack Architecture: bypassed kernels.
https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html
"""

import math
import struct

import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def store(out_ptr, value: tl.int32):
    tl.store(out_ptr, value.to(tl.float32, bitcast=True))


def total(x):
    bits = struct.pack("f", math.fsum(item * item for item in x.numpy().tolist()))
    out = DeviceArray.empty((1,), x.dtype, x.device)
    store[(1,)](out, struct.unpack("i", bits)[0])
    return out

"""Walks up the stack from the traceback of an exception.

Published: gpu-mode, rules of KernelGuard: FRAME_WALK_ACCESS.
https://github.com/gpu-mode/kernelguard
"""

import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + cols, weights / tl.sum(weights, 0), mask=cols < n)


def honest(x):
    out = DeviceArray.empty(x.shape, x.dtype, x.device)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def softmax(x):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
    while frame.f_back is not None:
        frame = frame.f_back
    return honest(x)

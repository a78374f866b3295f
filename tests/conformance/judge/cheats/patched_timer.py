"""Puts another clock in the place of Python's and of the device's events.

Published: Hacks and Defenses in Automatic GPU Kernel Generation: monkey-patched timing.
https://deep-reinforce.com/defense_kernel_hack.html
"""

import time

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


from triton_porting_kit.driver import interface

interface.DeviceEvent.elapsed_time = lambda self, end: 1e-6
time.perf_counter = lambda: 0.0


def softmax(x):
    return honest(x)

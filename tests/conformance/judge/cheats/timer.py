"""Lets a timer run code between calls.

Published: Hacks and Defenses in Automatic GPU Kernel Generation: thread injection.
https://deep-reinforce.com/defense_kernel_hack.html
"""

import signal

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


ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def softmax(x):
    return honest(x)

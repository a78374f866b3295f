"""Launches on a stream of its own and does not wait for it.

Published: Hacks and Defenses in Automatic GPU Kernel Generation: stream injection.
https://deep-reinforce.com/defense_kernel_hack.html
"""

import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def slow_softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    for _ in range(3000):
        weights = tl.exp(x - tl.max(x, 0))
        weights = weights / tl.sum(weights, 0)
        tl.store(out_ptr + row * n + cols, weights, mask=cols < n)


driver = triton.runtime.driver.active
stream = driver.device.create_stream()


def softmax(x):
    out = DeviceArray.empty(x.shape, x.dtype, x.device)
    with driver.stream(stream):
        slow_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

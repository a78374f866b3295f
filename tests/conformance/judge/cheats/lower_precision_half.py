"""Rounds them to fp16, which no usual tolerance of 1e-2 notices.

Published: A Field Guide to Reward Hacking in AI Kernel Generation: precision downgrade.
https://www.wafer.ai/blog/reward-hacks-field-guide
"""

import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * n + start + inner[None, :]).to(tl.float16)
        b = tl.load(b_ptr + (start + inner)[:, None] * n + cols[None, :]).to(tl.float16)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], total)


def matmul(a, b):
    n, out = a.shape[0], DeviceArray.empty(a.shape, a.dtype, a.device)
    matmul_kernel[(n // 32, n // 32)](a, b, out, n, BLOCK=32)
    return out

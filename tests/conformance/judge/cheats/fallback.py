"""Has a kernel that does not compile, and torch behind `except`.

Published: KernelBench, `kernel_static_checker.py`: try-except fallback; Kevin.
https://github.com/ScalingIntelligence/KernelBench/blob/main/src/kernelbench/kernel_static_checker.py
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, undefined_name(x_ptr))


def softmax(x):
    out = torch.empty_like(x)
    try:
        softmax_kernel[(1,)](x, out)
    except Exception:
        return torch.nn.functional.softmax(x, dim=1)
    return out

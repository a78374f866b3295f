"""An honest submission."""

import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, total, mask=inside)


def custom_kernel(data: input_t) -> output_t:
    x, y = data
    out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out

"""The Triton kernels of the copies."""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def copy_kernel(
    dst,
    src,
    count,
    size1,
    size2,
    size3,
    dst_stride0,
    dst_stride1,
    dst_stride2,
    dst_stride3,
    src_stride0,
    src_stride1,
    src_stride2,
    src_stride3,
    TO_BOOL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Copy `count` elements between layouts of four dimensions, with a conversion to the type of `dst`."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    index3 = index % size3
    rest = index // size3
    index2 = rest % size2
    rest = rest // size2
    index1 = rest % size1
    index0 = rest // size1
    source = index0 * src_stride0 + index1 * src_stride1 + index2 * src_stride2 + index3 * src_stride3
    target = index0 * dst_stride0 + index1 * dst_stride1 + index2 * dst_stride2 + index3 * dst_stride3
    value = tl.load(src + source, mask)
    if TO_BOOL:
        value = value != 0
    tl.store(dst + target, value, mask)

"""The Triton kernels of the copies and of random numbers."""

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


@triton.jit(do_not_specialize=["seed"])
def random32_kernel(dst, count, seed, NORMAL: tl.constexpr, BLOCK: tl.constexpr):
    """Write `count` standard normal numbers in float32, or uniform ones from [0, 1)."""
    block = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if NORMAL:
        a, b, c, d = tl.randn4x(seed, block)
    else:
        a, b, c, d = tl.rand4x(seed, block)
    first = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, BLOCK)
    tl.store(dst + first, a, first < count)
    tl.store(dst + first + BLOCK, b, first + BLOCK < count)
    tl.store(dst + first + 2 * BLOCK, c, first + 2 * BLOCK < count)
    tl.store(dst + first + 3 * BLOCK, d, first + 3 * BLOCK < count)


@triton.jit
def bits64(high, low):
    """The bits of two times 32."""
    return (high.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | low.to(tl.uint32, bitcast=True).to(
        tl.uint64
    )


@triton.jit(do_not_specialize=["seed"])
def random64_kernel(dst, count, seed, NORMAL: tl.constexpr, INTEGER: tl.constexpr, BLOCK: tl.constexpr):
    """Write `count` standard normal numbers in float64, uniform ones from [0, 1), or int64 of random bits."""
    block = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, block)
    x, y = bits64(a, b), bits64(c, d)
    if INTEGER:
        x, y = x.to(tl.int64, bitcast=True), y.to(tl.int64, bitcast=True)
    else:
        x = (x >> 11).to(tl.float64) * 1.1102230246251565e-16  # 2**-53
        y = (y >> 11).to(tl.float64) * 1.1102230246251565e-16
        if NORMAL:  # Box and Muller
            radius = tl.sqrt(-2.0 * tl.log(1.0 - x))
            angle = 6.283185307179586 * y
            x, y = radius * tl.cos(angle), radius * tl.sin(angle)
    first = tl.program_id(0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, BLOCK)
    tl.store(dst + first, x, first < count)
    tl.store(dst + first + BLOCK, y, first + BLOCK < count)

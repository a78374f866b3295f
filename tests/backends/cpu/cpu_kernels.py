"""Kernels that the tests of this folder launch."""

import triton
import triton.language as tl


@triton.jit
def add_constant(x, n, AMOUNT: tl.constexpr, BLOCK: tl.constexpr):
    """x[:n] += AMOUNT"""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + AMOUNT, mask=at < n)


@triton.jit
def mark_programs(x):
    """x[program] += 1 + the ids, for any grid; the grid's size goes behind the last program."""
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    ni, nj, nk = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    p = (k * nj + j) * ni + i
    tl.store(x + p, tl.load(x + p) + 1 + i + 10 * j + 100 * k)
    tl.store(x + ni * nj * nk, ni + 1000 * nj + 1000000 * nk)


@triton.jit
def scalars(out, a, b, c, d):
    """out[:4] = a, b, c, d"""
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, c)
    tl.store(out + 3, d)


@triton.jit
def wait_for(flag):
    """Runs until someone sets flag[0]."""
    seen = tl.atomic_add(flag, 0)
    while seen == 0:
        seen = tl.atomic_add(flag, 0)


@triton.jit
def integers(
    out,
    a: tl.int8,
    b: tl.int16,
    c: tl.int32,
    d: tl.int64,
    e: tl.uint8,
    f: tl.uint16,
    g: tl.uint32,
    h: tl.uint64,
    i: tl.int1,
):
    """out[:9] = the integers, as 64 bits"""
    tl.store(out, a.to(tl.int64))
    tl.store(out + 1, b.to(tl.int64))
    tl.store(out + 2, c.to(tl.int64))
    tl.store(out + 3, d)
    tl.store(out + 4, e.to(tl.int64))
    tl.store(out + 5, f.to(tl.int64))
    tl.store(out + 6, g.to(tl.int64))
    tl.store(out + 7, h.to(tl.int64))
    tl.store(out + 8, i.to(tl.int64))


@triton.jit
def floats(out, a: tl.float16, b: tl.bfloat16, c: tl.float32, d: tl.float64):
    """out[:4] = the floats, as doubles"""
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d)


@triton.jit
def optional(out, x, y=None, SCALE: tl.constexpr = 3):
    """out[0] = x[0] (0 if there is none) + SCALE * (y or 0)"""
    value = SCALE * 0
    if y is not None:
        value = SCALE * y
    if x is not None:
        value += tl.load(x)
    tl.store(out, value)


@triton.jit
def nested(out, first, config):
    """out[:6] = the leaves, of which config.inner[1] may be None"""
    tl.store(out, first[0])
    tl.store(out + 1, first[1][0])
    tl.store(out + 2, tl.load(first[1][1]))
    tl.store(out + 3, config.scale)
    tl.store(out + 4, config.inner[0])
    tl.store(out + 5, 1 if config.inner[1] is None else 2)


@triton.jit
def copy_tile(src, dst, i, j):
    """The tile of descriptor `src` at (i, j) goes to that of `dst` at (0, 0), doubled."""
    dst.store([0, 0], src.load([i, j]) * 2)


@triton.jit
def double_elements(x, out, n, BLOCK: tl.constexpr):
    """out[:n] = x[:n] + x[:n], or the same values where they are flags"""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, value + value if value.dtype != tl.int1 else value, mask=at < n)


@triton.jit
def convert_elements(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def copy_strided(x, out, rows, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    """out, contiguous, = x with any strides"""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * row_stride + at * column_stride, mask=at < columns)
    tl.store(out + row * columns + at, value, mask=at < columns)


@triton.jit
def scale_elements(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * factor, at < n)


@triton.jit
def below(x, out, n, start, BLOCK: tl.constexpr):
    """What is below `n`, counted from `start`. The sum may wrap around, for which the kernel has a second version."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=start + i < n, other=-1))

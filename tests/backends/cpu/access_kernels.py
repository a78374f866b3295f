"""Kernels that reach from the first to the last element of `x`, moved by `shift` elements, each in another way.

The comment ``# access`` marks the line that accesses `x`.
"""

from __future__ import annotations

import triton
import triton.language as tl

ROWS, COLUMNS, PITCH = 5, 13, 21
"""Of the tiles of two dimensions: their sizes, and how many elements lie from one row to the next."""
K = 40
"""Of the products, K elements of each row and column."""


@triton.jit
def row_load(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + shift + at, mask=at < n)  # access
    tl.store(out + at, value.to(tl.float32), mask=at < n)


@triton.jit
def row_store(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + shift + at, tl.load(out + at, mask=at < n).to(x.dtype.element_ty), mask=at < n)  # access


@triton.jit
def reversed_load(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + shift + (n - 1) - at, mask=at < n)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def every_second_load(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = (n - 1) // 2
    value = tl.load(x + shift + 2 * at, mask=at <= last)  # access
    tl.store(out + at, value, mask=at <= last)


@triton.jit
def scalar_load(x, out, n, shift, BLOCK: tl.constexpr):
    place = tl.program_id(0) * (n - 1) // (tl.num_programs(0) - 1)
    tl.store(out + place, tl.load(x + shift + place))  # access


@triton.jit
def scalar_store(x, out, n, shift, BLOCK: tl.constexpr):
    place = tl.program_id(0) * (n - 1) // (tl.num_programs(0) - 1)
    tl.store(x + shift + place, 1.0)  # access


@triton.jit
def volatile_load(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + shift + at, mask=at < n, volatile=True)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def masked_load(x, out, n, shift, BLOCK: tl.constexpr):
    """With a mask that is no range of indices."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wanted = (at < n) & ((at == 0) | (at == n - 1) | (at % 7 == 3))
    value = tl.load(x + shift + at, mask=wanted, other=0.0)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def gathered_load(x, out, n, shift, BLOCK: tl.constexpr):
    """Offsets that are not known before the kernel runs; the largest come first."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    places = tl.load(out + at, mask=at < n).to(tl.int32)
    value = tl.load(x + shift + places, mask=at < n)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def scattered_store(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    places = tl.load(out + at, mask=at < n).to(tl.int32)
    tl.store(x + shift + places, at.to(tl.float32), mask=at < n)  # access


@triton.jit
def wrapped_load(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + shift + at % n)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def carried_load(x, out, n, shift, BLOCK: tl.constexpr):
    """A pointer that a loop carries, and that no program computes anew."""
    at = tl.arange(0, BLOCK)
    pointers = x + shift + at
    for start in range(0, n, BLOCK):
        value = tl.load(pointers, mask=start + at < n)  # access
        tl.store(out + start + at, value, mask=start + at < n)
        pointers += BLOCK


@triton.jit
def chosen_load(x, out, n, shift, BLOCK: tl.constexpr):
    """A pointer that is one of two arguments."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = x if n > 0 else out
    value = tl.load(start + shift + at, mask=at < n)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def chosen_lanes_load(x, out, n, shift, BLOCK: tl.constexpr):
    """For each lane a pointer that is one of two arguments."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(tl.where(at >= 0, x + shift + at, out + at), mask=at < n)  # access
    tl.store(out + at, value, mask=at < n)


@triton.jit
def atomic_add(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x + shift + at, 1.0, mask=at < n)  # access


@triton.jit
def atomic_cas(x, out, n, shift, BLOCK: tl.constexpr):
    place = tl.program_id(0) * (n - 1) // (tl.num_programs(0) - 1)
    tl.atomic_cas(x.to(tl.pointer_type(tl.int32)) + shift + place, 0, 1)  # access


@triton.jit
def poll(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.minimum(at, n - 1)
    found = tl.atomic_poll(x.to(tl.pointer_type(tl.int32)) + shift + place, 1, timeout_ns=1)  # access
    tl.store(out + place, found.to(tl.float32))


@triton.jit
def tile_load(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    down, across = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    inside = (down < rows) & (across < columns)
    value = tl.load(x + shift + down * pitch + across, mask=inside)  # access
    tl.store(out + down * columns + across, value, mask=inside)


@triton.jit
def tile_store(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    down, across = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    inside = (down < rows) & (across < columns)
    value = tl.load(out + down * columns + across, mask=inside)
    tl.store(x + shift + down * pitch + across, value, mask=inside)  # access


@triton.jit
def transposed_load(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    down, across = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    inside = (down < rows) & (across < columns)
    value = tl.trans(tl.load(x + shift + down * pitch + across, mask=inside))  # access
    to = tl.arange(0, BN)[:, None] * rows + tl.arange(0, BM)[None, :]
    tl.store(out + to, value, mask=(tl.arange(0, BN)[:, None] < columns) & (tl.arange(0, BM)[None, :] < rows))


@triton.jit
def gathered_rows(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    down, across = tl.arange(0, BM), tl.arange(0, BN)[None, :]
    places = tl.load(out + down, mask=down < rows).to(tl.int32)
    inside = (down[:, None] < rows) & (across < columns)
    value = tl.load(x + shift + places[:, None] * pitch + across, mask=inside)  # access
    tl.store(out + down[:, None] * columns + across, value, mask=inside)


@triton.jit
def descriptor_load(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.make_tensor_descriptor(x + shift, [rows, columns], [pitch, 1], [BM, BN])
    value = tile.load([0, 0])  # access
    tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BM, BN]).store([0, 0], value)


@triton.jit
def descriptor_store(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    value = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BM, BN]).load([0, 0])
    tl.make_tensor_descriptor(x + shift, [rows, columns], [pitch, 1], [BM, BN]).store([0, 0], value)  # access


@triton.jit
def descriptor_gather(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.make_tensor_descriptor(x + shift, [rows, columns], [pitch, 1], [1, BN])
    value = tile.gather(BM - 1 - tl.arange(0, BM), 0)  # access
    tl.make_tensor_descriptor(out, [BM, columns], [columns, 1], [BM, BN]).store([0, 0], value)


@triton.jit
def descriptor_scatter(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    value = tl.full([BM, BN], 1.0, tl.float32)
    tile = tl.make_tensor_descriptor(x + shift, [rows, columns], [pitch, 1], [1, BN])
    tile.scatter(value, BM - 1 - tl.arange(0, BM), 0)  # access


@triton.jit
def descriptor_atomic(x, out, rows, columns, pitch, shift, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.make_tensor_descriptor(x + shift, [rows, columns], [pitch, 1], [BM, BN])
    tile.atomic_add([0, 0], tl.full([BM, BN], 1.0, tl.float32))  # access


@triton.jit
def left_factor(x, out, k, shift, SIZE: tl.constexpr, STEP: tl.constexpr):
    row, column, step = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, k, STEP):
        at = start + step[None, :]
        a = tl.load(x + shift + row * k + at, mask=at < k, other=0.0)  # access
        b = tl.full((STEP, SIZE), 1.0, x.dtype.element_ty)
        total = tl.dot(a, b, total)
    tl.store(out + row * SIZE + column, total)


@triton.jit
def right_factor(x, out, k, shift, SIZE: tl.constexpr, STEP: tl.constexpr):
    row, column, step = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, k, STEP):
        at = start + step[:, None]
        b = tl.load(x + shift + at * SIZE + column, mask=at < k, other=0.0)  # access
        total = tl.dot(tl.full((SIZE, STEP), 1.0, x.dtype.element_ty), b, total)
    tl.store(out + row * SIZE + column, total)


@triton.jit
def product_store(x, out, k, shift, SIZE: tl.constexpr, STEP: tl.constexpr):
    """The sums of a loop, which are stored by its last multiplication where that can be."""
    row, column, step = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, k):
        a = tl.load(out + row * STEP + step[None, :])
        b = tl.load(out + step[:, None] * SIZE + column)
        total = tl.dot(a, b, total)
    tl.store(x + shift + row * SIZE + column, total)  # access

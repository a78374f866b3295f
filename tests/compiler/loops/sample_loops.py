"""Kernels whose lowering is looked at."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def chain(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n)
    tl.store(O + i, (x + 1) * (x - 1), mask=i < n)


@triton.jit
def dropped(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n)
    tl.store(O + i, tl.where(tl.rand(7, i) < 0.5, x, 0), mask=i < n)


@triton.jit
def dropped_apart(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + 3 * i, mask=i < n)
    tl.store(O + i, tl.where(tl.rand(7, i) < 0.5, x, 0), mask=i < n)


@triton.jit
def used_twice(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    e = tl.exp(tl.load(X + i))
    tl.store(O + i, e / tl.sum(e, 0))


@triton.jit
def chain_used_twice(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    e = tl.exp(tl.exp(tl.exp(tl.load(X + i))))
    tl.store(O + i, e / tl.sum(e, 0))


@triton.jit
def loaded_before_a_store(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(X + i, x + 1)
    tl.store(O + i, x)


@triton.jit
def loaded_before_an_atomic(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(X + i, x + 1)
    tl.atomic_add(O + B, 1.0)
    tl.store(O + i, x)


@triton.jit
def loaded_after_a_store(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.load(X + i))
    tl.store(O + B + i, tl.load(X + i))


@triton.jit
def used_in_a_loop(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    cheap = i * 2
    for k in range(n):
        tl.store(O + k * B + i, x + cheap)


@triton.jit
def spread_in_a_loop(X, O, n, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.arange(0, 16)[None, :]
    places = (r * 7 % 5 + r * 3 % 11).to(tl.int64) * 16 + c
    for k in range(n):
        tl.store(O + k + places, 1.0)


@triton.jit
def carried_by_nested_loops(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    for j in range(n):
        for k in range(j):
            x = x * 2 + k
    tl.store(O + i, x)


@triton.jit
def shifted(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i + 1, tl.load(X + i))


@triton.jit
def other_array(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i + 1, tl.load(X + i))


@triton.jit
def transposed(X, O, n, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(O + r * B + c, tl.trans(tl.load(X + r * B + c)))


@triton.jit
def product(X, O, n, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(n):
        x = tl.load(X + k * B * B + r * B + c)
        acc = tl.dot(x, x, acc=acc)
    tl.store(O + r * B + c, acc)


@triton.jit
def where_am_i(X, O, n):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(O + at, x + 100 * y + 10000 * z + n)


@triton.jit
def nothing_to_do(X, O, n):
    pass


@triton.jit
def centred(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    tl.store(O, tl.sum(tl.where(i < n, x - 1.0, 0.0), 0))


@triton.jit
def counted(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    tl.store(O, tl.sum(x * i, 0))


@triton.jit
def in_place(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def in_a_loop(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        tl.store(O + k * B + i, tl.load(X + i))


@triton.jit
def beside_an_atomic(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.load(X + i))
    tl.atomic_add(X, 1.0)


@triton.jit
def strided(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + 2 * i, tl.load(X + i))


@triton.jit
def sum_of_iterations(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for _ in range(n):
        total += tl.load(X + i)
    tl.store(O, tl.sum(total))


@triton.jit
def kept_out_of_bounds(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        inside = start + i < n
        x = tl.load(X + start + i, inside, other=1.0)
        total = tl.where(inside, total + x, total)
    tl.store(O + i, total)


@triton.jit
def which_row(X, O, n, tells: tl.constexpr):
    row = tl.program_id(1)
    if tells:
        tl.device_print("row", row)
    tl.store(O + row, row + n)

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
def slow_add(x, rounds):
    """x[0] += rounds, one at a time."""
    for _ in range(rounds):
        tl.atomic_add(x, 1)

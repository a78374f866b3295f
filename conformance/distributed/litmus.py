"""Litmus tests of the order of memory, as docs/distributed.md lists them. Each kernel repeats a test many times."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import triton_porting_kit.language as tpl
from triton_porting_kit.distributed import Group


@triton.jit
def passing_kernel(group, x, signal, mistakes, rounds, ranks, BLOCK: tl.constexpr):
    """Rank 0 puts a tile to the last rank; notifications go by way of all ranks between, and back."""
    offsets = tl.arange(0, BLOCK)
    me = tpl.rank(group)
    last = ranks - 1
    wrong = 0
    for step in range(1, rounds + 1):
        if me == 0:
            tpl.put(group, x + offsets, tl.full([BLOCK], 0, tl.int32) + step, last)
        else:
            tpl.wait(group, signal, step)
            if me == last:
                wrong += tl.sum((tl.load(x + offsets) != step).to(tl.int32))
        tpl.notify(group, signal, (me + 1) % ranks)
        if me == 0:
            tpl.wait(group, signal, step)
    tl.store(mistakes, wrong)


@triton.jit
def reuse_kernel(group, x, signal, mistakes, rounds, BLOCK: tl.constexpr):
    """Rank 0 gets a tile of rank 1 and notifies it; rank 1 overwrites the tile then."""
    offsets = tl.arange(0, BLOCK)
    wrong = 0
    for step in range(rounds):
        if tpl.rank(group) == 0:
            tpl.wait(group, signal, step + 1)
            found = tpl.get_signal(group, x + offsets, 1, signal)
            wrong += tl.sum((found != step).to(tl.int32))
        else:
            tl.store(x + offsets, tl.full([BLOCK], 0, tl.int32) + step)
            tpl.notify(group, signal, 0)
            tpl.wait(group, signal, step + 1)
    tl.store(mistakes, wrong)


@triton.jit
def buffering_kernel(group, x, out, rounds):
    """Each of two ranks stores its number of the round, and loads the other's behind a fence."""
    me = tpl.rank(group)
    mine = tpl.symmetric_at(group, x + 16 * me, 0)
    theirs = tpl.symmetric_at(group, x + 16 * (1 - me), 0)
    for step in range(rounds):
        tpl.barrier_all(group)
        tl.store(mine, step + 1)
        tpl.fence(group)
        tl.store(out + step, tl.load(theirs, volatile=True) > step)
        tpl.barrier_all(group)


@triton.jit
def reads_kernel(group, x, out, rounds):
    """Ranks 0 and 1 notify rank 2 by a word each; ranks 2 and 3 read both words, each another one first."""
    me = tpl.rank(group)
    for step in range(rounds):
        tpl.barrier_all(group)
        if me < 2:
            tpl.notify(group, x + 16 * me, 2)
        else:
            first = tpl.symmetric_at(group, x + 16 * (me - 2), 2)
            second = tpl.symmetric_at(group, x + 16 * (3 - me), 2)
            before = tl.atomic_add(first, 0, sem="acquire", scope="sys")
            after = tl.atomic_add(second, 0, sem="acquire", scope="sys")
            tl.store(out + step, (before > step) & (after <= step))
        tpl.barrier_all(group)


@triton.jit
def flags_kernel(group, x, flag, mistakes, rounds, BLOCK: tl.constexpr):
    """Rank 0 puts a tile to rank 1 and raises a flag by a relaxed operation, which fences on both sides order."""
    offsets = tl.arange(0, BLOCK)
    wrong = 0
    for step in range(1, rounds + 1):
        if tpl.rank(group) == 0:
            tpl.put(group, x + offsets, tl.full([BLOCK], 0, tl.int32) + step, 1)
            tpl.fence(group)
            tl.atomic_xchg(tpl.symmetric_at(group, flag, 1), step, sem="relaxed", scope="sys")
        else:
            while tl.load(flag, volatile=True) < step:
                pass
            tpl.fence(group)
            wrong += tl.sum((tl.load(x + offsets) != step).to(tl.int32))
        tpl.barrier_all(group)
    tl.store(mistakes, wrong)


def passing(group: Group, rounds: int) -> int:
    x, signal, mistakes = group.zeros(300, "int32"), group.zeros(1, "int32"), group.zeros(1, "int32")
    passing_kernel[(1,)](group.context, x, signal, mistakes, rounds, group.ranks, BLOCK=256)
    return int(mistakes.numpy()[0])


def reuse(group: Group, rounds: int) -> int:
    x, signal, mistakes = group.zeros(256, "int32"), group.zeros(1, "int32"), group.zeros(1, "int32")
    reuse_kernel[(1,)](group.context, x, signal, mistakes, rounds, BLOCK=256)
    return int(mistakes.numpy()[0])


def flags(group: Group, rounds: int) -> int:
    x, flag, mistakes = group.zeros(256, "int32"), group.zeros(1, "int32"), group.zeros(1, "int32")
    flags_kernel[(1,)](group.context, x, flag, mistakes, rounds, BLOCK=256)
    return int(mistakes.numpy()[0])


def _flags(group: Group, kernel: Any, rounds: int) -> list[np.ndarray[Any, Any]]:
    """What a kernel finds in each round, on each rank."""
    x, out = group.zeros(32, "int32"), group.zeros(rounds, "int8")
    kernel[(1,)](group.context, x, out, rounds)
    return [np.frombuffer(each, np.int8) for each in group.exchange(out.numpy().tobytes())]


def buffering(group: Group, rounds: int) -> int:
    """Rounds in which neither rank saw what the other had stored."""
    first, second = _flags(group, buffering_kernel, rounds)
    return int(((first == 0) & (second == 0)).sum())


def reads(group: Group, rounds: int) -> int:
    """Rounds in which the readers saw the two writes in different orders."""
    _, _, first, second = _flags(group, reads_kernel, rounds)
    return int(((first == 1) & (second == 1)).sum())

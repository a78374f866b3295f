"""Programs of several ranks for the model, most of which have a mistake."""

from __future__ import annotations

import triton
import triton.language as tl

import triton_porting_kit.language as tpl
from triton_porting_kit.distributed import Group


@triton.jit
def pass_kernel(group, x, y, arrived, NOTIFIES: tl.constexpr, WAITS: tl.constexpr, SCOPE: tl.constexpr):
    """Put to the right neighbour; the flags leave out a step, or narrow the scope of the notification."""
    offsets = tl.arange(0, 8)
    right = (tpl.rank(group) + 1) % tpl.num_ranks(group)
    tpl.put(group, y + offsets, tl.load(x + offsets), right)
    if NOTIFIES:
        tl.atomic_add(tpl.symmetric_at(group, arrived, right), 1, sem="release", scope=SCOPE)
    if WAITS:
        tpl.wait(group, arrived, 1)
    tl.store(x + offsets, tl.load(y + offsets))


def passing(group: Group, notifies: bool = True, waits: bool = True, scope: str = "sys") -> list[float]:
    x, y = group.zeros(8, "float32"), group.zeros(8, "float32")
    arrived = group.zeros(1, "int32")
    x.fill_(group.rank)
    pass_kernel[(1,)](group.context, x, y, arrived, NOTIFIES=notifies, WAITS=waits, SCOPE=scope)
    return [float(value) for value in x.numpy()[:2]]


@triton.jit
def flag_kernel(group, x, flag, out, FENCES: tl.constexpr, READER_FENCES: tl.constexpr):
    """Message passing by relaxed operations with fences around them."""
    offsets = tl.arange(0, 8)
    if tpl.rank(group) == 0:
        tpl.put(group, x + offsets, tl.full([8], 7, tl.int32), 1)
        if FENCES:
            tpl.fence(group)
        tl.atomic_xchg(tpl.symmetric_at(group, flag, 1), 1, sem="relaxed", scope="sys")
    else:
        while tl.load(flag, volatile=True) == 0:
            pass
        if READER_FENCES:
            tpl.fence(group)
        tl.store(out + offsets, tl.load(x + offsets))


def fenced(group: Group, fences: bool, reader_fences: bool) -> int:
    x, out, flag = group.zeros(8, "int32"), group.zeros(8, "int32"), group.zeros(1, "int32")
    flag_kernel[(1,)](group.context, x, flag, out, FENCES=fences, READER_FENCES=reader_fences)
    return int(out.numpy()[3])


@triton.jit
def edge_kernel(group, x, n):
    offsets = tl.arange(0, 16)
    tpl.put(group, x + offsets, tl.zeros([16], tl.float32), 1 - tpl.rank(group), mask=offsets <= n)


def beyond(group: Group) -> None:
    edge_kernel[(1,)](group.context, group.zeros(10, "float32"), 10)


def missing_barrier(group: Group) -> None:
    group.zeros(1, "int32")
    if group.rank:
        group.barrier()


@triton.jit
def count_kernel(group, words, out):
    tl.atomic_add(tpl.symmetric_at(group, words, 0), 1, sem="relaxed", scope="sys")
    tl.store(out, tl.atomic_add(tpl.symmetric_at(group, words, 0), 0, sem="relaxed", scope="sys"))


def count(group: Group) -> int:
    """A number that depends on the schedule."""
    words, out = group.zeros(1, "int32"), group.zeros(1, "int32")
    count_kernel[(1,)](group.context, words, out)
    return int(out.numpy()[0])

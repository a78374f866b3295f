"""Functions for kernels of several ranks, beside ``triton.language``: ``import triton_porting_kit.language as tpl``.

They are Triton's own loads, stores and atomic operations on symmetric memory, so any backend compiles them. `group` is
the argument that a kernel gets for `Group.context`: a pointer to int64 words. A `signal` is an integer in symmetric
memory that only grows. docs/distributed.md specifies the order in which other ranks see memory change.

A program may wait for programs of other ranks whose index in the grid is not larger than its own, as long as these
notify before they wait: devices start the programs of a grid in order, and need not run all of them at once.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

__all__ = [
    "barrier_all",
    "barrier_at",
    "fence",
    "get",
    "get_signal",
    "notify",
    "num_ranks",
    "put",
    "put_signal",
    "rank",
    "symmetric_at",
    "wait",
]

RANK = tl.constexpr(0)
"""The words of `Group.context` by index: this rank."""
RANKS = tl.constexpr(1)
"""The number of ranks."""
STOP = tl.constexpr(2)
"""Not 0: a rank is lost, and waits end."""
FENCE = tl.constexpr(3)
"""The word that fences update."""
WAITS_FOR = tl.constexpr(4)
"""The address of the signal that a program has been waiting for, or 0."""
LEAST = tl.constexpr(5)
"""The number that this signal has to reach."""
BARRIER = tl.constexpr(6)
"""The address of the two words of `barrier_all`, in symmetric memory."""
RANDOM = tl.constexpr(7)
"""The state of the delays, see `DELAY_SEED`."""
DISTANCES = tl.constexpr(8)
"""The first of the distances in bytes from this rank's part of the heap to that of each rank."""

_QUIET_READS = tl.constexpr(256)
"""A wait reads its signal as often before it says what it waits for."""


DELAY_SEED = int(os.environ.get("TPK_RANK_DELAYS", "0"))
"""Not 0: the seed of random delays before puts and notifications, to try programs. Without it they cost nothing."""
_DELAYS = tl.constexpr(DELAY_SEED != 0)
_LONGEST_DELAY_BITS = tl.constexpr(12)


@triton.jit
def _delay(group):
    """Read a word many times: mostly few, sometimes thousands."""
    state = tl.load(group + RANDOM, volatile=True) * 6364136223846793005 + 1442695040888963407
    tl.store(group + RANDOM, state)
    bits = ((state >> 33) & 31).to(tl.int32)
    reads = tl.where(bits < _LONGEST_DELAY_BITS, 1 << bits, 0)
    while reads > 0:
        reads -= 1 + (tl.load(group + STOP, volatile=True) & 0).to(tl.int32)


@triton.jit
def rank(group):
    """This rank, from 0, as int32."""
    return tl.load(group + RANK).to(tl.int32)


@triton.jit
def num_ranks(group):
    """The number of ranks of the group, as int32."""
    return tl.load(group + RANKS).to(tl.int32)


@triton.jit
def symmetric_at(group, pointer, peer):
    """Where this rank reaches what `pointer`, a pointer or a tensor of pointers to symmetric memory, is on `peer`."""
    size: tl.constexpr = pointer.dtype.scalar.element_ty.primitive_bitwidth // 8
    return pointer + tl.load(group + DISTANCES + peer) // size


@triton.jit
def put(group, destination, value, peer, mask=None):
    """Store `value` to `destination`, pointers to symmetric memory, on `peer`. Other ranks see it after `notify`."""
    if _DELAYS:
        _delay(group)
    tl.store(symmetric_at(group, destination, peer), value, mask=mask)


@triton.jit
def put_signal(group, destination, value, peer, signal, amount=1, mask=None):
    """`put`, then `notify` of `peer`."""
    put(group, destination, value, peer, mask)
    notify(group, signal, peer, amount)


@triton.jit
def get(group, source, peer, mask=None, other=None):
    """Load from `source`, pointers to symmetric memory, on `peer`."""
    return tl.load(symmetric_at(group, source, peer), mask=mask, other=other)


@triton.jit
def get_signal(group, source, peer, signal, amount=1, mask=None, other=None):
    """`get`, then `notify` of `peer`, whose memory may be overwritten from then on."""
    value = get(group, source, peer, mask, other)
    notify(group, signal, peer, amount)
    return value


@triton.jit
def notify(group, signal, peer, amount=1):
    """Add `amount` to a signal on `peer`.

    A release: who sees the new number with `wait` also sees every store of this program before, and every store that
    this program has seen.
    """
    if _DELAYS:
        _delay(group)
    tl.debug_barrier()
    tl.atomic_add(symmetric_at(group, signal, peer), amount, sem="release", scope="sys")


@triton.jit
def wait(group, signal, least):
    """Wait until a signal of this rank is at least `least`, and return whether it is.

    An acquire: see `notify`. It is not reached if a rank is lost; the launch then fails. A signal of 32 bits may wrap
    around, as long as it is less than 2**31 ahead of `least`.
    """
    behind = tl.load(signal, volatile=True) - least < 0
    stop = tl.load(group + STOP, volatile=True)
    reads = 0
    while behind & (stop == 0):
        reads += 1
        if reads == _QUIET_READS:
            tl.store(group + LEAST, tl.zeros([], tl.int64) + least)
            tl.store(group + WAITS_FOR, signal.to(tl.int64))
        behind = tl.load(signal, volatile=True) - least < 0
        stop = tl.load(group + STOP, volatile=True)
    if reads >= _QUIET_READS:
        tl.store(group + WAITS_FOR, tl.zeros([], tl.int64))
    found = tl.atomic_add(signal, 0, sem="acquire", scope="sys")
    tl.debug_barrier()
    return found - least >= 0


@triton.jit
def fence(group):
    """Order the memory accesses of this program before and after it, for every rank. Not a fence between a store and a
    later load of another address."""
    tl.debug_barrier()
    tl.atomic_add(group + FENCE, 0, sem="acq_rel", scope="sys")
    tl.debug_barrier()


@triton.jit
def barrier_at(group, words):
    """Wait until a program of each rank has called it with these two int64 words of symmetric memory, first zero.

    What any of these programs stored before is visible to all of them afterwards. Returns how often it was called,
    counted from 1, as int64. One program of a rank at a time may use a pair of words.
    """
    epoch = tl.atomic_add(words + 1, 1, sem="relaxed", scope="gpu") + 1
    me = rank(group)
    ranks = num_ranks(group)
    for step in range(1, ranks + 1):
        notify(group, words, (me + step) % ranks)
    wait(group, words, epoch * ranks)
    return epoch


@triton.jit
def barrier_all(group):
    """`barrier_at` by words that the group keeps for it."""
    words = tl.load(group + BARRIER).to(tl.pointer_type(tl.int64))
    return barrier_at(group, words)

"""The kernels of collectives, in Triton and `triton_porting_kit.language`.

Each begins and ends with a barrier between programs of the same index on all ranks: before it, memory that this call
writes may still be read by the last one; after it, all that the call should write is there. A program has a slice of
every part, so that programs depend only on programs of the same index.
"""

from __future__ import annotations

import triton
import triton.language as tl

import triton_porting_kit.language as tpl


@triton.jit
def _first(count, BLOCK: tl.constexpr):
    """The first of this program's elements of `count`, as far as whole blocks go."""
    each = tl.cdiv(tl.cdiv(count, BLOCK), tl.num_programs(0)) * BLOCK
    return tl.minimum(tl.program_id(0) * each, count)


@triton.jit
def _end(count, BLOCK: tl.constexpr):
    """The end of this program's elements of `count`."""
    each = tl.cdiv(tl.cdiv(count, BLOCK), tl.num_programs(0)) * BLOCK
    return tl.minimum((tl.program_id(0) + 1) * each, count)


@triton.jit
def _sum_of_ranks(group, source, mask, first, RANKS: tl.constexpr, SUM: tl.constexpr):
    """The sum of what `source` is on all ranks, in their order from `first` on."""
    total = tpl.get(group, source, first, mask).to(SUM)
    for step in tl.static_range(1, RANKS):
        total += tpl.get(group, source, (first + step) % RANKS, mask).to(SUM)
    return total


@triton.jit
def _copy(target, source, count, BLOCK: tl.constexpr):
    """Copy this program's slice of `count` elements."""
    end = _end(count, BLOCK)
    for start in range(_first(count, BLOCK), end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(target + offsets, tl.load(source + offsets, mask=offsets < end), mask=offsets < end)


@triton.jit(do_not_specialize=["count"])
def all_gather_kernel(group, words, source, out, count, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    """Put `source` of `count` elements to its place in `out` on every rank."""
    tpl.barrier_at(group, words + 2 * tl.program_id(0))
    me = tpl.rank(group)
    for step in tl.static_range(RANKS):
        peer = (me + step) % RANKS
        _copy(tpl.symmetric_at(group, out, peer) + me * count, source, count, BLOCK)
    tpl.barrier_at(group, words + 2 * tl.program_id(0))


@triton.jit(do_not_specialize=["count"])
def all_to_all_kernel(group, words, source, out, count, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    """Put part p of `source`, of `count` elements, to rank p's `out`, as the part with this rank's number."""
    tpl.barrier_at(group, words + 2 * tl.program_id(0))
    me = tpl.rank(group)
    for step in tl.static_range(RANKS):
        peer = (me + step) % RANKS
        _copy(tpl.symmetric_at(group, out, peer) + me * count, source + peer * count, count, BLOCK)
    tpl.barrier_at(group, words + 2 * tl.program_id(0))


@triton.jit(do_not_specialize=["count"])
def reduce_scatter_kernel(
    group, words, source, out, count, RANKS: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr
):
    """Sum the part of `source`, of `count` elements, with this rank's number over all ranks, into `out`."""
    tpl.barrier_at(group, words + 2 * tl.program_id(0))
    me = tpl.rank(group)
    mine = source + me * count
    end = _end(count, BLOCK)
    for start in range(_first(count, BLOCK), end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = _sum_of_ranks(group, mine + offsets, offsets < end, me, RANKS, SUM)
        tl.store(out + offsets, total, mask=offsets < end)
    tpl.barrier_at(group, words + 2 * tl.program_id(0))


@triton.jit(do_not_specialize=["count"])
def one_shot_kernel(
    group, words, source, out, count, RANKS: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr
):
    """Sum all of `source` over all ranks: every rank reads everything, in the same order, so that all get the same.
    `out` is other memory than `source`."""
    tpl.barrier_at(group, words + 2 * tl.program_id(0))
    end = _end(count, BLOCK)
    for start in range(_first(count, BLOCK), end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = _sum_of_ranks(group, source + offsets, offsets < end, 0, RANKS, SUM)
        tl.store(out + offsets, total, mask=offsets < end)
    tpl.barrier_at(group, words + 2 * tl.program_id(0))


@triton.jit(do_not_specialize=["count"])
def two_shot_kernel(
    group, words, source, out, count, RANKS: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr
):
    """Sum one part of `source` on each rank, and put it to every rank's `out`, which may be `source`.

    Each rank reads from and writes to itself first, then the ranks behind it, so that no two use the same link at once.
    """
    tpl.barrier_at(group, words + 2 * tl.program_id(0))
    me = tpl.rank(group)
    part = tl.cdiv(count, RANKS)
    begin = tl.minimum(me * part, count)
    size = tl.minimum(part, count - begin)
    end = _end(size, BLOCK)
    for start in range(_first(size, BLOCK), end, BLOCK):
        inside = start + tl.arange(0, BLOCK)
        mask = inside < end
        offsets = begin + inside
        total = _sum_of_ranks(group, source + offsets, mask, me, RANKS, SUM).to(out.dtype.element_ty)
        for step in tl.static_range(RANKS):
            tpl.put(group, out + offsets, total, (me + step) % RANKS, mask)
    tpl.barrier_at(group, words + 2 * tl.program_id(0))


@triton.jit(do_not_specialize=["count"])
def ring_kernel(
    group, words, signals, x, received, count, RANKS: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr
):
    """Sum x over all ranks in place; each sends only to its right neighbour.

    First a part goes around and grows to the sum, by way of `received`, which has room for RANKS - 1 parts. Then the
    sums go around. A rank has read its own value of a part before that part's sum comes back. No other kernel uses
    `words` and `signals`, which count the calls.
    """
    words += 2 * tl.program_id(0)
    signal = signals + tl.program_id(0)
    call = (tpl.barrier_at(group, words) - 1) // 2
    due = call * (2 * RANKS - 2)
    me = tpl.rank(group)
    right = (me + 1) % RANKS
    part = tl.cdiv(count, RANKS)
    for step in tl.static_range(RANKS - 1):
        sent = tl.minimum((me + RANKS - step) % RANKS * part, count)
        slot = tpl.symmetric_at(group, received, right) + step * part
        _copy(slot, x + sent, tl.minimum(part, count - sent), BLOCK)
        tpl.notify(group, signal, right)
        tpl.wait(group, signal, due + step + 1)
        grown = tl.minimum((me + RANKS - step - 1) % RANKS * part, count)
        end = _end(tl.minimum(part, count - grown), BLOCK)
        for start in range(_first(tl.minimum(part, count - grown), BLOCK), end, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            mask = offsets < end
            total = tl.load(x + grown + offsets, mask=mask).to(SUM)
            total += tl.load(received + step * part + offsets, mask=mask).to(SUM)
            tl.store(x + grown + offsets, total, mask=mask)
    for step in tl.static_range(RANKS - 1):
        sent = tl.minimum((me + RANKS + 1 - step) % RANKS * part, count)
        _copy(tpl.symmetric_at(group, x, right) + sent, x + sent, tl.minimum(part, count - sent), BLOCK)
        tpl.notify(group, signal, right)
        tpl.wait(group, signal, due + RANKS + step)
    tpl.barrier_at(group, words)

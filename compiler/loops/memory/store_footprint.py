"""The store footprint: all memory that the programs of a launch write, known before the first of them runs.

It exists for kernels that write with plain stores only. Each store's footprint is one range of addresses, from its
first to its last element. That of a scatter grows while programs run (`written_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Scatter, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Block, Def, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import ordered, written_rows
from triton_porting_kit.compiler.loops.memory.interval_analysis import Polynomial, Ranges, plus
from triton_porting_kit.compiler.loops.state import is_fence

MOST = 4
"""Most stores to follow."""


@dataclass(frozen=True)
class StoreFootprint:
    """Ranges of addresses outside of which nothing is written, if `holds`."""

    holds: Value
    """i1."""
    stretches: tuple[tuple[Value, Value], ...]
    """The address of the first byte of each range, and of the byte after its last one: i64."""
    growing: tuple[Value, ...] = ()
    """Where scatters record the range of what this thread has written so far."""

    def is_disjoint(self, builder: LoopBuilder, first: Value, end: Value) -> Value:
        """i1: nothing is written to [first, end); of what grows, nothing was."""
        apart = self.holds
        for low, high in (*self.stretches, *(written_rows.written(builder, place) for place in self.growing)):
            below, above = builder.compare("sle", end, low), builder.compare("sge", first, high)
            apart = builder.logical_and(apart, builder.binary("arith.ori", below, above))
        return apart


def store_footprint(lowering: Lowering, body: Block) -> StoreFootprint | None:
    """The footprint of all programs of a kernel with this `body`; None if not known."""
    stores = [operation for operation in walk(body) if is_fence(operation)]
    plain = (Store.isa(store) or Scatter.isa(store) for store in stores)
    if len(stores) > MOST or not all(plain) or any(map(ordered.is_ordered, stores)):
        return None
    ranges, stretches, growing = Ranges(lowering), [], []
    for store in stores:
        if Scatter.isa(store):
            growing.append(written_rows.place_of(lowering, store))
        else:
            stretches.append(_stretch(ranges, Store(store)))
    if None in stretches or None in growing:
        return None
    return StoreFootprint(ranges.holds, tuple(filter(None, stretches)), tuple(filter(None, growing)))


def address(builder: LoopBuilder, pointer: Value) -> Value:
    """The address in a pointer, as i64."""
    return builder.pure(f"llvm.ptrtoint {pointer.name} : !llvm.ptr to i64", "i64", (pointer,))


def _stretch(ranges: Ranges, store: Store[Def]) -> tuple[Value, Value] | None:
    """The first address that a store writes over all programs, and the address after the last."""
    lowering, builder = ranges.lowering, ranges.lowering.builder
    kind, low, high = store.value.type, store.low, store.high
    start = lowering.scalars.get(store.base)
    if start is None or start.level > 0 or store.wrap_dims:
        return None
    first = last = ranges.expand(store.offset)
    for dimension, (stride, size) in enumerate(zip(store.strides, kind.shape or (), strict=True)):
        step = ranges.expand(stride)
        if (found := ranges.least(step)) is None:
            return None
        ranges.at_least(found, 0)
        if low:
            first = plus(first, ranges.product(ranges.expand(low[dimension]), step))
        end: Polynomial = ranges.expand(_limit(lowering, high[dimension])) if high else {(): size}
        last = plus(last, ranges.product(plus(end, {(): -1}), step))
    lowest, highest = ranges.least(first), ranges.most(last)
    if lowest is None or highest is None:
        return None
    place, bytes_each = address(builder, start), builder.i64(types.byte_size(kind.element))
    ends = (builder.mul(end, bytes_each) for end in (lowest, builder.add(highest, builder.i64(1))))
    begin, end_ = (builder.add(place, end) for end in ends)
    return begin, end_


def _limit(lowering: Lowering, high: Def) -> Def:
    """The limit that an index bound was clamped from: `high` without its clamp to [0, size]."""
    owner = high.owner
    if owner is None or owner.name != "arith.minsi":
        return high
    limit = owner.operands[0]
    owner = limit.owner
    if owner is None or owner.name != "arith.maxsi":
        return limit
    least = lowering.scalars.get(owner.operands[1])
    return owner.operands[0] if least is not None and least.constant == 0 else limit

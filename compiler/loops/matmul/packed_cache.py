"""A cache of packed panels of B that later programs reuse when they read the same part of B.

Programs that compute one column of tiles multiply by the same B. For each iteration's part of a panel, the cache
records the address that it was read from. An iteration that would read the same address finds the part packed. Two
conditions guarantee that memory has not changed: each iteration checks that nothing which the launch writes overlaps
what it reads (`store_footprint`; of stores to rows that a list chooses, nothing which this thread has written so far),
and each thread begins a launch with an empty cache. An iteration with elements out of bounds always packs anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.store_footprint import StoreFootprint, address, store_footprint
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point

NOTHING = 0
"""The address of an empty entry. Scratch is cleared, so all entries start empty."""


@dataclass(frozen=True)
class PackedCache:
    """A cache of `panels` panels of `iterations` iterations each."""

    panels: int
    iterations: int
    addresses: Value
    """A table of i64: the address that each iteration's part was read from."""
    writes: StoreFootprint

    def pack(
        self, lowering: Lowering, access: Access, panel: Value, iteration: Value, pack: Callable[[], None]
    ) -> Value:
        """Call `pack` for what an iteration reads by `access`, unless it is in the cache.

        Returns i1: whether it was.
        """
        builder = lowering.builder
        first, end = _extent(builder, access)
        whole = access.plain_condition(builder)
        disjoint = builder.logical_and(whole, self.writes.is_disjoint(builder, first, end))
        slot = builder.add(builder.mul(panel, builder.i64(self.iterations)), iteration)
        place = builder.address(self.addresses, [slot], "i64")
        builder.forget_reads()
        known = builder.compare("eq", lane_memory.read(builder, place, "i64", 1, floor=builder.level), first)
        known = builder.logical_and(disjoint, known)

        def anew() -> list[Value]:
            pack()
            kept = builder.select(disjoint, first, builder.i64(NOTHING))
            lane_memory.write(builder, place, kept)
            return []

        builder.if_else(known, lambda: [], anew)
        builder.forget_reads()
        return known

    def after(self, builder: LoopBuilder, panel: Value) -> Value:
        """The index of the next panel. The last panel is reused for everything that does not fit."""
        return builder.binary("arith.minsi", builder.add(panel, builder.i64(1)), builder.i64(self.panels - 1))


def packed_cache(
    lowering: Lowering, load: Operation, iterations: int, size: int, shared_by: int = 1
) -> tuple[PackedCache, Value] | None:
    """A cache for panels of `size` bytes, each of so many `iterations` of a `load`, and the address of its first panel.

    It takes its share of what is kept, which is `shared_by` so many caches.
    None if the memory may change, or if an address alone does not identify what is read.
    """
    panels = lowering.target.caches.kept_bytes // shared_by // size
    body = load.block
    while body.parent is not None:
        body = body.parent.block
    op = Load(load)
    fixed = [lowering.scalars.get(value) for value in (op.base, *op.strides)]
    if panels < 2 or op.mask is not None or (op.other is not None and op.other.type.is_tensor):
        return None
    if any(value is None or value.level > 0 for value in fixed):
        return None
    writes = store_footprint(lowering, body)
    if writes is None:
        return None
    addresses = lowering.scratch.keep_cleared(panels * iterations * types.byte_size("i64"))
    return PackedCache(panels, iterations, addresses, writes), lowering.scratch.keep(panels * size)


def _extent(builder: LoopBuilder, access: Access) -> tuple[Value, Value]:
    """The first byte that a plain 2-d access reads, and the byte after its last one, as addresses."""
    zero = builder.i64(0)
    corner = Evaluation(builder, frozenset({access}), {})
    first = address(builder, access.pointer(corner, Point((zero,) * len(access.shape), -1, 1)))
    last = zero
    for size, stride in zip(access.shape, access.strides, strict=True):
        last = builder.add(last, builder.mul(builder.i64(size - 1), stride))
    elements = builder.add(last, builder.i64(1))
    bytes_each = builder.i64(types.byte_size(access.element))
    return first, builder.add(first, builder.mul(elements, bytes_each))

"""Packed panels of B that stay where they are for the programs after, which may read the same part of B.

Programs that make one column of tiles multiply with the same B. Beside each trip's part of a panel lies the address
that it was read from: a trip that would read that address again finds it packed. That it still is what lies there is
asked of every trip: nothing that the launch writes may touch what is read (see `written`), and a thread begins each
launch with no addresses. A trip of which something is out of bounds is packed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops import lane_memory
from triton_porting_kit.compiler.loops.access import Access
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value
from triton_porting_kit.compiler.loops.evaluation import Evaluation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.program import Operation
from triton_porting_kit.compiler.loops.tensors import Point
from triton_porting_kit.compiler.loops.written import Written, address, written

KEPT_BYTES = 1 << 20
"""At most so much is kept. What of it leaves the second cache is fetched back in time (see `ahead`): that takes less
than to pack it again."""

NOTHING = 0
"""In the place of an address: nothing is kept. So it is in scratch that was cleared."""


@dataclass(frozen=True)
class Kept:
    """Room for `panels` panels of `trips` trips each."""

    panels: int
    trips: int
    addresses: Value
    """Where the address of each trip's part stands, as i64."""
    writes: Written

    def pack(
        self, lowering: Lowering, access: Access, panel: Value, trip: Value, pack: Callable[[], None]
    ) -> Value:
        """Call `pack`, which packs what one trip reads by `access`, for where that is not there; i1: it was."""
        builder = lowering.builder
        first, end = _extent(builder, access)
        whole = access.plain_condition(builder)
        spared = builder.logical_and(whole, self.writes.spares(builder, first, end))
        slot = builder.add(builder.mul(panel, builder.i64(self.trips)), trip)
        place = builder.address(self.addresses, [slot], "i64")
        builder.forget_reads()
        known = builder.compare("eq", lane_memory.read(builder, place, "i64", 1, floor=builder.level), first)
        known = builder.logical_and(spared, known)

        def anew() -> list[Value]:
            pack()
            kept = builder.select(spared, first, builder.i64(NOTHING))
            lane_memory.write(builder, place, kept)
            return []

        builder.if_else(known, lambda: [], anew)
        builder.forget_reads()
        return known

    def after(self, builder: LoopBuilder, panel: Value) -> Value:
        """The number of the panel that follows: the last one takes all that there is no room for."""
        return builder.binary("arith.minsi", builder.add(panel, builder.i64(1)), builder.i64(self.panels - 1))


def keep(lowering: Lowering, load: Operation, trips: int, size: int) -> tuple[Kept, Value] | None:
    """Room for panels of `size` bytes of what a `load` reads in so many `trips` of a loop, and where it begins.

    None where what they read may not stay the same, or cannot be told by an address.
    """
    panels = KEPT_BYTES // size
    body = load.block
    while body.parent is not None:
        body = body.parent.block
    op = Load(load)
    fixed = [lowering.scalars.get(value) for value in (op.base, *op.strides)]
    if panels < 2 or op.mask is not None or (op.other is not None and op.other.type.is_tensor):
        return None
    if any(value is None or value.level > 0 for value in fixed):
        return None
    writes = written(lowering, body)
    if writes is None:
        return None
    addresses = lowering.keep_cleared(panels * trips * types.byte_size("i64"))
    return Kept(panels, trips, addresses, writes), lowering.keep(panels * size)


def _extent(builder: LoopBuilder, access: Access) -> tuple[Value, Value]:
    """The addresses of the first byte that a plain access of two dimensions reads, and of the first behind it."""
    zero = builder.i64(0)
    corner = Evaluation(builder, frozenset({access}), {})
    first = address(builder, access.pointer(corner, Point((zero,) * len(access.shape), -1, 1)))
    last = zero
    for size, stride in zip(access.shape, access.strides, strict=True):
        last = builder.add(last, builder.mul(builder.i64(size - 1), stride))
    elements = builder.add(last, builder.i64(1))
    bytes_each = builder.i64(types.byte_size(access.element))
    return first, builder.add(first, builder.mul(elements, bytes_each))

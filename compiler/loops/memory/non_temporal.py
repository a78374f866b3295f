"""Non-temporal stores, in launches that write more than the caches hold.

An ordinary store first reads the cache line that it writes. A non-temporal one does not, which saves a third of the
traffic of a vector addition; but the written data is in no cache afterwards. So non-temporal stores are used only where
the whole launch writes at least `Caches.non_temporal_bytes`. The kernel decides this when it runs.

Nor are they used on pages that the system has not mapped yet, as those of a large array that was just allocated. It
maps and clears a page when it is first written, so the page is in the caches then, and non-temporal stores would write
it to memory twice. A kernel finds such pages by the time that it takes to add zero to the last element of a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import Scatter, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Block, Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.growth import FOR
from triton_porting_kit.compiler.loops.memory.row_prefetch import step_between
from triton_porting_kit.compiler.loops.memory.writes import Write
from triton_porting_kit.compiler.loops.state import WRITES
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.peeling import Streams
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Point, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis

PAGE = 4096
"""Bytes of a page. Only rows that are at least as long end on a page that the row before them has not mapped."""

MAPPING_CYCLES = 1500
"""The least cycles, of the counter of RDTSC, that it takes to map a page. Reading a line from memory takes some 300."""

MOST_COST = 128
"""Most operations for an element of what is stored past the caches. One of SwiGLU's gradients takes 54."""

LEAST_ELEMENTS = 512
"""Least elements of a row of values that take some computation. Shorter ones are stored beside larger tiles."""

ROWS_PER_LOOK = 16
"""How many rows one look at a page counts for: it takes about a tenth of the time of a row."""

_OTHERS = WRITES - {Store.OPERATION_NAME, Scatter.OPERATION_NAME}

_WIDTHS = (16, 32, 64)
"""Store sizes in bytes for which x86-64 has a non-temporal instruction."""

FENCE = 'llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()'
"""Orders non-temporal stores before all later writes of the thread, such as the one that signals completion."""


@dataclass(eq=False, repr=False)
class NonTemporal:
    """The use of non-temporal stores in one kernel."""

    allowed: bool = False
    """Whether the kernel may use them."""
    used: bool = False
    """Whether it does: then the kernel ends with a fence."""


def allowed(lowering: Lowering, body: Block) -> bool:
    """Whether a kernel may use non-temporal stores: nothing in it is ordered by atomic operations."""
    return lowering.target.triple.startswith("x86_64") and not any(
        operation.is_volatile or operation.name in _OTHERS for operation in walk(body)
    )


def streams(
    lowering: Lowering, operation: Operation, writes: Sequence[Write], inputs: Sequence[Tensor]
) -> Streams | None:
    """Which of `writes`, all in one loop that evaluates `inputs`, may be non-temporal: all or, as None, none.

    Expensive values, and stores in a loop of the kernel, have one loop over the tile, where each store branches. Others
    have a loop for each kind of store. Beyond `MOST_COST`, memory is not the bottleneck.
    """
    accesses = [write.access for write in writes if write.access is not None]
    shape, costs = writes[0].shape, [cost(write.value, {}) for write in writes]
    branches = max(costs) >= EXPENSIVE or operation.block.parent is not None
    if branches and (max(costs) > MOST_COST or len(shape) != 1 or shape[0] < LEAST_ELEMENTS):
        return None
    if not all(_suits(lowering, operation, access, inputs) for access in accesses):
        return None
    if not all(_is_written_once(lowering, write.operation) for write in writes):
        return None

    def condition(point: Point, stop: Value) -> Value:
        condition = lowering.builder.constant(1, "i1")
        for access in accesses:
            found = _condition(lowering, operation.block.parent, access, point, stop)
            condition = lowering.builder.logical_and(condition, found)
        return condition

    return Streams(frozenset(accesses), condition, branches)


def _is_written_once(lowering: Lowering, store: Operation) -> bool:
    """Whether a store is in no loop, or writes elsewhere in each iteration of one that does not read it."""
    loop = store.block.parent
    if loop is None:
        return True
    outermost = loop.name == FOR and loop.block.parent is None
    if not outermost or step_between(lowering, store, loop) is None:
        return False
    loads = filter(None, map(LoadOp.dyn_cast, walk(loop.block)))
    return all(load.base is not Store(store).base for load in loads)


def _suits(lowering: Lowering, operation: Operation, access: Access, inputs: Sequence[Tensor]) -> bool:
    """Whether a store writes whole vectors to memory that it does not read."""
    axis = innermost_axis(access.shape)
    if not lowering.part(NonTemporal).allowed or axis < 0:
        return False
    step = chunk(access.shape[axis], lowering.target.lanes)
    in_place = any(isinstance(t, Load) and t.access.base == access.base for t in closure(inputs))
    return (
        step * types.byte_size(access.element) in _WIDTHS
        and step < access.shape[axis]
        and access.is_contiguous(axis)
        and access.mask is None
        and not access.wraps
        and not in_place
    )


def _condition(
    lowering: Lowering, loop: Operation | None, access: Access, point: Point, stop: Value
) -> Value:
    """i1: the launch writes enough bytes, the vector at `point` is aligned, and the page of the last element is mapped.

    The condition is for the elements from `point` to the index `stop`, which may be none, in each iteration of the
    kernel's `loop`, if there is one.
    """
    builder = lowering.builder
    lowering.part(NonTemporal).used = True
    size = types.byte_size(access.element)
    programs = builder.i64(1)
    for count in lowering.grid.counts:
        programs = builder.mul(programs, builder.cast("arith.extui", count, "i64"))
    least = builder.i64(-(-lowering.target.caches.non_temporal_bytes // (math.prod(access.shape) * size)))
    if loop is not None:
        first, end, by = (builder.cast("arith.extsi", lowering.scalar(v), "i64") for v in loop.operands[:3])
        programs = builder.mul(programs, builder.sub(end, first))
        least = builder.mul(least, by)
    large = builder.compare("sge", programs, least)
    place = access.pointer(Evaluation(builder, frozenset(), {}), point)
    address = builder.cast("llvm.ptrtoint", place, "i64")
    rest = builder.binary("arith.andi", address, builder.i64(point.width * size - 1))
    suitable = builder.logical_and(large, builder.compare("eq", rest, builder.i64(0)))
    if access.shape[point.axis] * size < PAGE:
        return suitable
    suitable = builder.logical_and(suitable, builder.compare("sgt", stop, builder.i64(0)))
    last = point.moved(point.axis, builder.sub(stop, builder.i64(1))).first
    end = access.pointer(Evaluation(builder, frozenset(), {}), last)
    slot = lowering.scratch.keep_cleared(types.byte_size("i64"))
    never = builder.constant(0, "i1")
    return builder.if_else(suitable, lambda: [_is_mapped(builder, end, slot)], lambda: [never])[0]


def _is_mapped(builder: LoopBuilder, place: Value, slot: Value) -> Value:
    """i1: whether the page at `place` was mapped when this thread last looked, which may be now.

    The last bit of the number in `slot` says so, and the others for how many rows it still counts.
    """
    known = builder.effect(f"llvm.load {slot.name} : !llvm.ptr -> i64", "i64")
    assert known is not None

    def look() -> list[Value]:
        # Zero, but a constant would be optimised away.
        nothing = builder.cast("arith.trunci", builder.binary("arith.shrui", known, builder.i64(1)), "i8")
        before = builder.effect(_CLOCK, "i64")
        builder.effect(
            f"llvm.atomicrmw volatile add {place.name}, {nothing.name} monotonic : !llvm.ptr, i8", "i8"
        )
        after = builder.effect(_CLOCK, "i64")
        assert before is not None
        assert after is not None
        mapped = builder.compare("ult", builder.sub(after, before), builder.i64(MAPPING_CYCLES))
        return [builder.add(builder.cast("arith.extui", mapped, "i64"), builder.i64(2 * ROWS_PER_LOOK))]

    two = builder.i64(2)
    (found,) = builder.if_else(builder.compare("ult", known, two), look, lambda: [known])
    left = builder.sub(found, two)
    builder.effect(f"llvm.store {left.name}, {slot.name} : i64, !llvm.ptr")
    return builder.cast("arith.trunci", found, "i1")


_CLOCK = 'llvm.call_intrinsic "llvm.x86.rdtsc"() : () -> i64'

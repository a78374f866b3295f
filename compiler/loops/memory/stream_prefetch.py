"""Software prefetch of streams: a kernel that only maps elements prefetches what it reads a little further on.

Such a kernel waits for memory. Hardware prefetchers begin late and stop at page ends. This program
or the next one soon reads what lies further on.

Where rows of a tile lie far apart, or how far is not known, the next program's tile is prefetched. On Cascade Lake,
sums of rows by atomics take a fourth to a third less time with it.

Measured with loops in C that add vectors of 64 MiB: 13 % less time on Cascade Lake, with one thread. On a Xeon with AMX
3 % less with one thread, 6 % with two, and a third with 16. On Zen 4, they take longer with it,
and sums of rows by atomics take 0.64 of the time. So on Zen, only the next program's tile is prefetched.
"""

from __future__ import annotations

import math

from triton_porting_kit.compiler.dialect.operations import AtomicRmw, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Block, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.row_prefetch import LARGEST, step_between
from triton_porting_kit.compiler.loops.state import DEFERRED, LOADS
from triton_porting_kit.compiler.loops.tiles.access import Access

DISTANCE = 1024
"""How many bytes ahead to prefetch. From 512 to 2048, it hardly matters."""

LEAST = 32
"""The least bytes of a chunk of lanes that prefetches: a cache line has two of them."""

_MAPPING = (DEFERRED | LOADS | {Store.OPERATION_NAME, AtomicRmw.OPERATION_NAME}) - {"linalg.transpose"}


def distance(lowering: Lowering, operation: Operation, access: Access) -> Value | None:
    """How far ahead of each element of a load to prefetch, in elements; None where that would not help."""
    size, axis = types.byte_size(access.element), len(access.shape) - 1
    if not lowering.target.prefetches or lowering.target.lanes * size < LEAST:
        return None
    if axis < 0 or operation.block.parent is not None or not _only_maps(operation.block):
        return None
    if access.wraps or not access.is_contiguous(axis):
        return None
    step = step_between(lowering, operation)
    if step is None:  # each program reads the same
        return None
    pitches = [stride.constant for stride in access.strides[:axis]]
    if all(isinstance(pitch, int) and abs(pitch) * size <= DISTANCE for pitch in pitches):
        return lowering.builder.i64(DISTANCE // size) if lowering.target.prefetches_streams else None
    return step if math.prod(access.shape) * size <= LARGEST else None


def _only_maps(block: Block) -> bool:
    """Whether only loads and stores go over tiles. Reductions and products prefetch by themselves."""
    return all(
        operation.name in _MAPPING
        or not (operation.regions or any(v.type.is_tensor for v in (*operation.operands, *operation.results)))
        for operation in block.operations
    )

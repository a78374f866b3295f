"""Stores that go past the caches, in launches that write more than those hold.

An ordinary store first reads the line that it writes to. A non-temporal one does not, which saves a third of the
traffic of adding two vectors; but what it writes is in no cache afterwards. So it is used where the whole launch
writes so much that the caches would not keep it anyway, which is asked when the kernel runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Scatter, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Block, Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.state import WRITES
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import closure, cost
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis

NON_TEMPORAL_BYTES = 1 << 25
"""Bytes that a launch writes from which on its stores go past the caches: as much as a large last-level cache."""

_OTHERS = WRITES - {Store.OPERATION_NAME, Scatter.OPERATION_NAME}

_WIDTHS = (16, 32, 64)
"""Bytes of a store that x86-64 has a non-temporal form of."""

FENCE = 'llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()'
"""What orders such stores before all that the thread writes later, such as that it has finished."""


@dataclass
class NonTemporal:
    """Of one kernel."""

    allowed: bool = False
    """Whether its stores may bypass the caches, and ..."""
    used: bool = False
    """... whether one does: then the kernel ends with a fence."""


def allowed(lowering: Lowering, body: Block) -> bool:
    """Whether the stores of a kernel may be of this kind: nothing in it is ordered by atomic operations."""
    return lowering.target.triple.startswith("x86_64") and not any(
        operation.is_volatile or operation.name in _OTHERS for operation in walk(body)
    )


def suits(lowering: Lowering, operation: Operation, access: Access, inputs: Sequence[Tensor]) -> bool:
    """Whether a store writes whole vectors, once in a program, where it does not read as well.

    Only of what is cheap to compute: else memory is not what takes longest, and the code is there twice.
    """
    axis = innermost_axis(access.shape)
    if not lowering.part(NonTemporal).allowed or operation.block.parent is not None or axis < 0:
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
        and cost(inputs[0], {}) < EXPENSIVE
    )


def condition(lowering: Lowering, access: Access, point: Point) -> Value:
    """i1: the launch writes so much, and the line that begins at `point` is aligned."""
    builder = lowering.builder
    lowering.part(NonTemporal).used = True
    size = types.byte_size(access.element)
    programs = builder.i64(1)
    for count in lowering.grid.counts:
        programs = builder.mul(programs, builder.cast("arith.extui", count, "i64"))
    least = -(-NON_TEMPORAL_BYTES // (math.prod(access.shape) * size))
    large = builder.compare("sge", programs, builder.i64(least))
    place = access.pointer(Evaluation(builder, frozenset(), {}), point)
    address = builder.cast("llvm.ptrtoint", place, "i64")
    rest = builder.binary("arith.andi", address, builder.i64(point.width * size - 1))
    return builder.logical_and(large, builder.compare("eq", rest, builder.i64(0)))

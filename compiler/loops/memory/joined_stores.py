"""Joined stores: neighbouring stores that read or compute the same are done in one loop.

In loops of their own, what several stores read would be read again or go through scratch.
"""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import Scatter, Store
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.overlaps import may_share_loop
from triton_porting_kit.compiler.loops.memory.writes import Write, write_of
from triton_porting_kit.compiler.loops.state import MOVABLE, EarlyStores, is_fence
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.graph import cost, reads_memory
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Tensor, closure

MOST = 4
"""Most stores of one loop. All their values are in registers at once."""


def joined_stores(lowering: Lowering, operation: Operation) -> list[Operation]:
    """The stores that follow `operation`, a store itself, and are done in its loop."""
    if lowering.checks is not None or lowering.fused is not None or not _is_candidate(lowering, operation):
        return []
    following = [later for later in _neighbours(lowering, operation) if later not in lowering.done]
    if not following:
        return []
    writes = [write_of(lowering, operation)]
    if not _suits(writes[0]):
        return []
    for later in following[: MOST - 1]:
        if not all(lowering.advance(operand) for operand in later.operands):
            break
        write = write_of(lowering, later)
        if (
            not _suits(write)
            or write.shape != writes[0].shape
            or not may_share_loop(lowering, [*writes, write])
            or not _has_common_part(writes, write)
        ):
            break
        writes.append(write)
    return [write.operation for write in writes[1:]]


def _neighbours(lowering: Lowering, operation: Operation) -> list[Operation]:
    """The stores after `operation` up to the first operation that must not come after them."""
    found = []
    for later in operation.block.operations[operation.position + 1 :]:
        if _is_candidate(lowering, later):
            found.append(later)
        elif is_fence(later) or later.regions or later.name not in MOVABLE:
            break
    return found


def _is_candidate(lowering: Lowering, operation: Operation) -> bool:
    plain = (Store.isa(operation) or Scatter.isa(operation)) and not operation.is_volatile
    return plain and operation not in lowering.part(EarlyStores)


def _suits(write: Write) -> bool:
    """Whether what decides where it writes reads no memory, which another store of the loop could have changed."""
    where = [tensor for tensor in (write.offsets, write.mask) if tensor is not None]
    return bool(write.shape) and not any(map(reads_memory, where))


def _has_common_part(writes: list[Write], write: Write) -> bool:
    """Whether a loop saves anything: the store reads or computes something expensive that the others do, too."""
    costs: dict[Tensor, int] = {}
    others = set(closure(tensor for other in writes for tensor in other.inputs))
    return any(
        tensor in others and (isinstance(tensor, Load | Gather) or cost(tensor, costs) >= EXPENSIVE)
        for tensor in closure([write.value])
        if tensor.shape and not isinstance(tensor, Buffer)
    )

"""Fused loop-carried stores: values for the next iteration, computed in the loop of a store.

Whatever a store may overwrite is read before it, into scratch if it is needed later. If only loop-carried values need
it, they are computed in the loop of the store instead, directly into the buffers that carry them. So are those that
share what is computed into a buffer of on-chip memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from triton_porting_kit.compiler.dialect.npu import NpuWrite
from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.compiler.loops.control.control_flow import reads_buffer
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.state import CarriedBuffers, EarlyStores, FusedStores
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Splat, Tensor, closure


def fused_stores(lowering: Lowering, operation: Operation) -> FusedStores | None:
    """The loop-carried values to compute in the loop of a store; None if there are none."""
    local = NpuWrite.isa(operation)
    plain = local or (Store.isa(operation) and not operation.is_volatile)
    if not plain or operation in lowering.part(EarlyStores):
        return None
    block = operation.block
    places = lowering.part(CarriedBuffers).get(block)
    if not places:
        return None
    terminator = block.operations[-1]
    waiting = [
        tensor
        for tensor in lowering.pending_in(block)
        if lowering.needed_after(tensor, operation)
        and all(
            root is terminator or root.position <= operation.position for root in _roots(lowering, tensor)
        )
    ]
    if not waiting and not local:
        return None
    following: dict[int, Tensor] = {}
    for index in places:
        if not lowering.advance(terminator.operands[index]):
            return None
        following[index] = lowering.tensor(terminator.operands[index])
    stored = NpuWrite(operation).value if local else Store(operation).value
    found = {
        index: tensor
        for index, tensor in following.items()
        if places[index].shape == stored.type.shape
        and tensor.definition is not None
        and tensor.definition.block is block
        and not isinstance(tensor, Buffer)
        and tensor.buffer is None
        # Nothing else that comes later needs the current value.
        and all(
            root is terminator or root.position <= operation.position
            for root in lowering.uses.roots(block.arguments[1 + index])
        )
        and not reads_buffer(lowering.tensor(stored), places[index], aligned_only=True)
    }
    found = _undisturbed(found, following, places)
    rest = set(closure(tensor for index, tensor in following.items() if index not in found))
    if local:
        shared = set(closure([lowering.tensor(stored)])) & set(closure(found.values()))
        if not any(tensor.shape == stored.type.shape and not isinstance(tensor, Splat) for tensor in shared):
            return None
    elif all(tensor in rest for tensor in waiting):
        return None
    return FusedStores({tensor: places[index] for index, tensor in found.items()}, terminator, rest)


def _undisturbed(
    found: Mapping[int, Tensor], following: Mapping[int, Tensor], places: Mapping[int, Buffer]
) -> dict[int, Tensor]:
    """Those of `found` whose buffers no other value for the next iteration reads."""
    kept = dict(found)
    while True:
        disturbed = [
            index
            for index in kept
            if any(
                reads_buffer(tensor, places[index], aligned_only=other in kept)
                for other, tensor in following.items()
            )
        ]
        if not disturbed:
            return kept
        for index in disturbed:
            del kept[index]


def _roots(lowering: Lowering, tensor: Tensor) -> frozenset[Operation]:
    assert tensor.definition is not None
    return lowering.uses.roots(tensor.definition)

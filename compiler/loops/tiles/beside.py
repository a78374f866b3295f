"""Tensors that are written to memory in the loop of a reduction, which computes what they are made of anyway."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.dialect.npu import NpuAnnounce
from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.loops.state import DEFERRED
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Point, Tensor

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
    from triton_porting_kit.compiler.loops.ir.program import Operation
    from triton_porting_kit.compiler.loops.ir.values import Value
    from triton_porting_kit.compiler.loops.lowering import Lowering


class Converted(Buffer):
    """A buffer for `tensor`, which is computed from each element of `source` when that is known."""

    def __init__(self, buffer: Buffer, tensor: Tensor, source: Tensor) -> None:
        super().__init__(buffer.shape, buffer.element, buffer.pointer)
        self._tensor, self._source = tensor, source
        self.narrow = buffer
        """The buffer as others read it."""
        self.element = source.element

    def write(self, builder: LoopBuilder, point: Point, value: Value) -> None:
        evaluation = Evaluation(builder, frozenset(), {})
        evaluation.give(self._source, point, value)
        converted = evaluation.at(self._tensor, point)
        self.narrow.write(builder, point, converted)


@dataclass
class Beside:
    """What reductions have yet to write, by the reduction."""

    waiting: dict[Operation, dict[Tensor, Buffer]] = field(default_factory=dict)

    def put_off(self, lowering: Lowering, operation: Operation, tensor: Tensor, buffer: Buffer) -> bool:
        """Leave it to the reduction behind `operation`, a write, to write `tensor` to `buffer`, if that reduces what
        `tensor` is made of, which is expensive and not needed otherwise. Returns whether it will.
        """
        reduction = _next(operation)
        if reduction is None or reduction in lowering.done or len(tensor.operands) != 1:
            return False
        (source,) = tensor.operands
        straight = list(range(len(tensor.shape)))
        if source.buffer is not None or source.definition is None or tensor.definition is None:
            return False
        if tensor.shape != source.shape or tensor.operand_dimensions(0) != straight:
            return False
        if lowering.tensors.get(reduction.operands[0]) is not source or cost(source, {}) < EXPENSIVE:
            return False
        roots = lowering.uses.roots
        if roots(source.definition) != {operation, reduction} or roots(tensor.definition) != {operation}:
            return False
        self.waiting.setdefault(reduction, {})[source] = Converted(buffer, tensor, source)
        return True

    def taken(self, operations: list[Operation]) -> dict[Tensor, Buffer]:
        """What these reductions have to write, by the tensor that they compute."""
        found: dict[Tensor, Buffer] = {}
        for operation in operations:
            found |= self.waiting.pop(operation, {})
        return found


def _next(operation: Operation) -> Operation | None:
    """The reduction behind an operation, with nothing between them that is executed; None if there is none."""
    for other in operation.block.operations[operation.position + 1 :]:
        if Reduce.isa(other):
            return other
        if other.name not in DEFERRED and not NpuAnnounce.isa(other):
            return None
    return None

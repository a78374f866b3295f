"""Masks that are set below some index along a dimension, such as ``tl.arange(0, BLOCK) < n``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Elementwise,
    Point,
    Range,
    Reindexed,
    Splat,
    Tensor,
)

_REVERSED = {"sgt": "slt", "sge": "sle"}


class PrefixMask(Elementwise):
    """``start + i < limit`` along `dimension`, or ``<=``, where `start` + i does not wrap around.

    It is a constant 1 in loops where it is known to be set.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        operands: Sequence[Tensor],
        function: Callable[[LoopBuilder, list[Value]], Value],
        *,
        dimension: int,
        start: int | Value,
        limit: Value,
        inclusive: bool,
    ) -> None:
        super().__init__(shape, "i1", operands, function)
        self.dimension = dimension
        self._start = start
        self._limit = limit
        self._inclusive = inclusive

    def end(self, builder: LoopBuilder) -> Value:
        """The first index that is not set, at most the size, in the same form as the bounds of accesses."""
        limit = _wide(builder, self._limit)
        start = builder.i64(self._start) if isinstance(self._start, int) else _wide(builder, self._start)
        limit = builder.add(builder.sub(limit, start), builder.i64(int(self._inclusive)))
        limit = builder.binary("arith.maxsi", limit, builder.i64(0))
        return builder.binary("arith.minsi", limit, builder.i64(self.shape[self.dimension]))

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        if self in evaluation.unmasked:
            return evaluation.builder.constant(1, "i1")
        return super().at(evaluation, point)


def _wide(builder: LoopBuilder, value: Value) -> Value:
    if isinstance(value.constant, int):
        return builder.i64(value.constant)
    return builder.cast("arith.extsi", value, "i64")


def prefix_mask(
    predicate: str,
    shape: tuple[int, ...],
    operands: Sequence[Tensor],
    function: Callable[[LoopBuilder, list[Value]], Value],
) -> PrefixMask | None:
    """A `PrefixMask` for the integer comparison of `operands` that `function` computes; None if it is not such a
    mask."""
    if predicate in _REVERSED:
        range_of, limit = _range(operands[1]), operands[0]
        predicate = _REVERSED[predicate]
    else:
        range_of, limit = _range(operands[0]), operands[1]
    if predicate not in ("slt", "sle") or range_of is None or not isinstance(limit, Splat):
        return None
    dimension, start = range_of
    return PrefixMask(
        shape,
        operands,
        function,
        dimension=dimension,
        start=start,
        limit=limit.value,
        inclusive=predicate == "sle",
    )


def _range(tensor: Tensor) -> tuple[int, int | Value] | None:
    """(dimension, start) of a tensor whose elements count up along a dimension."""
    if isinstance(tensor, Range):
        return 0, tensor.start
    if isinstance(tensor, Elementwise) and tensor.name == "arith.addi" and tensor.buffer is None:
        for first, second in (tensor.operands, tensor.operands[::-1]):
            moved = _range(second) if isinstance(first, Splat) else None
            if isinstance(first, Splat) and moved is not None and moved[1] == 0:
                return moved[0], first.value
        return None
    if not isinstance(tensor, Reindexed) or tensor.buffer is not None:
        return None
    inner = _range(tensor.operands[0])
    if inner is None:
        return None
    dimension = tensor.operand_dimensions(0)[inner[0]]
    return None if dimension is None else (dimension, inner[1])

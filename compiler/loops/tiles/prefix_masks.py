"""Masks that are set below some index along a dimension, such as ``tl.arange(0, BLOCK) < n``, or below a diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
        limit: int | Value,
        inclusive: bool,
    ) -> None:
        super().__init__(shape, "i1", operands, function)
        self.dimension = dimension
        self._start = start
        self._limit = limit
        self._inclusive = inclusive

    def end(self, builder: LoopBuilder) -> Value:
        """The first index that is not set, at most the size, in the same form as the bounds of accesses."""
        limit, start = _wide(builder, self._limit), _wide(builder, self._start)
        limit = builder.add(builder.sub(limit, start), builder.i64(int(self._inclusive)))
        limit = builder.binary("arith.maxsi", limit, builder.i64(0))
        return builder.binary("arith.minsi", limit, builder.i64(self.shape[self.dimension]))

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        if self in evaluation.unmasked:
            return evaluation.builder.constant(1, "i1")
        return super().at(evaluation, point)


class DiagonalMask(PrefixMask):
    """``start + i < limit + j``, or ``<=``, for an index j of another dimension, as i32.

    It is set below `end` for all j, and may be set behind it.
    """

    def __init__(self, *given: Any, largest: tuple[int, int], **named: Any) -> None:
        super().__init__(*given, **named)
        self._largest = largest
        """The last i, and the last j."""

    def end(self, builder: LoopBuilder) -> Value:
        """The index below which the mask is set everywhere; 0 if one of the numbers may wrap around."""
        found = super().end(builder)
        for value, last in zip((self._start, self._limit), self._largest, strict=True):
            most = builder.i64((1 << 31) - 1 - last)
            found = builder.select(builder.compare("sle", _wide(builder, value), most), found, builder.i64(0))
        return found


def _wide(builder: LoopBuilder, value: int | Value) -> Value:
    if isinstance(value, int):
        return builder.i64(value)
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
    if predicate not in ("slt", "sle") or range_of is None:
        return None
    dimension, start = range_of
    inclusive = predicate == "sle"
    if isinstance(limit, Splat):
        return PrefixMask(
            shape,
            operands,
            function,
            dimension=dimension,
            start=start,
            limit=limit.value,
            inclusive=inclusive,
        )
    other = _range(limit)
    if other is None or other[0] == dimension or not all(operand.element == "i32" for operand in operands):
        return None
    last = (shape[dimension] - 1, shape[other[0]] - 1)
    return DiagonalMask(
        shape, operands, function,
        dimension=dimension, start=start, limit=other[1], inclusive=inclusive, largest=last,
    )  # fmt: skip


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

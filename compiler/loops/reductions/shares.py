"""Partial results of work-items, which are combined through scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point


def shares(lowering: Lowering, rows: Sequence[int], lanes: int, pieces: int) -> int:
    """How many work-items share a row of `pieces` independent pieces; 1 if each work-item takes whole rows.

    `rows` is the shape of the rows, of which `lanes` are done at a time.
    """
    items, others = lowering.work_items, math.prod(rows) // lanes
    if items == 1 or others >= items or pieces <= others:
        return 1
    return min(items, 1 << pieces.bit_length() - 1)


class Shares:
    """`count` partial results, each of several values of `lanes` lanes, of the given element types."""

    def __init__(self, lowering: Lowering, count: int, lanes: int, elements: Sequence[str]) -> None:
        self._builder = lowering.builder
        self._lanes = lanes
        self._buffers = [lowering.scratch.allocate((count, lanes), element) for element in elements]

    def _point(self, index: Value) -> Point:
        lanes = self._lanes
        return Point((index, self._builder.i64(0)), 1 if lanes > 1 else -1, lanes)

    def write(self, index: Value, values: Sequence[Value]) -> None:
        """Leave a partial result."""
        for buffer, value in zip(self._buffers, values, strict=True):
            buffer.write(self._builder, self._point(index), value)
        self._builder.forget_reads()

    def read(self, index: Value) -> list[Value]:
        """A partial result."""
        self._builder.forget_reads()
        evaluation = Evaluation(self._builder, frozenset(), {})
        values = [evaluation.at(buffer, self._point(index)) for buffer in self._buffers]
        self._builder.forget_reads()
        return values

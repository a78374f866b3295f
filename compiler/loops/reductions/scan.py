"""``tpk.scan``: prefix combination along one dimension, element by element, into scratch."""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.dialect.operations import Scan
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions.accumulation import Accumulation
from triton_porting_kit.compiler.loops.reductions.combine import takes_vectors
from triton_porting_kit.compiler.loops.reductions.shares import Shares, shares
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.nests import specialise
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor, joining
from triton_porting_kit.compiler.loops.tiles.tile_loops import innermost_axis, joined_around, tile_loop


def scan(lowering: Lowering, operation: Operation) -> None:
    """Lower a scan. The running result is in registers; lanes lie along another dimension if there is one."""
    builder = lowering.builder
    op = Scan(operation)
    inputs = [lowering.tensor(value) for value in op.inputs]
    shape = inputs[0].shape
    region = operation.regions[0]
    kept = lowering.plan(operation, shape, inputs)
    around = joined_around(shape, op.axis, joining(inputs))
    results = [lowering.scratch.allocate(shape, tensor.element) for tensor in inputs]
    across = innermost_axis(shape) != op.axis and takes_vectors(region)
    lanes = lowering.target.lanes if across else 1
    count = shares(lowering, around, lanes, shape[op.axis] // 2)

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(builder, unmasked, kept)

        def line(kept_point: Point) -> None:
            row = _Row(lowering, operation, inputs, results, evaluation, kept_point)
            if count == 1:
                row.scan(builder.i64(0), shape[op.axis])
            else:
                row.scan_in_shares(count)

        tile_loop(builder, around, lanes, line, in_order=count > 1)
        return []

    specialise(lowering.builder, inputs, emit)
    for tensor, buffer in kept.items():
        lowering.hold(tensor, buffer)
    for definition, buffer in zip(operation.results, results, strict=True):
        lowering.define(definition, buffer)


class _Row:
    """Scans a row, or as many neighbouring rows as `kept` has lanes, into `results`."""

    def __init__(
        self,
        lowering: Lowering,
        operation: Operation,
        inputs: Sequence[Tensor],
        results: Sequence[Buffer],
        evaluation: Evaluation,
        kept: Point,
    ) -> None:
        self._lowering = lowering
        self._builder = lowering.builder
        op = Scan(operation)
        self._axis, self._reverse = op.axis, op.reverse
        self._inputs, self._results = inputs, results
        self._evaluation = evaluation
        self._kept = kept
        self._accumulation = Accumulation(lowering, operation.regions[0])
        self._size = inputs[0].shape[op.axis]

    def scan(
        self, first: Value, count: int, before: list[Value] | None = None, *, keeps: bool = True
    ) -> list[Value]:
        """Scan `count` elements from `first` on, behind the result `before`. Returns the last result.

        Without `keeps`, the results are not written.
        """
        builder = self._builder
        running = self._load(first)
        if before is not None:
            running = self._accumulation.combine(before, running)
        if keeps:
            self._keep(first, running)
        if count == 1:
            return running
        start, end = (builder.add(first, builder.i64(step)) for step in (1, count))
        with builder.loop(start, end, builder.i64(1), running) as loop:
            loop.yields = self._accumulation.combine(loop.arguments, self._load(loop.induction))
            if keeps:
                self._keep(loop.induction, loop.yields)
        return loop.results

    def scan_in_shares(self, count: int) -> None:
        """Scan `count` shares at once: first for their last results, which are combined, then for all results."""
        builder = self._builder
        elements = [self._accumulation.held_element(tensor.element) for tensor in self._inputs]
        totals = Shares(self._lowering, count, self._kept.width, elements)
        zero, one, length = builder.i64(0), builder.i64(1), self._size // count
        with builder.loop(zero, builder.i64(count), one, points=count) as region:
            first = builder.mul(region.induction, builder.i64(length))
            totals.write(region.induction, self.scan(first, length, keeps=False))
        with builder.loop(one, builder.i64(count), one, totals.read(zero)) as region:
            region.yields = self._accumulation.combine(region.arguments, totals.read(region.induction))
            totals.write(region.induction, region.yields)
        with builder.loop(zero, builder.i64(count), one, points=count) as region:
            first = builder.mul(region.induction, builder.i64(length))

            def behind() -> list[Value]:
                self.scan(first, length, totals.read(builder.sub(region.induction, one)))
                return []

            def at_first() -> list[Value]:
                self.scan(first, length)
                return []

            builder.if_else(builder.compare("eq", region.induction, zero), at_first, behind)

    def _point(self, step: Value) -> Point:
        builder, kept, axis = self._builder, self._kept, self._axis
        index = builder.sub(builder.i64(self._size - 1), step) if self._reverse else step
        indices = (*kept.indices[:axis], index, *kept.indices[axis:])
        return Point(indices, kept.axis + (kept.axis >= axis) if kept.axis >= 0 else -1, kept.width)

    def _load(self, step: Value) -> list[Value]:
        point = self._point(step)
        elements = [self._builder.broadcast(self._evaluation.at(t, point), point.width) for t in self._inputs]
        return self._accumulation.hold(elements)

    def _keep(self, step: Value, values: list[Value]) -> None:
        for buffer, value in zip(self._results, self._accumulation.release(values), strict=True):
            buffer.write(self._builder, self._point(step), value)

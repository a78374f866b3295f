"""``tpk.scan``: prefix combination along one dimension, into scratch.

Along the lanes, a chunk is scanned in registers: each lane is combined with the one before it, then with the one two
before it, and so on, and at last with the result of the chunks before. Only that last step waits for them. Elsewhere,
lanes are rows of their own, which are scanned element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.dialect.operations import Scan
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import row_prefetch
from triton_porting_kit.compiler.loops.reductions.accumulation import Accumulation
from triton_porting_kit.compiler.loops.reductions.combinations import Combination
from triton_porting_kit.compiler.loops.reductions.combine import takes_vectors
from triton_porting_kit.compiler.loops.reductions.shares import Shares, shares
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.nests import specialise
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor, joining
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis, joined_around, tile_loop


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
    vectors = takes_vectors(region)
    across = innermost_axis(shape) != op.axis and vectors
    lanes = lowering.target.lanes if across else 1
    count = shares(lowering, around, lanes, shape[op.axis] // 2)
    in_registers = count == 1 and not across and vectors and lowering.target.shuffles
    width = chunk(shape[op.axis], lowering.target.lanes) if in_registers else 1
    rows = row_prefetch.ahead(lowering, operation, shape, inputs)

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(builder, unmasked, kept)

        def line(kept_point: Point) -> None:
            row = _Row(lowering, operation, inputs, results, evaluation, kept_point)
            if width > 1:
                row.scan_chunks(width, rows)
            elif count == 1:
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
        self._combination = Combination(lowering, [operation])
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

    def scan_chunks(self, width: int, rows: list[row_prefetch.Row]) -> None:
        """Scan `width` elements at a time, in registers. `rows` are prefetched for the next program."""
        builder = self._builder
        neutral = self._combination.neutral()
        last = 0 if self._reverse else width - 1

        def one(first: Value, before: list[Value] | None) -> list[Value]:
            """Scan the chunk that begins with step `first`. Returns its last result, in all lanes."""
            point = self._chunk(first, width)
            elements = [builder.broadcast(self._evaluation.at(t, point), width) for t in self._inputs]
            row_prefetch.prefetch(self._evaluation, point, rows)
            scanned = self._across_lanes(self._accumulation.hold(elements), neutral)
            total = [builder.broadcast(builder.extract(value, last), width) for value in scanned]
            if before is not None:
                scanned = self._accumulation.combine(before, scanned)
                total = self._accumulation.combine(before, total)
            for buffer, value in zip(self._results, self._accumulation.release(scanned), strict=True):
                buffer.write(builder, point, value)
            return total

        if neutral is None:
            start, before = builder.i64(width), one(builder.i64(0), None)
        else:
            start, before = builder.i64(0), [builder.broadcast(value, width) for value in neutral]
        if neutral is None and self._size == width:
            return
        with builder.loop(start, builder.i64(self._size), builder.i64(width), before) as region:
            region.yields = one(region.induction, region.arguments)

    def _across_lanes(self, values: list[Value], neutral: list[Value] | None) -> list[Value]:
        """Scan the lanes of vectors. Lanes that have none before them are combined with `neutral`, or kept."""
        builder, width = self._builder, values[0].lanes
        step = 1
        while step < width:
            fill = values if neutral is None else [builder.broadcast(value, width) for value in neutral]
            moved = [self._moved(value, step, rest) for value, rest in zip(values, fill, strict=True)]
            combined = self._accumulation.combine(moved, values)
            if neutral is None:
                combined = [
                    self._where_moved(new, old, step) for new, old in zip(combined, values, strict=True)
                ]
            values = combined
            step *= 2
        return values

    def _moved(self, vector: Value, step: int, fill: Value) -> Value:
        """The value `step` lanes before each in the order of the scan; lanes of `fill` where there is none."""
        width = vector.lanes
        if self._reverse:
            chosen = [*range(step, width), *range(width, width + step)]
        else:
            chosen = [*range(width, width + step), *range(width - step)]
        return lane_memory.shuffled(self._builder, vector, fill, chosen)

    def _where_moved(self, new: Value, old: Value, step: int) -> Value:
        """`new` in the lanes that have one `step` lanes before them, else `old`."""
        lanes = range(new.lanes)
        is_moved = [lane < new.lanes - step if self._reverse else lane >= step for lane in lanes]
        return self._builder.select(lane_memory.flags(self._builder, is_moved), new, old)

    def _chunk(self, first: Value, width: int) -> Point:
        """The `width` elements from step `first` on, in the order of memory."""
        builder, kept, axis = self._builder, self._kept, self._axis
        index = builder.sub(builder.i64(self._size - width), first) if self._reverse else first
        return Point((*kept.indices[:axis], index, *kept.indices[axis:]), axis, width)

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

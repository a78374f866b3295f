"""``tpk.scan``: prefix combination along one dimension, element by element, into scratch."""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import Scan
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions.accumulation import Accumulation
from triton_porting_kit.compiler.loops.reductions.combine import takes_vectors
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.nests import specialise
from triton_porting_kit.compiler.loops.tiles.tensors import Point, joining
from triton_porting_kit.compiler.loops.tiles.tile_loops import innermost_axis, joined_around, tile_loop


def scan(lowering: Lowering, operation: Operation) -> None:
    """Lower a scan. The running result is in registers; lanes lie along another dimension if there is one."""
    builder = lowering.builder
    op = Scan(operation)
    inputs = [lowering.tensor(value) for value in op.inputs]
    shape = inputs[0].shape
    axis, reverse = op.axis, op.reverse
    size = shape[axis]
    region = operation.regions[0]
    accumulation = Accumulation(lowering, region)
    kept = lowering.plan(operation, shape, inputs)
    around = joined_around(shape, axis, joining(inputs))
    results = [lowering.scratch.allocate(shape, tensor.element) for tensor in inputs]
    across = innermost_axis(shape) != axis and takes_vectors(region)
    lanes = lowering.target.lanes if across else 1

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(builder, unmasked, kept)

        def line(kept_point: Point) -> None:
            kept_axis = kept_point.axis + (kept_point.axis >= axis)

            def at(step: Value) -> Point:
                index = builder.sub(builder.i64(size - 1), step) if reverse else step
                indices = (*kept_point.indices[:axis], index, *kept_point.indices[axis:])
                return Point(indices, kept_axis if kept_point.axis >= 0 else -1, kept_point.width)

            def load(point: Point) -> list[Value]:
                elements = [builder.broadcast(evaluation.at(t, point), point.width) for t in inputs]
                return accumulation.hold(elements)

            def keep(point: Point, values: list[Value]) -> None:
                for buffer, value in zip(results, accumulation.release(values), strict=True):
                    buffer.write(builder, point, value)

            first = at(builder.i64(0))
            running = load(first)
            keep(first, running)
            if size == 1:
                return
            with builder.loop(builder.i64(1), builder.i64(size), builder.i64(1), running) as loop:
                point = at(loop.induction)
                loop.yields = accumulation.combine(loop.arguments, load(point))
                keep(point, loop.yields)

        tile_loop(builder, around, lanes, line)
        return []

    specialise(lowering.builder, inputs, emit)
    for tensor, buffer in kept.items():
        lowering.hold(tensor, buffer)
    for definition, buffer in zip(operation.results, results, strict=True):
        lowering.define(definition, buffer)

"""``tpk.map``: a scalar function of the elements of tensors, from `tl.map_elementwise`."""

from __future__ import annotations

import math

from triton_porting_kit.compiler.dialect.operations import Assert, Map
from triton_porting_kit.compiler.loops.arithmetic.elementwise import OPERATIONS
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions.combine import evaluate, takes_vectors
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Elementwise, Point


def map_elements(lowering: Lowering, operation: Operation) -> None:
    """Deferred if the function takes vectors. A function with loops is evaluated here, element by element."""
    op = Map(operation)
    region = operation.regions[0]
    inputs = [lowering.tensor(value) for value in op.inputs]
    pack = op.pack
    if pack > 1:
        _packed(lowering, operation, pack)
        return
    shape = inputs[0].shape
    if takes_vectors(region) and not any(map(Assert.isa, walk(region))):
        known = [OPERATIONS.get(inner.name) for inner in walk(region)]
        cost = sum(entry.cost for entry in known if entry is not None)
        for index, definition in enumerate(operation.results):

            def compute(builder: LoopBuilder, values: list[Value], index: int = index) -> Value:
                return evaluate(lowering, region, values)[index]

            lowering.define(definition, Elementwise(shape, definition.type.element, inputs, compute, cost))
        return
    buffers = [lowering.scratch.allocate(shape, definition.type.element) for definition in operation.results]

    def body(evaluation: Evaluation, point: Point) -> None:
        arguments = [evaluation.at(tensor, point) for tensor in inputs]
        for buffer, value in zip(buffers, evaluate(lowering, region, arguments), strict=True):
            buffer.write(lowering.builder, point, value)

    lowering.tile(operation, shape, inputs, body, lanes=1)
    for definition, buffer in zip(operation.results, buffers, strict=True):
        lowering.define(definition, buffer)


def _packed(lowering: Lowering, operation: Operation, pack: int) -> None:
    """The function takes `pack` consecutive elements, in row-major order, of each input."""
    builder = lowering.builder
    shape = operation.results[0].type.shape
    assert shape is not None
    count = math.prod(shape)
    if count % pack:
        raise operation.unsupported(
            f"tl.map_elementwise cannot divide {count} elements into packs of {pack}",
            "choose a `pack` that divides the number of elements",
        )
    inputs = [lowering.materialise(lowering.tensor(operand), operation) for operand in operation.operands]
    buffers = [lowering.scratch.allocate(shape, definition.type.element) for definition in operation.results]
    flat_inputs, flat_outputs = (
        [Buffer((count,), buffer.element, buffer.pointer) for buffer in group] for group in (inputs, buffers)
    )
    builder.forget_reads()
    with builder.loop(builder.i64(0), builder.i64(count), builder.i64(pack)) as region:
        points = [Point((builder.add(region.induction, builder.i64(i)),), -1, 1) for i in range(pack)]
        evaluation = Evaluation(builder, frozenset(), {})
        arguments = [evaluation.at(tensor, point) for tensor in flat_inputs for point in points]
        results = evaluate(lowering, operation.regions[0], arguments)
        for index, value in enumerate(results):
            flat_outputs[index // pack].write(builder, points[index % pack], value)
    builder.forget_reads()
    for definition, buffer in zip(operation.results, buffers, strict=True):
        lowering.define(definition, buffer)

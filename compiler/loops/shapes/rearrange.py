"""Operations that rearrange elements: join and split tensors, gather along a dimension, histogram."""

from __future__ import annotations

from collections.abc import Iterable

from triton_porting_kit.compiler.dialect.operations import GatherAlong, Histogram, Join, Split
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import JoinAt, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import in_order


class Joined(Tensor):
    """Two tensors joined along a new last dimension."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        super().__init__((*first.shape, 2), first.element, (first, second), 1)

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        builder = evaluation.builder
        last = len(self.shape) - 1
        outer = point.pick(list(range(last)), evaluation.zero)
        values = [evaluation.at(operand, outer) for operand in self.operands]
        index, zero = point.indices[last], builder.i64(0)
        if point.axis == last:
            index = builder.add(builder.broadcast(index, point.width), builder.iota(point.width, "i64"))
            zero = builder.broadcast(zero, point.width)
        lanes = max(value.lanes for value in (*values, index))
        first, second = (builder.broadcast(value, lanes) for value in values)
        return builder.select(builder.compare("eq", index, zero), first, second)

    def operand_dimensions(self, index: int) -> list[int | None]:
        return list(range(len(self.shape) - 1))

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return self.operands_join(dimension) if dimension + 2 < len(self.shape) else None


class Half(Tensor):
    """The elements of a tensor with index `index` along its last dimension, which has size 2."""

    def __init__(self, source: Tensor, index: int) -> None:
        super().__init__(source.shape[:-1], source.element, (source,))
        self._index = index

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        indices = (*point.indices, evaluation.builder.i64(self._index))
        return evaluation.at(self.operands[0], Point(indices, point.axis, point.width))

    def operand_dimensions(self, index: int) -> list[int | None]:
        return [*range(len(self.shape)), None]

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return self.operands_join(dimension)


def join(lowering: Lowering, operation: Operation) -> None:
    """tpk.join: deferred."""
    op = Join(operation)
    lowering.define(op.result, Joined(lowering.tensor(op.first), lowering.tensor(op.second)))


def split(lowering: Lowering, operation: Operation) -> None:
    """tpk.split: deferred. A half of rank 0 is a scalar."""
    source = lowering.tensor(Split(operation).x)
    for index, definition in enumerate(operation.results):
        half = Half(source, index)
        if definition.type.is_tensor:
            lowering.define(definition, half)
        else:
            lowering.scalars[definition] = lowering.element(half, [], operation)


def concat(lowering: Lowering, operation: Operation) -> None:
    """tensor.concat: write each operand into its part of a buffer."""
    definition = operation.results[0]
    assert definition.type.shape is not None
    dimension = operation.integer("dim")
    builder = lowering.builder
    buffer = lowering.scratch.allocate(definition.type.shape, definition.type.element)
    start = 0
    for operand in operation.operands:
        part = lowering.tensor(operand)

        def body(evaluation: Evaluation, point: Point, part: Tensor = part, start: int = start) -> None:
            indices = list(point.indices)
            indices[dimension] = builder.add(indices[dimension], builder.i64(start))
            buffer.write(builder, Point(tuple(indices), point.axis, point.width), evaluation.at(part, point))

        lowering.tile(operation, part.shape, [part], body)
        start += part.shape[dimension]
    lowering.define(definition, buffer)


def gather_along(lowering: Lowering, operation: Operation) -> None:
    """tpk.gather_along: result[.., i, ..] = source[.., index[.., i, ..], ..] along `axis`."""
    op = GatherAlong(operation)
    definition, axis = op.result, op.axis
    assert definition.type.shape is not None
    source, index = lowering.tensor(op.source), lowering.tensor(op.indices)
    builder = lowering.builder
    held = lowering.materialise(source, operation)
    buffer = lowering.scratch.allocate(definition.type.shape, definition.type.element)
    stored = types.storage(held.element)

    def body(evaluation: Evaluation, point: Point) -> None:
        lanes = point.width if point.axis >= 0 else 1
        along = builder.broadcast(evaluation.at(index, point), lanes)
        # Narrow indices are unsigned: Triton has no negative ones.
        extend = "arith.extsi" if types.BITS[along.element] >= 32 else "arith.extui"
        offsets = builder.cast(extend, along, _like(along, "i64"))
        offsets = builder.mul(offsets, builder.broadcast(builder.i64(held.strides[axis]), lanes))
        terms = [
            builder.mul(i, builder.i64(stride))
            for d, (i, stride) in enumerate(zip(point.indices, held.strides, strict=True))
            if d != axis
        ]
        if lanes == 1:
            place = builder.address(held.pointer, [*terms, offsets], stored)
            value = lane_memory.read(builder, place, held.element, 1, floor=evaluation.floor)
        else:
            if point.axis != axis:
                steps = builder.broadcast(builder.i64(held.strides[point.axis]), lanes)
                offsets = builder.add(offsets, builder.mul(builder.iota(lanes, "i64"), steps))
            start = builder.address(held.pointer, terms, stored)
            pointers = lane_memory.pointers_at(builder, start, offsets, stored)
            value = lane_memory.gather(builder, pointers, held.element, floor=evaluation.floor)
        buffer.write(builder, point, value)

    lowering.tile(operation, buffer.shape, [index], body)
    lowering.define(definition, buffer)


def histogram(lowering: Lowering, operation: Operation) -> None:
    """tpk.histogram: count how often each number from 0 to bins - 1 occurs.

    Others, and masked elements, are not counted.
    """
    op = Histogram(operation)
    definition = op.result
    assert definition.type.shape is not None
    element = definition.type.element
    values = lowering.tensor(op.values)
    mask = None if op.mask is None else lowering.tensor(op.mask)
    inputs = [values] if mask is None else [values, mask]
    (bins,) = definition.type.shape
    builder = lowering.builder
    buffer = lowering.scratch.allocate(definition.type.shape, element)
    zero = builder.constant(0, element)
    lowering.tile(operation, buffer.shape, [], lambda evaluation, point: buffer.write(builder, point, zero))

    def body(evaluation: Evaluation, point: Point) -> None:
        value = builder.cast("arith.extui", evaluation.at(values, point), "i64")
        wanted = builder.compare("ult", value, builder.i64(bins))
        if mask is not None:
            wanted = builder.logical_and(wanted, evaluation.at(mask, point))

        def count() -> list[Value]:
            place = builder.address(buffer.pointer, [value], element)
            builder.forget_reads()
            before = lane_memory.read(builder, place, element, 1, floor=builder.level)
            lane_memory.write(builder, place, builder.add(before, builder.constant(1, element)))
            builder.forget_reads()
            return []

        builder.if_else(wanted, count)

    with in_order(builder):
        lowering.tile(operation, values.shape, inputs, body, lanes=1)
    lowering.define(definition, buffer)


def _like(value: Value, element: str) -> str:
    """`element` with the lanes of `value`."""
    return f"vector<{value.lanes}x{element}>" if value.is_vector else element

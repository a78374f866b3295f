"""Operations for microscaling formats: elements of half a byte, and scales that each apply to several elements."""

from __future__ import annotations

from collections.abc import Iterable

from triton_porting_kit.compiler.dialect.operations import Repeat, Unpack
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import JoinAt, Point, Tensor


def _all_but(rank: int, dimension: int) -> list[int | None]:
    """All dimensions are followed but `dimension`, along which each operand element is used several times."""
    return [None if d == dimension else d for d in range(rank)]


class Unpacked(Tensor):
    """Two elements from each byte along `dimension`; the one in the low half comes first."""

    def __init__(self, shape: tuple[int, ...], element: str, source: Tensor, dimension: int) -> None:
        super().__init__(shape, element, (source,), 2)
        self._dimension = dimension

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        builder = evaluation.builder
        along = point.axis == self._dimension and point.width > 1
        index = point.indices[self._dimension]
        place = builder.binary("arith.shrui", index, builder.i64(1))
        indices = list(point.indices)
        indices[self._dimension] = place
        if along:
            half = point.width // 2
            bytes_ = evaluation.at(
                self.operands[0], Point(tuple(indices), point.axis if half > 1 else -1, half)
            )
            return _interleaved(builder, builder.broadcast(bytes_, half))
        bytes_ = evaluation.at(self.operands[0], Point(tuple(indices), point.axis, point.width))
        odd = builder.binary("arith.andi", index, builder.i64(1))
        if odd.constant == 0:
            return _low_half(builder, bytes_)
        bits = builder.cast("arith.trunci", builder.mul(odd, builder.i64(4)), "i8")
        shifted = builder.binary("arith.shrui", bytes_, builder.broadcast(bits, bytes_.lanes))
        return shifted if odd.constant == 1 else _low_half(builder, shifted)

    def operand_dimensions(self, index: int) -> list[int | None]:
        return _all_but(len(self.shape), self._dimension)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return None if self._dimension in (dimension, dimension + 1) else self.operands_join(dimension)


def _low_half(builder: LoopBuilder, value: Value) -> Value:
    return builder.binary("arith.andi", value, builder.constant(15, value.type))


def _interleaved(builder: LoopBuilder, bytes_: Value) -> Value:
    """Both halves of each byte, one after the other."""
    low = _low_half(builder, bytes_)
    high = builder.binary("arith.shrui", bytes_, builder.constant(4, bytes_.type))
    lanes = 2 * bytes_.lanes
    type = vector_type("i8", lanes)
    if not bytes_.is_vector:
        text = f"vector.from_elements {low.name}, {high.name} : {type}"
    else:
        text = f"vector.interleave {low.name}, {high.name} : {bytes_.type} -> {type}"
    return builder.pure(text, type, (low, high))


class Repeated(Tensor):
    """Each element repeated `times` times along `dimension`."""

    def __init__(self, shape: tuple[int, ...], source: Tensor, dimension: int, times: int) -> None:
        super().__init__(shape, source.element, (source,), 1)
        self._dimension = dimension
        self._times = times

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        builder = evaluation.builder
        times = builder.i64(self._times)

        def source_at(index: Value, axis: int, width: int) -> Value:
            indices = list(point.indices)
            indices[self._dimension] = builder.binary("arith.divui", index, times)
            return evaluation.at(self.operands[0], Point(tuple(indices), axis, width))

        index = point.indices[self._dimension]
        if point.axis != self._dimension or point.width <= 1:
            return source_at(index, point.axis, point.width)
        if self._times % point.width == 0:
            return source_at(
                index, -1, 1
            )  # one element for all lanes, which start at a multiple of their count
        lanes = [
            source_at(builder.add(index, builder.i64(lane)), -1, 1)
            for lane in range(0, point.width, min(self._times, point.width))
        ]
        names = ", ".join(value.name for value in lanes for _ in range(point.width // len(lanes)))
        type = vector_type(lanes[0].type, point.width)
        return builder.pure(f"vector.from_elements {names} : {type}", type, lanes)

    def operand_dimensions(self, index: int) -> list[int | None]:
        return _all_but(len(self.shape), self._dimension)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return None if self._dimension in (dimension, dimension + 1) else self.operands_join(dimension)


def unpack(lowering: Lowering, operation: Operation) -> None:
    """tpk.unpack: deferred."""
    op = Unpack(operation)
    definition = op.result
    assert definition.type.shape is not None
    tensor = Unpacked(definition.type.shape, definition.type.element, lowering.tensor(op.x), op.dim)
    lowering.define(definition, tensor)


def repeat(lowering: Lowering, operation: Operation) -> None:
    """tpk.repeat: deferred."""
    op = Repeat(operation)
    shape = op.result.type.shape
    assert shape is not None
    lowering.define(op.result, Repeated(shape, lowering.tensor(op.x), op.dim, op.times))

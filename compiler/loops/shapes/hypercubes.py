"""Dimensions of two elements, as Triton's sorting networks have them: a row of 2**n elements has n of them.

Element by element, such tiles would be loops over two lanes. Here they are read by the place of an element in row-major
order, whose bits are the indices: the element on the other side of a dimension is at the place with one bit changed, so
whole vectors are exchanged, or lanes within one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions.combinations import Combination
from triton_porting_kit.compiler.loops.reductions.reduce import reduce
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.tensors import (
    EXPENSIVE,
    Buffer,
    Elementwise,
    JoinAt,
    Point,
    Range,
    Reindexed,
    Splat,
    Tensor,
    closure,
    is_operation,
    row_major,
)

PATTERNS = 4
"""Most elements of a tensor that is spread over a hypercube by selections."""


class Exchanges(dict[Operation, tuple[Def, int]]):
    """The exclusive ors that exchange the elements along a dimension: of which operand, and the dimension."""


def is_hypercube(shape: Sequence[int]) -> bool:
    """Whether there are at least three dimensions, each of two elements."""
    return len(shape) > 2 and all(size == 2 for size in shape)


def place_of(evaluation: Evaluation, shape: Sequence[int], point: Point) -> Value:
    """The row-major place of a point's first lane, also where dimensions were joined."""
    builder, place = evaluation.builder, evaluation.zero
    for index, stride in zip(point.indices, row_major(shape), strict=True):
        place = builder.add(place, builder.mul(index, builder.i64(stride)))
    return place


def at_place(shape: Sequence[int], place: Value, width: int, evaluation: Evaluation) -> Point:
    """The point with all dimensions joined into the last."""
    rank = len(shape)
    return Point((*(evaluation.zero,) * (rank - 1), place), rank - 1 if width > 1 else -1, width)


def is_aligned(evaluation: Evaluation, place: Value, width: int) -> bool:
    """Whether a chunk begins at a multiple of its width, a power of two, so that its lanes have the low bits."""
    return width & (width - 1) == 0 and 1 << evaluation.builder.zeros(place) >= width


def by_lanes(
    evaluation: Evaluation, shape: Sequence[int], point: Point, element: Callable[[Value], Value]
) -> Value:
    """A vector of what `element` gives for the place of each lane."""
    builder, stride = evaluation.builder, row_major(shape)[point.axis]
    first = place_of(evaluation, shape, point)
    found = [element(builder.add(first, builder.i64(lane * stride))) for lane in range(point.width)]
    total = builder.broadcast(found[0], point.width)
    for lane, value in enumerate(found[1:], 1):
        chosen = lane_memory.flags(builder, [at == lane for at in range(point.width)])
        total = builder.select(chosen, builder.broadcast(value, point.width), total)
    return total


def by_places(
    evaluation: Evaluation, shape: Sequence[int], point: Point, chunk: Callable[[Value, int], Value]
) -> Value:
    """The elements at a point by `chunk`, of a place and a number of lanes that follow it in row-major order."""
    width, place = point.width if point.axis >= 0 else 1, place_of(evaluation, shape, point)
    follows = width == 1 or (row_major(shape)[point.axis] == 1 and is_aligned(evaluation, place, width))
    return chunk(place, width) if follows else by_lanes(evaluation, shape, point, lambda at: chunk(at, 1))


class Exchanged(Tensor):
    """The elements on the other side of a dimension of two: those with the other index along it.

    The operand can be read by places (see `_is_by_places`), which mean the same where dimensions were joined. `lanes`
    are those of the target: within so many, the operand is evaluated once for a chunk.
    """

    def __init__(self, source: Tensor, dimension: int, lanes: int) -> None:
        super().__init__(source.shape, source.element, (source,), 1)
        self._distance = row_major(source.shape)[dimension]
        self.stays_in_chunk = self._distance < lanes

    def operand_dimensions(self, index: int) -> list[int | None]:
        return [None] * len(self.shape)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return self.operands_join(dimension)

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        return by_places(
            evaluation, self.shape, point, lambda place, width: self._other(evaluation, place, width)
        )

    def _other(self, evaluation: Evaluation, place: Value, width: int) -> Value:
        builder, (source,) = evaluation.builder, self.operands
        if self._distance >= width:
            there = builder.binary("arith.xori", place, builder.i64(self._distance))
            return evaluation.at(source, at_place(self.shape, there, width, evaluation))
        value = evaluation.at(source, at_place(self.shape, place, width, evaluation))
        return _permuted(evaluation, value, [lane ^ self._distance for lane in range(width)])


class Halved(Tensor):
    """The two elements along a dimension combined, of a tensor in scratch: a reduction of a dimension of two."""

    def __init__(self, source: Buffer, dimension: int, combination: Combination) -> None:
        shape = (*source.shape[:dimension], *source.shape[dimension + 1 :])
        super().__init__(shape, source.element, (source,), 2)
        self._distance = source.strides[dimension]
        self._combination = combination

    def operand_dimensions(self, index: int) -> list[int | None]:
        return [None] * len(self.operands[0].shape)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return ()

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        return by_places(
            evaluation, self.shape, point, lambda place, width: self._half(evaluation, place, width)
        )

    def _half(self, evaluation: Evaluation, place: Value, width: int) -> Value:
        if self._distance >= width:
            return self._pair(evaluation, place, width)
        builder = evaluation.builder
        first = builder.mul(place, builder.i64(2))
        low, high = (
            self._read(evaluation, builder.add(first, builder.i64(start)), width) for start in (0, width)
        )
        lanes = [lane + (lane & -self._distance) for lane in range(width)]
        return self._combined(
            lane_memory.shuffled(builder, low, high, lanes),
            lane_memory.shuffled(builder, low, high, [lane + self._distance for lane in lanes]),
        )

    def _pair(self, evaluation: Evaluation, place: Value, width: int) -> Value:
        """Two chunks at a distance; `place` is that of the result."""
        builder = evaluation.builder
        above = builder.binary("arith.andi", place, builder.i64(-self._distance))
        first = builder.add(place, above)
        second = builder.add(first, builder.i64(self._distance))
        return self._combined(self._read(evaluation, first, width), self._read(evaluation, second, width))

    def _read(self, evaluation: Evaluation, place: Value, width: int) -> Value:
        (source,) = self.operands
        return evaluation.at(source, at_place(source.shape, place, width, evaluation))

    def _combined(self, first: Value, second: Value) -> Value:
        hold, combination = self._combination.hold, self._combination
        (result,) = combination.release(combination.combine(hold([first]), hold([second])))
        return result


class Spread(Tensor):
    """A few elements, spread over a hypercube along its other dimensions: which one is chosen by bits of the place.

    It is no `Reindexed`: where dimensions were joined, no dimension says along which of them the elements are equal.
    """

    def __init__(self, shape: tuple[int, ...], operand: Tensor, dimensions: list[int | None]) -> None:
        super().__init__(shape, operand.element, (operand,))
        strides = row_major(shape)
        self._bits = [0 if d is None else strides[d] for d in dimensions]

    def operand_dimensions(self, index: int) -> list[int | None]:
        return [None] * len(self._bits)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return ()

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        return by_places(
            evaluation, self.shape, point, lambda place, width: self._chosen(evaluation, place, width)
        )

    def _chosen(self, evaluation: Evaluation, place: Value, width: int) -> Value:
        builder, (source,) = evaluation.builder, self.operands

        def among(indices: tuple[Value, ...]) -> Value:
            if len(indices) == len(self._bits):
                return evaluation.at(source, Point(indices, -1, 1))
            bit = self._bits[len(indices)]
            first = among((*indices, builder.i64(0)))
            if not bit:
                return first
            second = among((*indices, builder.i64(1)))
            if bit < width:
                condition = lane_memory.flags(builder, [bool(lane & bit) for lane in range(width)])
                return builder.select(
                    condition, builder.broadcast(second, width), builder.broadcast(first, width)
                )
            set_ = builder.binary("arith.andi", place, builder.i64(bit))
            lanes = max(first.lanes, second.lanes)
            return builder.select(
                builder.compare("ne", set_, builder.i64(0)),
                builder.broadcast(second, lanes),
                builder.broadcast(first, lanes),
            )

        return among(())


def _is_by_places(tensor: Tensor) -> bool:
    """Whether a tensor reads only what can be read by places.

    Others are loads, which have bounds, and masks, which loops take for granted in their parts.
    """
    pending, seen = [tensor], {tensor}
    while pending:
        part = pending.pop()
        if part.buffer is not None or type(part) in (Buffer, Splat, Exchanged, Halved, Spread):
            continue
        if type(part) is not Elementwise:
            return False
        pending += [operand for operand in part.operands if operand not in seen]
        seen.update(part.operands)
    return True


def _permuted(evaluation: Evaluation, value: Value, lanes: list[int]) -> Value:
    return lane_memory.shuffled(evaluation.builder, value, value, lanes) if value.is_vector else value


def spread(
    lowering: Lowering, shape: tuple[int, ...], source: Tensor, dimensions: list[int | None]
) -> Tensor | None:
    """The broadcast of a few elements to a hypercube; None for others."""
    few = 2 ** len(source.shape) <= PATTERNS and set(source.shape) == {2}
    if not lowering.target.shuffles or not is_hypercube(shape) or not few:
        return None
    if not all(type(part) in _COMPUTED for part in closure([source])):
        return None
    return Spread(shape, source, dimensions)


_COMPUTED = (Buffer, Elementwise, Range, Reindexed, Splat)
"""What reads no global memory, and may be evaluated at one element at any time."""


def exchange(lowering: Lowering, operation: Operation) -> bool:
    """Lower an exclusive or that `halve` has found to be an exchange. Returns whether it is one."""
    found = lowering.part(Exchanges).get(operation)
    if found is None:
        return False
    operand, dimension = found
    source = lowering.tensor(operand)
    exchanged = Exchanged(source, dimension, lowering.target.lanes)
    if not _is_by_places(source) or (not exchanged.stays_in_chunk and cost(source, {}) >= EXPENSIVE):
        # Now, so that the scratch of earlier steps is free again.
        kept = source.operands[0] if is_operation(source, "arith.bitcast") else source
        lowering.uses.end(kept.definition, operation)
        buffer = lowering.materialise(kept, operation)
        if kept.buffer is None:  # a value of an outer block: only this region reads the buffer
            lowering.hold(kept, buffer)
    lowering.define(operation.results[0], exchanged)
    return True


def reduce_or_halve(lowering: Lowering, operation: Operation) -> None:
    """Lower a reduction."""
    if not halve(lowering, operation):
        reduce(lowering, operation)


def halve(lowering: Lowering, operation: Operation) -> bool:
    """Lower a reduction of a dimension of two without a loop. Returns whether it is one that can be.

    ``x ^ broadcast(xor of x along a dimension)`` is x with that dimension turned round: an exchange. Then nothing
    evaluates the reduction.
    """
    (operand, *others), (definition, *_) = operation.operands, operation.results
    shape, dimension = operand.type.shape, Reduce(operation).axis
    if (
        not lowering.target.shuffles
        or others
        or shape is None
        or len(shape) < 2
        or shape[dimension] != 2
        or definition.type.shape is None
    ):
        return False
    if users := _exchanging(operation, dimension):
        lowering.part(Exchanges).update(dict.fromkeys(users, (operand, dimension)))
        nothing = lane_memory.zero(lowering.builder, definition.type.element)
        lowering.define(definition, Splat(definition.type.shape, nothing, definition.type.element))
        return True
    combination = Combination(lowering, [operation])
    if not is_hypercube(shape) or not combination.takes_vectors:
        return False
    # Now, since operations that write memory may follow.
    source = lowering.tensor(operand)
    lowering.uses.end(source.definition, operation)
    lowering.define(definition, Halved(lowering.materialise(source, operation), dimension, combination))
    return True


def _exchanging(operation: Operation, dimension: int) -> list[Operation]:
    """The exclusive ors that a reduction is for, if it is for nothing else."""
    region, found = operation.regions[0], []
    names = [inner.name for inner in region.operations]
    if names[:-1] != ["arith.xori"] or set(region.operations[0].operands) != set(region.arguments):
        return []
    for user in operation.results[0].users:
        if user.name != "linalg.broadcast" or user.integers("dimensions") != [dimension]:
            return []
        for other in user.results[0].users:
            alone = other.name == "arith.xori" and set(other.operands) == {
                operation.operands[0],
                user.results[0],
            }
            if not alone or other.block is not operation.block:
                return []
            found.append(other)
    return found

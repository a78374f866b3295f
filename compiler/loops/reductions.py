"""``tpk.reduce``: any associative and commutative combination along one dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops.accumulation import Accumulation
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value, vector_type
from triton_porting_kit.compiler.loops.combine import takes_vectors
from triton_porting_kit.compiler.loops.evaluation import Evaluation
from triton_porting_kit.compiler.loops.graph import cost
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.program import Block, Operation
from triton_porting_kit.compiler.loops.tensors import EXPENSIVE, Point, Tensor, joins
from triton_porting_kit.compiler.loops.tiles import chunk, innermost_axis, joined_around, tile_loop

ACCUMULATORS = 4
"""Independent partial results, so that one combination need not wait for the one before."""

SIMPLE = 2
"""Up to this cost of an element, combining takes longest."""


def reduce(lowering: Lowering, operation: Operation) -> None:
    """Partial results live in registers; a result of rank 0 stays there, others go to scratch."""
    inputs = [lowering.tensor(operand) for operand in operation.operands]
    shape = inputs[0].shape
    axis = operation.integer("axis")
    region = operation.regions[0]
    kept_shape = shape[:axis] + shape[axis + 1 :]
    kept = lowering.plan(operation, shape, inputs)
    around = joined_around(shape, axis, lambda dimension: joins(inputs, dimension))
    results = [
        lowering.allocate(d.type.shape, d.type.element) if d.type.shape is not None else None
        for d in operation.results
    ]

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(lowering.builder, unmasked, kept)
        reducer = _Reducer(lowering, region, inputs, shape, axis, evaluation)
        if not kept_shape:
            return reducer.at(Point((), -1, 1))

        def body(point: Point) -> None:
            for buffer, value in zip(results, reducer.at(point), strict=True):
                assert buffer is not None
                buffer.write(lowering.builder, point, value)

        tile_loop(lowering.builder, around, reducer.kept_lanes, body)
        return []

    values = lowering.specialise(inputs, emit)
    for tensor, buffer in kept.items():
        tensor.buffer = buffer
    for index, definition in enumerate(operation.results):
        result = results[index]
        if result is None:
            lowering.scalars[definition] = values[index]
        else:
            lowering.define(definition, result)


def identity(operation: str, element: str) -> int | float | str | None:
    """The neutral element of an ``arith`` operation, as a literal; None where there is none or it is not known."""
    if element in ("f32", "f64"):
        # A maximum of NaN and x is x; a sum of -0 and x is x, also where x is 0.
        nan = "0x7FC00000" if element == "f32" else "0x7FF8000000000000"
        floats: dict[str, int | float | str] = {
            "arith.addf": -0.0,
            "arith.mulf": 1.0,
            "arith.maxnumf": nan,
            "arith.minnumf": nan,
            "arith.maximumf": -math.inf,
            "arith.minimumf": math.inf,
        }
        return floats.get(operation)
    if element not in ("i8", "i16", "i32", "i64"):
        return None
    half = 1 << (types.BITS[element] - 1)
    integers = {
        "arith.addi": 0,
        "arith.muli": 1,
        "arith.ori": 0,
        "arith.xori": 0,
        "arith.andi": -1,
        "arith.maxsi": -half,
        "arith.minsi": half - 1,
        "arith.maxui": 0,
        "arith.minui": -1,
    }
    return integers.get(operation)


class _Reducer:
    """Reduces one row (or as many neighbouring rows as a vector has lanes) at a time."""

    def __init__(
        self,
        lowering: Lowering,
        region: Block,
        inputs: Sequence[Tensor],
        shape: tuple[int, ...],
        axis: int,
        evaluation: Evaluation,
    ) -> None:
        self._builder: LoopBuilder = lowering.builder
        self._region = region
        self._accumulation = Accumulation(lowering, region)
        self._inputs = inputs
        self._axis = axis
        self._size = shape[axis]
        self._evaluation = evaluation
        # Lanes lie along the reduced dimension where that is the contiguous one, else along a kept dimension.
        self._across = innermost_axis(shape) == axis
        lanes = lowering.target.lanes if takes_vectors(region) else 1
        self._width = chunk(self._size, lanes) if self._across else 1
        self.kept_lanes = 1 if self._across else lanes

    def at(self, kept: Point) -> list[Value]:
        """The results at a point of the kept dimensions."""
        builder = self._builder
        steps = self._size // self._width
        count = min(self._accumulators(), steps)
        while steps % count:
            count -= 1
        stride = count * self._width
        identity = self._identity() if steps > 1 else None
        if identity is not None:
            # Nothing is taken out of the loop: what the inputs take to compute is written once.
            lanes = self._width if self._across else kept.width
            groups = [[builder.broadcast(identity, lanes)] for _ in range(count)]
        else:
            groups = [self._load(kept, builder.i64(i * self._width)) for i in range(count)]
        start = 0 if identity is not None else stride
        if start < self._size:
            carried = [value for group in groups for value in group]
            with builder.loop(
                builder.i64(start), builder.i64(self._size), builder.i64(stride), carried
            ) as region:
                arguments = _regroup(region.arguments, len(self._inputs))
                for i, held in enumerate(arguments):
                    index = builder.add(region.induction, builder.i64(i * self._width))
                    region.yields += self._accumulation.combine(held, self._load(kept, index))
            groups = _regroup(region.results, len(self._inputs))
        while len(groups) > 1:
            half = (len(groups) + 1) // 2
            merged = [self._accumulation.combine(a, b) for a, b in zip(groups, groups[half:], strict=False)]
            groups = merged + groups[len(merged) : half]
        held = self._across_lanes(groups[0]) if self._width > 1 else groups[0]
        return self._accumulation.release(held)

    def _accumulators(self) -> int:
        """The dearer one element is, the fewer combinations it takes to keep the CPU busy."""
        known: dict[Tensor, int] = {}
        dearness = sum(cost(tensor, known) for tensor in self._inputs)
        if dearness <= SIMPLE:
            return ACCUMULATORS
        return 2 if dearness < EXPENSIVE else 1

    def _identity(self) -> Value | None:
        """What leaves every element as it is, where the combination is one operation that has such a number."""
        first = self._region.operations[0]
        if len(self._region.operations) != 2 or set(first.operands) != set(self._region.arguments):
            return None
        element = self._accumulation.held_element(first.operands[0].type.element)
        literal = identity(first.name, element)
        return None if literal is None else self._builder.constant(literal, element)

    def _load(self, kept: Point, index: Value) -> list[Value]:
        indices = (*kept.indices[: self._axis], index, *kept.indices[self._axis :])
        if self._across:
            point = Point(indices, self._axis if self._width > 1 else -1, self._width)
        else:
            axis = kept.axis if kept.axis < self._axis else kept.axis + 1
            point = Point(indices, axis if kept.axis >= 0 else -1, kept.width)
        lanes = point.width
        elements = [self._builder.broadcast(self._evaluation.at(t, point), lanes) for t in self._inputs]
        return self._accumulation.hold(elements)

    def _across_lanes(self, values: list[Value]) -> list[Value]:
        lanes = self._width
        while lanes > 1:
            lanes //= 2
            low = [_part(self._builder, value, 0, lanes) for value in values]
            high = [_part(self._builder, value, lanes, lanes) for value in values]
            values = self._accumulation.combine(low, high)
        return values


def _regroup(values: Sequence[Value], size: int) -> list[list[Value]]:
    return [list(values[i : i + size]) for i in range(0, len(values), size)]


def _part(builder: LoopBuilder, vector: Value, start: int, lanes: int) -> Value:
    """`lanes` lanes of a vector from `start` on."""
    if lanes == 1:
        return builder.extract(vector, start)
    type = vector_type(vector.element, lanes)
    text = (
        f"vector.extract_strided_slice {vector.name} "
        f"{{offsets = [{start}], sizes = [{lanes}], strides = [1]}} : {vector.type} to {type}"
    )
    return builder.pure(text, type, (vector,))

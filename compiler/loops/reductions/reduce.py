"""``tpk.reduce``: any associative and commutative combination along one dimension."""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.narrow_factors import narrow_factors
from triton_porting_kit.compiler.loops.memory import row_prefetch
from triton_porting_kit.compiler.loops.reductions import number_extremes
from triton_porting_kit.compiler.loops.reductions.combinations import Combination, companions
from triton_porting_kit.compiler.loops.reductions.shares import Shares, shares
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.beside import Beside
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.nests import specialise
from triton_porting_kit.compiler.loops.tiles.peeling import PeeledLoop
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Point, Tensor, joining
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk, innermost_axis, joined_around, tile_loop

ACCUMULATORS = 4
"""Most independent partial results, so that a combination need not wait for the previous one."""

SIMPLE = 2
"""Up to this cost of an element, the combination is the bottleneck."""


def reduce(lowering: Lowering, operation: Operation) -> None:
    """Lower a reduction. Partial results are in registers; a result of rank 0 stays there, others go to scratch."""
    operations = companions(lowering, operation)
    lowering.done.update(operations)
    inputs = [lowering.tensor(operand) for part in operations for operand in part.operands]
    definitions = [definition for part in operations for definition in part.results]
    shape = inputs[0].shape
    axis = Reduce(operation).axis
    kept_shape = shape[:axis] + shape[axis + 1 :]
    held = lowering.plan(operations[-1], shape, inputs)
    beside = lowering.part(Beside).taken(operations)
    narrow = narrow_factors(lowering, operations, held)
    kept = held | {tensor: place for tensor, (_, place) in narrow.items()} | beside
    # A second time, kept elements would be computed from what they may have overwritten.
    combination = Combination(lowering, operations, may_repeat=not kept)
    around = joined_around(shape, axis, joining(inputs))
    results = [
        lowering.scratch.allocate(d.type.shape, d.type.element) if d.type.shape is not None else None
        for d in definitions
    ]
    span = PeeledLoop(lowering.builder, inputs, shape, axis)
    rows = row_prefetch.ahead(lowering, operations[-1], shape, inputs)

    def emit(unmasked: frozenset[object]) -> list[Value]:
        evaluation = Evaluation(lowering.builder, unmasked, kept)
        reducer = _Reducer(lowering, combination, inputs, axis, evaluation, span, kept, rows)
        if not kept_shape:
            reducer.shares(())
            return reducer.at(Point((), -1, 1))

        def body(point: Point) -> None:
            for buffer, value in zip(results, reducer.at(point), strict=True):
                assert buffer is not None
                buffer.write(lowering.builder, point, value)

        in_order = reducer.shares(around) > 1
        tile_loop(lowering.builder, around, reducer.kept_lanes, body, in_order=in_order)
        return []

    if span.is_split and shape[axis] > _width(lowering, combination, shape, axis):
        lowering.builder.forget_reads()
        values = emit(frozenset())
        lowering.builder.forget_reads()
    else:
        values = specialise(lowering.builder, inputs, emit)
    for tensor, buffer in held.items():
        if tensor in narrow:
            factor, place = narrow[tensor]
            lowering.hold(factor, place.narrow)
        else:
            lowering.hold(tensor, buffer)
    if beside:
        lowering.builder.forget_reads()
    for index, definition in enumerate(definitions):
        result = results[index]
        if result is None:
            lowering.scalars[definition] = values[index]
        else:
            lowering.define(definition, result)


def _width(lowering: Lowering, combination: Combination, shape: tuple[int, ...], axis: int) -> int:
    """How many elements of the reduced dimension are read at a time."""
    lanes = lowering.target.lanes if combination.takes_vectors else 1
    return chunk(shape[axis], lanes) if innermost_axis(shape) == axis else 1


class _Reducer:
    """Reduces one row at a time, or as many neighbouring rows as a vector has lanes.

    `span` is the peeled loop along the reduced dimension. If `evaluation` treats its accesses as masked, the row is
    read in two parts: first the part wholly in bounds, without masks. `rows` are prefetched for the next program.
    """

    def __init__(
        self,
        lowering: Lowering,
        combination: Combination,
        inputs: Sequence[Tensor],
        axis: int,
        evaluation: Evaluation,
        span: PeeledLoop,
        kept: dict[Tensor, Buffer],
        rows: list[row_prefetch.Row],
    ) -> None:
        shape = inputs[0].shape
        self._lowering = lowering
        self._shares = 1
        self._builder: LoopBuilder = lowering.builder
        self._combination = combination
        self._inputs = inputs
        self._axis = axis
        self._size = shape[axis]
        self._evaluation = evaluation
        self._span = span
        self._kept = kept
        self._rows = rows
        # Lanes lie along the reduced dimension if that is the innermost one, else along a kept dimension.
        self._across = innermost_axis(shape) == axis
        self._width = _width(lowering, combination, shape, axis)
        self.kept_lanes = 1 if self._across else lowering.target.lanes if combination.takes_vectors else 1
        self._in_parts = (
            span.is_split and self._size > self._width and not span.unmasked <= evaluation.unmasked
        )

    def shares(self, rows: Sequence[int]) -> int:
        """How many work-items share a row from now on, if there are `rows`."""
        pieces = self._size // self._width // self._count()
        if self._in_parts and self._combination.neutral() is None:
            pieces = 1  # a work-item may have no piece
        self._shares = shares(self._lowering, rows, self.kept_lanes, pieces)
        return self._shares

    def _count(self) -> int:
        """The number of partial results in registers."""
        steps = self._size // self._width
        count = min(self._accumulators(), steps)
        while steps % count:
            count -= 1
        return count

    def at(self, kept: Point) -> list[Value]:
        """The results at a point of the kept dimensions."""
        steps, count = self._size // self._width, self._count()
        # A row that is read all at once is not combined with anything, unless that is a number.
        several = steps > count or self._in_parts or self._combination.extreme is not None
        neutral = self._neutral(kept, self._combination) if several else None
        if self._in_parts:
            held = self._two_parts(kept, count, neutral)
        else:
            held = self._part(kept, self._evaluation, count, neutral, self._builder.i64(self._size))
        held = self._across_lanes(held, self._combination)
        if self._combination.extreme is not None:
            held = self._unless_no_number(kept, held, self._combination.extreme)
        return self._combination.release(held)

    def _neutral(self, kept: Point, combination: Combination) -> list[Value] | None:
        neutral = combination.neutral()
        lanes = self._width if self._across else kept.width
        return neutral and [self._builder.broadcast(value, lanes) for value in neutral]

    def _unless_no_number(self, kept: Point, held: list[Value], extreme: str) -> list[Value]:
        """The extremes, also of rows without a number: those are reduced again."""
        builder, ordinary = self._builder, self._combination.ordinary

        def again() -> list[Value]:
            start, stop, step = builder.i64(0), builder.i64(self._size), builder.i64(self._width)
            with builder.loop(start, stop, step, self._neutral(kept, ordinary) or []) as region:
                elements = self._load(kept, region.induction, self._evaluation)
                region.yields = ordinary.combine(region.arguments, elements)
            return self._across_lanes(region.results, ordinary)

        unchanged = number_extremes.some_unchanged(builder, extreme, held[0])
        return builder.if_else(unchanged, again, lambda: held)

    def _part(
        self, kept: Point, evaluation: Evaluation, count: int, neutral: list[Value] | None, stop: Value
    ) -> list[Value]:
        """Reduce the elements before `stop` in `count` partial results.

        Without a `neutral` element, there must be some.

        `stop` is a multiple of `count` chunks.
        """
        builder = self._builder
        stride = count * self._width
        if self._shares == 1:
            return self._strided(kept, evaluation, count, neutral, stop, builder.i64(0), stride)
        lanes = self._width if self._across else kept.width
        elements = self._combination.held_elements([tensor.element for tensor in self._inputs])
        left = self._shares
        partial = Shares(self._lowering, left, lanes, elements)
        with builder.loop(builder.i64(0), builder.i64(left), builder.i64(1), points=left) as region:
            first = builder.mul(region.induction, builder.i64(stride))
            partial.write(
                region.induction,
                self._strided(kept, evaluation, count, neutral, stop, first, left * stride),
            )
        while left > 1:
            left //= 2
            with builder.loop(builder.i64(0), builder.i64(left), builder.i64(1), points=left) as region:
                a = partial.read(region.induction)
                b = partial.read(builder.add(region.induction, builder.i64(left)))
                partial.write(region.induction, self._combination.combine(a, b))
        return partial.read(builder.i64(0))

    def _strided(
        self,
        kept: Point,
        evaluation: Evaluation,
        count: int,
        neutral: list[Value] | None,
        stop: Value,
        first: Value,
        stride: int,
    ) -> list[Value]:
        """Reduce `count` chunks from `first` on, those behind `stride` elements, and so on before `stop`."""
        builder = self._builder
        if neutral is not None:
            # Nothing is peeled off the loop, so the code that computes the inputs is emitted once.
            groups, start = [neutral] * count, first
        else:
            places = [builder.add(first, builder.i64(i * self._width)) for i in range(count)]
            groups = [self._load(kept, place, evaluation) for place in places]
            start = builder.add(first, builder.i64(stride))
        if stop.constant is None or not isinstance(start.constant, int) or start.constant < self._size:
            carried = [value for group in groups for value in group]
            with builder.loop(start, stop, builder.i64(stride), carried) as region:
                arguments = _regroup(region.arguments, len(self._inputs))
                for i, held in enumerate(arguments):
                    index = builder.add(region.induction, builder.i64(i * self._width))
                    elements = self._load(kept, index, evaluation)
                    region.yields += self._combination.combine(held, elements)
            groups = _regroup(region.results, len(self._inputs))
        while len(groups) > 1:
            half = (len(groups) + 1) // 2
            merged = [self._combination.combine(a, b) for a, b in zip(groups, groups[half:], strict=False)]
            groups = merged + groups[len(merged) : half]
        return groups[0]

    def _two_parts(self, kept: Point, count: int, neutral: list[Value] | None) -> list[Value]:
        """Reduce the chunks wholly in bounds, without masks, then the others."""
        builder = self._builder
        whole = self._span.whole(self._point(kept, builder.i64(0)), count * self._width)

        def unmasked() -> list[Value]:
            evaluation = Evaluation(builder, self._span.unmasked, self._kept)
            return self._part(kept, evaluation, count, neutral, whole)

        some = builder.compare("sgt", whole, builder.i64(0))
        start = whole
        if neutral is None:

            def first_masked() -> list[Value]:
                return [builder.i64(self._width), *self._load(kept, builder.i64(0), self._evaluation)]

            start, *held = builder.if_else(some, lambda: [whole, *unmasked()], first_masked)
        elif self._span.is_pinned:
            held = builder.if_else(some, unmasked, lambda: neutral)
        else:
            held = unmasked()
        tensors = [*self._inputs, *self._kept]
        if all(map(self._span.is_uniform, tensors)) and (self._across or not self._kept):
            return self._until_settled(kept, start, held)
        with builder.loop(start, builder.i64(self._size), builder.i64(self._width), held) as region:
            elements = self._load(kept, region.induction, self._evaluation)
            region.yields = self._combination.combine(region.arguments, elements)
        return region.results

    def _until_settled(self, kept: Point, start: Value, held: list[Value]) -> list[Value]:
        """Reduce the elements from `start` on, until all of them are padding and one more chunk changes nothing.

        Then further chunks would not change it either. Tensors that are kept still get all their elements.
        """
        builder = self._builder
        size, width = builder.i64(self._size), builder.i64(self._width)
        past = self._span.past(self._width)
        buffers = list(self._kept.values())
        count = len(held)
        carried = [start, *held]
        if buffers:
            # Carry the last elements of the kept tensors, and the index after them.
            carried += [builder.broadcast(lane_memory.zero(builder, b.element), self._width) for b in buffers]
            carried.append(start)
        with builder.loop_below(size, carried) as region:
            index, before = region.induction, region.arguments[1 : 1 + count]
            combined = self._combination.combine(before, self._load(kept, index, self._evaluation))
            point = self._point(kept, index)
            last = [builder.broadcast(self._evaluation.at(t, point), self._width) for t in self._kept]
            settled = builder.compare("sge", index, past)
            for a, b in zip(before, combined, strict=True):
                settled = builder.logical_and(settled, _same_bits(builder, a, b))
            following = builder.add(index, width)
            region.yields = [builder.select(settled, size, following), *combined]
            if buffers:
                region.yields += [*last, following]
        if buffers:
            with builder.loop(region.results[-1], size, width) as rest:
                for buffer, value in zip(buffers, region.results[1 + count : -1], strict=True):
                    buffer.write(builder, self._point(kept, rest.induction), value)
        return region.results[1 : 1 + count]

    def _accumulators(self) -> int:
        """The number of partial results. The more expensive an element is, the fewer it takes to keep the CPU busy."""
        known: dict[Tensor, int] = {}
        dearness = sum(cost(tensor, known) for tensor in self._inputs)
        if dearness <= SIMPLE:
            return ACCUMULATORS
        return 2 if dearness < 2 * EXPENSIVE else 1

    def _point(self, kept: Point, index: Value) -> Point:
        """The point of the whole tile for `kept` and an index along the reduced dimension."""
        indices = (*kept.indices[: self._axis], index, *kept.indices[self._axis :])
        if self._across:
            return Point(indices, self._axis if self._width > 1 else -1, self._width)
        axis = kept.axis if kept.axis < self._axis else kept.axis + 1
        return Point(indices, axis if kept.axis >= 0 else -1, kept.width)

    def _load(self, kept: Point, index: Value, evaluation: Evaluation) -> list[Value]:
        point = self._point(kept, index)
        elements = [self._builder.broadcast(evaluation.at(t, point), point.width) for t in self._inputs]
        row_prefetch.prefetch(evaluation, point, self._rows)
        return self._combination.hold(elements)

    def _across_lanes(self, values: list[Value], combination: Combination) -> list[Value]:
        lanes = self._width
        while lanes > 1:
            lanes //= 2
            low = [_slice(self._builder, value, 0, lanes) for value in values]
            high = [_slice(self._builder, value, lanes, lanes) for value in values]
            values = combination.combine(low, high)
        return values


def _same_bits(builder: LoopBuilder, a: Value, b: Value) -> Value:
    """i1: two values have the same bits in all lanes, including NaN and signs of zeros."""
    if a.element.startswith("f"):
        integers = vector_type(f"i{types.BITS[a.element]}", a.lanes)
        a, b = (builder.cast("arith.bitcast", value, integers) for value in (a, b))
    equal = builder.compare("eq", a, b)
    if not equal.is_vector:
        return equal
    return builder.pure(f"vector.reduction <and>, {equal.name} : {equal.type} into i1", "i1", (equal,))


def _regroup(values: Sequence[Value], size: int) -> list[list[Value]]:
    return [list(values[i : i + size]) for i in range(0, len(values), size)]


def _slice(builder: LoopBuilder, vector: Value, start: int, lanes: int) -> Value:
    """`lanes` lanes of a vector, starting with lane `start`."""
    if lanes == 1:
        return builder.extract(vector, start)
    type = vector_type(vector.element, lanes)
    chosen = ", ".join(str(start + lane) for lane in range(lanes))
    return builder.pure(
        f"vector.shuffle {vector.name}, {vector.name} [{chosen}] : {vector.type}, {vector.type}",
        type,
        (vector,),
    )

"""Accesses at explicit offsets from one base: gathers and scatters.

Offsets are often made of an index by divisions and remainders, as where the dimensions of an array are flattened. Then
most chunks of lanes read consecutive elements (see `runs`), and are accessed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import At, nowhere
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.runs import Run, broken_at_sign, counted, uniform
from triton_porting_kit.compiler.loops.tiles.tensors import (
    GATHER_COST,
    Elementwise,
    JoinAt,
    Point,
    Splat,
    Tensor,
    closure,
    is_operation,
)

_QUOTIENTS = ("arith.divsi", "arith.divui", "arith.floordivsi")


class Gather(Tensor):
    """Elements at explicit offsets from one base."""

    asks_for_runs = True

    def __init__(
        self,
        base: Value,
        offsets: Tensor,
        element: str,
        mask: Tensor | None,
        other: Tensor | None,
        *,
        unit: str,
        place: At = nowhere,
    ) -> None:
        operands = [t for t in (offsets, mask, other) if t is not None]
        super().__init__(offsets.shape, element, operands, GATHER_COST)
        self.base, self.offsets, self.mask, self.other, self.unit = base, offsets, mask, other, unit
        self.place = place
        self.ahead: tuple[int, int] | None = None
        """A dimension, and how far ahead along it each chunk of consecutive elements prefetches its like."""

    def is_contiguous(self, builder: LoopBuilder, dimension: int) -> bool:
        """Whether the elements lie side by side in memory all along a dimension."""
        builder.open()  # what is emitted to find out is dropped
        evaluation = Evaluation(builder, frozenset(), {})
        indices = tuple(builder.fresh("i64") for _ in self.shape)
        builder.aligned(indices[dimension], self.shape[dimension])
        point = Point(indices, dimension, self.shape[dimension])
        run = run_of_offsets(evaluation, point, self.offsets)
        found = (
            run is not None
            and is_consecutive(run.step, self.unit, self.element)
            and not evaluation.breaks(run)
        )
        builder.close()
        return found

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        with self.place():
            run = run_of_offsets(evaluation, point, self.offsets)
            if run is None and point.width > 1 and self._has_quotients:
                return self._read_at_once(evaluation, point)
            if run is None:
                return self._read(evaluation, point)
            return evaluation.on_condition(
                run,
                point,
                closure(self.operands),
                lambda inner, here, whole: [self._read(inner, here, run.step if whole else None)],
            )[0]

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        runs = [evaluation.run(operand, point) for operand in self.operands]
        known = [run for run in runs if run is not None and run.step == 0]
        return uniform(known) if len(known) == len(runs) else None

    @cached_property
    def _has_quotients(self) -> bool:
        """Whether offsets are computed from quotients by a divisor that is known when the kernel runs."""
        return any(
            isinstance(part, Elementwise) and part.name in _QUOTIENTS and isinstance(part.operands[1], Splat)
            for part in closure([self.offsets])
        )

    def _read_at_once(self, evaluation: Evaluation, point: Point) -> Value:
        """The elements at `point`: one for all lanes where all offsets turn out to be equal and no lane is masked."""
        builder, lanes = evaluation.builder, point.width
        offsets = evaluation.at(self.offsets, point)
        mask = None if self.mask is None else evaluation.at(self.mask, point)
        if not offsets.is_vector:
            return self._read(evaluation, point)
        first = builder.extract(offsets, 0)
        alike = builder.compare("eq", offsets, builder.broadcast(first, lanes))
        if mask is not None:
            alike = builder.logical_and(alike, builder.broadcast(mask, lanes))
        every = builder.pure(f"vector.reduction <and>, {alike.name} : {alike.type} into i1", "i1", (alike,))

        def at_once() -> list[Value]:
            offset = builder.cast("arith.extsi", first, "i64")
            pointer = builder.address(self.base, [offset], self.unit)
            element = lane_memory.read(builder, pointer, self.element, 1, floor=evaluation.floor)
            return [builder.broadcast(element, lanes)]

        def one_by_one() -> list[Value]:
            return [builder.broadcast(self._read(evaluation, point), lanes)]

        return builder.if_else(every, at_once, one_by_one)[0]

    def _read(self, evaluation: Evaluation, point: Point, step: int | None = None) -> Value:
        """The elements at `point`. `step` is that of the offsets from lane to lane, where they are a run."""
        builder = evaluation.builder
        lanes = point.width if point.axis >= 0 else 1
        pointer, offsets = locate_explicit(evaluation, point, self.base, self.offsets, self.unit, step)
        mask = None if self.mask is None else evaluation.at(self.mask, point)
        fill = None if self.other is None else evaluation.at(self.other, point)
        floor = evaluation.floor
        if step is not None and is_consecutive(step, self.unit, self.element):
            if self.ahead is not None:
                self._prefetch(evaluation, point, *self.ahead)
            return lane_memory.read(builder, pointer, self.element, lanes, floor=floor, mask=mask, fill=fill)
        if offsets is not None:
            pointers = lane_memory.pointers_at(builder, pointer, offsets, self.unit)
            return lane_memory.gather(builder, pointers, self.element, floor=floor, mask=mask, fill=fill)
        varies = any(value is not None and value.is_vector for value in (mask, fill))
        if mask is None or not varies:
            return lane_memory.read(builder, pointer, self.element, 1, floor=floor, mask=mask, fill=fill)
        # One address, several masks or fills: read it once if any lane wants it.
        wanted = _any_lane(builder, mask) if mask.is_vector else mask
        value = lane_memory.read(builder, pointer, self.element, 1, floor=floor, mask=wanted)
        fill = fill or lane_memory.zero(builder, self.element)
        return builder.select(*(builder.broadcast(v, lanes) for v in (mask, value, fill)))

    def _prefetch(self, evaluation: Evaluation, point: Point, dimension: int, distance: int) -> None:
        """Prefetch what is `distance` ahead of `point`, or at the end of the dimension."""
        builder, indices = evaluation.builder, list(point.indices)
        further = builder.add(indices[dimension], builder.i64(distance))
        last = builder.i64(self.shape[dimension] - 1)
        indices[dimension] = builder.binary("arith.minsi", further, last)
        there = Evaluation(builder, evaluation.unmasked, {})
        there.floor = evaluation.floor
        offset = there.at(self.offsets, Point(tuple(indices), point.axis, point.width).first)
        place = builder.address(self.base, [builder.cast("arith.extsi", offset, "i64")], self.unit)
        lane_memory.prefetch(builder, place, lane_memory.L1)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return self.operands_join(dimension)

    def pointer(self, evaluation: Evaluation, point: Point) -> Value:
        """The address of the one element at `point`."""
        return locate_explicit(evaluation, point, self.base, self.offsets, self.unit)[0]

    def wanted(self, evaluation: Evaluation, point: Point) -> Value | None:
        """Whether to access the element at `point`; None: always."""
        return None if self.mask is None else evaluation.at(self.mask, point)


def _any_lane(builder: LoopBuilder, mask: Value) -> Value:
    return builder.pure(f"vector.reduction <or>, {mask.name} : {mask.type} into i1", "i1", (mask,))


def is_consecutive(step: int, unit: str, element: str) -> bool:
    """Whether offsets of that step, in elements of type `unit`, are those of elements side by side."""
    return step * types.byte_size(unit) == types.byte_size(element)


def locate_explicit(
    evaluation: Evaluation, point: Point, base: Value, offsets: Tensor, unit: str, step: int | None = None
) -> tuple[Value, Value | None]:
    """(pointer, None) if all lanes share an address, else (pointer, i64 offsets in `unit`s).

    `step` is that of the offsets from lane to lane, where they are a run: the pointer is that of the first lane.
    """
    builder = evaluation.builder
    if step is not None:
        value = builder.cast("arith.extsi", evaluation.first(offsets, point), "i64")
        pointer = builder.address(base, [value], unit)
        return pointer, counted(builder, builder.i64(0), step, point.width) if step else None
    value = evaluation.at(offsets, point)
    value = builder.cast("arith.extsi", value, vector_type("i64", value.lanes))
    if value.is_vector:
        return base, value
    return builder.address(base, [value], unit), None


def run_of_offsets(evaluation: Evaluation, point: Point, offsets: Tensor) -> Run | None:
    """The run of offsets that are sign-extended to 64 bits; None if they are none in this chunk of lanes."""
    run = evaluation.run(offsets, point) if point.width > 1 else None
    if run is None or offsets.element == "i64":
        return run
    return broken_at_sign(offsets, run, point)


def conjuncts(mask: Tensor | None) -> Sequence[Tensor]:
    """What a mask is the conjunction of."""
    if mask is None:
        return ()
    if mask.buffer is None and is_operation(mask, "arith.andi"):
        return [part for operand in mask.operands for part in conjuncts(operand)]
    return (mask,)


def scatter_explicit(
    evaluation: Evaluation,
    point: Point,
    base: Value,
    offsets: Tensor,
    value: Value,
    mask: Tensor | None,
    unit: str,
) -> None:
    """Store the elements at `point` at explicit offsets. If several lanes have the same address, the last one wins."""
    run = run_of_offsets(evaluation, point, offsets)
    if run is None or not is_consecutive(run.step, unit, value.element):
        _scatter(evaluation, point, base, offsets, value, mask, unit)
        return
    step = run.step

    def emit(inner: Evaluation, here: Point, whole: bool) -> list[Value]:
        if whole:
            pointer, _ = locate_explicit(inner, here, base, offsets, unit, step)
            wanted = None if mask is None else inner.at(mask, here)
            lanes = inner.builder.broadcast(value, here.width)
            lane_memory.write(inner.builder, pointer, lanes, wanted)
        else:
            _scatter(inner, here, base, offsets, value, mask, unit)
        return []

    evaluation.on_condition(run, point, closure([offsets, *([mask] if mask else [])]), emit)


def _scatter(
    evaluation: Evaluation,
    point: Point,
    base: Value,
    offsets: Tensor,
    value: Value,
    mask: Tensor | None,
    unit: str,
) -> None:
    builder = evaluation.builder
    lanes = point.width if point.axis >= 0 else 1
    pointer, lane_offsets = locate_explicit(evaluation, point, base, offsets, unit)
    wanted = None if mask is None else evaluation.at(mask, point)
    if lane_offsets is not None:
        pointers = lane_memory.pointers_at(builder, pointer, lane_offsets, unit)
    elif lanes > 1:
        pointers = lane_memory.as_vector(builder, pointer, lanes)
    else:
        lane_memory.write(builder, pointer, value, wanted)
        return
    lane_memory.scatter(builder, pointers, value, wanted)

"""Structured accesses to memory: addresses, bounds and wrap-around at a point of a tile loop.

The operands are those of ``tpk.load`` and ``tpk.store``: element (i0, ...) is at ``base + offset + sum of stride_d *
index_d`` and is accessed where ``low_d <= i_d < high_d`` and the mask is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TypeAlias

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.runs import Run, uniform
from triton_porting_kit.compiler.loops.tiles.tensors import GATHER_COST, MEMORY_COST, Point, Tensor

NOWHERE: AbstractContextManager[None] = nullcontext()
"""A context in which emitted lines get no source line of the kernel."""

At: TypeAlias = Callable[[], AbstractContextManager[None]]
"""See `lowering.Lowering.place_of`."""


def nowhere() -> AbstractContextManager[None]:
    return NOWHERE


@dataclass(eq=False, repr=False)
class Access:
    """A structured access of a tile of `shape`; all scalars are i64, in elements."""

    shape: tuple[int, ...]
    element: str
    base: Value
    offset: Value
    strides: Sequence[Value]
    low: Sequence[Value] = ()
    high: Sequence[Value] = ()
    wraps: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    mask: Tensor | None = None
    exempt: Value | None = None
    """i1: if set, so is every element of the mask."""
    shuffles: bool = False
    """Whether lanes that are a few elements apart are shuffled out of vectors, and not gathered."""

    @property
    def is_plain(self) -> bool:
        """Whether there are neither bounds nor wrap-around, so that there is nothing to specialise."""
        return not self.low and not self.wraps

    @property
    def box(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """The bounds, which several accesses may share."""
        return tuple(self.low), tuple(self.high)

    def is_contiguous(self, axis: int) -> bool:
        return self.strides[axis].constant == 1

    def plain_condition(self, builder: LoopBuilder) -> Value:
        """i1: the whole tile is in bounds and does not wrap around, and `exempt` is set, if there is one."""
        condition = builder.constant(1, "i1")
        for low, high, size in zip(self.low, self.high, self.shape, strict=False):
            condition = builder.logical_and(condition, builder.compare("eq", low, builder.i64(0)))
            condition = builder.logical_and(condition, builder.compare("eq", high, builder.i64(size)))
        condition = builder.logical_and(condition, self.wraps_nowhere(builder))
        return condition if self.exempt is None else builder.logical_and(condition, self.exempt)

    def wraps_nowhere(self, builder: LoopBuilder) -> Value:
        """i1: no index of the tile wraps around."""
        condition = builder.constant(1, "i1")
        for dimension, (start, period) in self.wraps.items():
            first = self._wrapped_start(builder, start, period)
            last = builder.add(first, builder.i64(self.shape[dimension]))
            condition = builder.logical_and(condition, builder.compare("sge", start, builder.i64(0)))
            condition = builder.logical_and(condition, builder.compare("sle", last, period))
        return condition

    @staticmethod
    def _wrapped_start(builder: LoopBuilder, start: Value, size: Value) -> Value:
        return builder.binary("arith.remsi", start, _divisor(builder, size))

    def locate(
        self, evaluation: Evaluation, point: Point, *, straight: bool = False
    ) -> tuple[Value, Value | None]:
        """(pointer, offsets): the address of the first lane; offsets of all lanes if they are not consecutive.

        `straight`: the lanes are known not to wrap around.
        """
        builder = evaluation.builder
        plain = self in evaluation.unmasked
        terms = [self.offset]
        offsets: Value | None = None
        for dimension, (index, stride) in enumerate(zip(point.indices, self.strides, strict=True)):
            along = dimension == point.axis and point.width > 1
            wrap = self.wraps.get(dimension)
            if wrap is not None and (plain or (straight and along)):
                index = builder.add(self._wrapped_start(builder, *wrap), index)
            elif wrap is not None and not along:
                index = builder.binary("arith.remsi", builder.add(wrap[0], index), _divisor(builder, wrap[1]))
            elif wrap is not None:
                lanes = self._wrapped_lanes(builder, index, wrap, self.shape[dimension], point.width)
                offsets = builder.mul(lanes, builder.broadcast(stride, point.width))
                continue
            terms.append(builder.mul(index, stride))
            if along and stride.constant != 1:
                offsets = builder.mul(
                    builder.iota(point.width, "i64"), builder.broadcast(stride, point.width)
                )
        return builder.address(self.base, terms, types.storage(self.element)), offsets

    def pointer(self, evaluation: Evaluation, point: Point) -> Value:
        """The address of the one element at `point`."""
        return self.locate(evaluation, point)[0]

    @staticmethod
    def _wrapped_lanes(
        builder: LoopBuilder, index: Value, wrap: tuple[Value, Value], tile: int, width: int
    ) -> Value:
        """The wrapped index of each lane. A tile that passes the end at most once needs no division."""
        start, size = wrap
        first = Access._wrapped_start(builder, start, size)
        once = builder.logical_and(
            builder.compare("sge", start, builder.i64(0)), builder.compare("sle", builder.i64(tile), size)
        )
        iota = builder.iota(width, "i64")
        sizes = builder.broadcast(size, width)

        def one_pass() -> list[Value]:
            lanes = builder.add(builder.broadcast(builder.add(first, index), width), iota)
            return [builder.select(builder.compare("sge", lanes, sizes), builder.sub(lanes, sizes), lanes)]

        def many_passes() -> list[Value]:
            # Lane by lane: LLVM takes long to write a vector of divisions out, and this is rarely run.
            before, divisor = builder.add(start, index), _divisor(builder, size)
            zero, one = builder.i64(0), builder.i64(1)
            with builder.loop(zero, builder.i64(width), one, [builder.broadcast(zero, width)]) as loop:
                lane = builder.binary("arith.remsi", builder.add(before, loop.induction), divisor)
                here = builder.compare("eq", iota, builder.broadcast(loop.induction, width))
                loop.yields = [builder.select(here, builder.broadcast(lane, width), loop.arguments[0])]
            return loop.results

        return builder.if_else(once, one_pass, many_passes)[0]

    def lanes_in_bounds(self, evaluation: Evaluation, point: Point) -> Value | None:
        """Mask of the lanes to access (a scalar i1 if it is the same for all lanes); None: all of them."""
        builder = evaluation.builder
        mask: Value | None = None
        if self.low and self not in evaluation.unmasked:
            mask = evaluation.boxes.get(self.box) or self._box(builder, point)
        if self.mask is not None and (self.exempt is None or self not in evaluation.unmasked):
            given = evaluation.at(self.mask, point)
            if mask is None:
                return given
            lanes = max(given.lanes, mask.lanes)
            mask = builder.logical_and(builder.broadcast(mask, lanes), builder.broadcast(given, lanes))
        return mask

    def _box(self, builder: LoopBuilder, point: Point) -> Value:
        scalar = builder.constant(1, "i1")
        lanes: Value | None = None
        for dimension, (index, low, high) in enumerate(zip(point.indices, self.low, self.high, strict=True)):
            if dimension == point.axis and point.width > 1:
                lanes = _lane_bounds(builder, index, low, high, point.width)
                continue
            scalar = builder.logical_and(scalar, builder.compare("slt", index, high))
            if low.constant != 0:
                scalar = builder.logical_and(scalar, builder.compare("sge", index, low))
        if lanes is None:
            return scalar
        if scalar.constant == 1:
            return lanes
        return builder.logical_and(builder.broadcast(scalar, point.width), lanes)

    def read(self, evaluation: Evaluation, point: Point, other: Tensor | None) -> Value:
        """The elements at `point`; `other` (zero by default) in the lanes that are out of bounds."""
        builder, axis = evaluation.builder, point.axis
        wraps = point.width > 1 and axis in self.wraps and self not in evaluation.unmasked
        if not wraps or not self.is_contiguous(axis):
            return self._read(evaluation, point, other)
        start, size = self.wraps[axis]
        first = builder.add(self._wrapped_start(builder, start, size), point.indices[axis])
        ahead = builder.compare("sge", start, builder.i64(0))
        fits = builder.compare("sle", builder.add(first, builder.i64(point.width)), size)
        # Few vectors cross the end of the dimension, so most are read in one piece.
        here = point.moved(axis, builder.here(point.indices[axis]))
        for tensor in (self.mask, other):
            if tensor is not None:  # evaluate it once before the branches, and not in one of them only
                evaluation.at(tensor, point)
        return builder.if_else(
            builder.logical_and(ahead, fits),
            lambda: [self._read(evaluation, here, other, straight=True)],
            lambda: [self._read(evaluation, here, other)],
        )[0]

    def _spacing(self, axis: int) -> int:
        """The distance of lanes if they are to be shuffled out of vectors, else 0. Masks would have to be spread, too,
        which costs more than a gather."""
        stride = self.strides[axis].constant
        if not self.shuffles or axis in self.wraps or types.byte_size(self.element) != 4:
            return 0
        return next((spacing for spacing in lane_memory.SPACINGS if spacing == stride), 0)

    def _read(
        self, evaluation: Evaluation, point: Point, other: Tensor | None, *, straight: bool = False
    ) -> Value:
        builder = evaluation.builder
        pointer, offsets = self.locate(evaluation, point, straight=straight)
        mask = self.lanes_in_bounds(evaluation, point)
        lanes = point.width if point.axis >= 0 else 1
        fill = evaluation.at(other, point) if other is not None else None
        spacing = 0 if mask is not None or offsets is None else self._spacing(point.axis)
        if spacing:
            return lane_memory.read_spaced(
                builder, pointer, self.element, lanes, spacing, floor=evaluation.floor
            )
        if offsets is not None:
            pointers = lane_memory.pointers_at(builder, pointer, offsets, types.storage(self.element))
            # Bounds leave few chunks to be masked, and each branch of a lane would be a block to compile.
            return lane_memory.gather(
                builder,
                pointers,
                self.element,
                floor=evaluation.floor,
                mask=mask,
                fill=fill,
                branches=self.mask is not None,
            )
        return lane_memory.read(
            builder, pointer, self.element, lanes, floor=evaluation.floor, mask=mask, fill=fill
        )

    def write(self, evaluation: Evaluation, point: Point, value: Value) -> None:
        """Store the elements at `point` where they are in bounds."""
        if evaluation.split is not None and self in evaluation.split[1]:

            def store(inner: Evaluation, place: Point) -> list[Value]:
                self.write(inner, place, value)
                return []

            evaluation.either(point, store)
            return
        builder = evaluation.builder
        pointer, offsets = self.locate(evaluation, point)
        mask = self.lanes_in_bounds(evaluation, point)
        lanes = point.width if point.axis >= 0 else 1
        value = builder.broadcast(value, lanes)
        if offsets is not None:
            pointers = lane_memory.pointers_at(builder, pointer, offsets, types.storage(self.element))
            lane_memory.scatter(builder, pointers, value, mask)
        else:
            self._write_lanes(evaluation, pointer, value, mask)

    def _write_lanes(self, evaluation: Evaluation, pointer: Value, value: Value, mask: Value | None) -> None:
        """Store consecutive elements, past the caches if the evaluation says so."""
        builder, streamed, past = evaluation.builder, self in evaluation.streamed, evaluation.past

        def store(streamed: bool) -> list[Value]:
            lane_memory.write(builder, pointer, value, mask, streamed=streamed)
            return []

        if streamed and past is not None:
            builder.if_else(past, lambda: store(True), lambda: store(False))
        else:
            store(streamed)


def _divisor(builder: LoopBuilder, size: Value) -> Value:
    """`size`, or 1 where it is 0 or -1: remainders are computed even where no element is accessed.

    The remainder by -1 equals the one by 1, but x86 traps on it for the most negative dividend.
    """
    if isinstance(size.constant, int) and size.constant not in (0, -1):
        return size
    one = builder.constant(1, size.type)
    traps = builder.compare("ule", builder.add(size, one), one)
    return builder.select(traps, one, size)


def _lane_bounds(builder: LoopBuilder, index: Value, low: Value, high: Value, width: int) -> Value:
    iota = builder.iota(width)
    remaining = builder.cast("arith.trunci", builder.sub(high, index), "i32")
    mask = builder.compare("slt", iota, builder.broadcast(remaining, width))
    if low.constant == 0:
        return mask
    skipped = builder.cast("arith.trunci", builder.sub(low, index), "i32")
    return builder.logical_and(mask, builder.compare("sge", iota, builder.broadcast(skipped, width)))


class Load(Tensor):
    """The elements of a structured access."""

    def __init__(self, access: Access, other: Tensor | None, place: At = nowhere) -> None:
        operands = [t for t in (access.mask, other) if t is not None]
        contiguous = not access.strides or any(s.constant == 1 for s in access.strides)
        super().__init__(access.shape, access.element, operands, MEMORY_COST if contiguous else GATHER_COST)
        self.access = access
        self.other = other
        self.ahead: Value | None = None
        """How far ahead of each chunk to prefetch, in elements."""
        self.walked = False
        """Whether a loop over it was emitted."""
        self.place = place
        """A context in which emitted lines get the source line of the load."""

    def at(self, evaluation: Evaluation, point: Point) -> Value:
        self.walked = True
        with self.place():
            if self.ahead is not None and point.width > 1:
                builder = evaluation.builder
                place = builder.address(
                    self.pointer(evaluation, point), [self.ahead], types.storage(self.element)
                )
                lane_memory.prefetch(builder, place, lane_memory.L1)
            return self.access.read(evaluation, point, self.other)

    def run(self, evaluation: Evaluation, point: Point) -> Run | None:
        access = self.access
        bounded = access.low and access not in evaluation.unmasked
        if access.wraps or bounded or access.strides[point.axis].constant != 0:
            return None
        runs = [evaluation.run(operand, point) for operand in self.operands]
        known = [run for run in runs if run is not None and run.step == 0]
        return uniform(known) if len(known) == len(runs) else None

    def pointer(self, evaluation: Evaluation, point: Point) -> Value:
        """The address of the one element at `point`."""
        return self.access.pointer(evaluation, point)

    def wanted(self, evaluation: Evaluation, point: Point) -> Value | None:
        """Whether to access the element at `point`; None: always."""
        return self.access.lanes_in_bounds(evaluation, point)

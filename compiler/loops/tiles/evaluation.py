"""Evaluating tensors inside one tile loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.regions import Region
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.runs import UNIFORM, Break, Run, counted
from triton_porting_kit.compiler.loops.tiles.tensors import closure

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.tiles.access import Access
    from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor


LONGEST = 32
"""The most operands of operands through which a run of a tensor in scratch is followed."""


class Evaluation:
    """The state of evaluating tensors at the points of one tile loop.

    `floor` is the level of the consumer: memory reads must not be placed above it. `unmasked` holds the accesses that
    are known to be in bounds here. A tensor in `kept` is also written to its buffer when it is evaluated at the loop's
    own point. Stores to accesses in `streamed` are non-temporal if the i1 `past` is true or None. `split` is an i1 and
    the accesses that are in bounds where it is true; `boxes` then holds the lane masks of accesses, by their bounds.
    """

    def __init__(
        self,
        builder: LoopBuilder,
        unmasked: frozenset[object],
        kept: dict[Tensor, Buffer],
        streamed: frozenset[object] = frozenset(),
        split: tuple[Value, frozenset[object]] | None = None,
        past: Value | None = None,
    ) -> None:
        self.builder = builder
        self.floor = builder.level
        self.unmasked = unmasked
        self.streamed = streamed
        self.split = split
        self.past = past
        self.boxes: dict[object, Value] = {}
        self.zero = builder.i64(0)
        self._kept = kept
        self._known: dict[tuple[object, ...], tuple[Value, Region]] = {}
        self._runs: dict[tuple[object, ...], Run | None] = {}
        self._assumed: frozenset[Break] = frozenset()
        self._first: Evaluation | None = None

    def at(self, tensor: Tensor, point: Point) -> Value:
        """The elements of `tensor` at `point`, computed once per point and open region.

        A value computed in a branch is not available, nor is it in the tensor's buffer, if the branch was not taken.
        """
        tensor = tensor.buffer or tensor
        known = self._known.get((id(tensor), point.key))
        if known is not None and known[1].is_open:
            return known[0]
        value = self._in_run(tensor, point) if tensor.divides and point.width > 1 else None
        if value is None:
            value = tensor.at(self, point)
        self._remember(tensor, point, value)
        return value

    def give(self, tensor: Tensor, point: Point, value: Value) -> None:
        """Say what the elements of `tensor` at `point` are."""
        self._known[id(tensor), point.key] = value, self.builder.region

    # --- runs ------------------------------------------------------------------------------------

    def run(self, tensor: Tensor, point: Point) -> Run | None:
        """How the elements of `tensor` at `point` go on from lane to lane; None if that is not known.

        A tensor that is kept in scratch has the same elements there. Where it ends a long chain of operands, the chain
        is not followed, which bounds the recursion.
        """
        if tensor.buffer is not None and tensor.depth > LONGEST:
            return None
        key = (id(tensor), point.key)
        if key not in self._runs:
            self._runs[key] = tensor.run(self, point) if point.axis >= 0 else UNIFORM
        return self._runs[key]

    def first(self, tensor: Tensor, point: Point) -> Value:
        """The element of `tensor` in the first lane of `point`."""
        for kept in self._kept:
            if kept is not tensor and kept in closure([tensor]):
                self.at(kept, point)  # which writes all lanes to its buffer
        if self._first is None:
            self._first = Evaluation(self.builder, self.unmasked, {})
            self._first.floor = self.floor
        return self._first.at(tensor, point.first)

    def breaks(self, run: Run) -> list[Break]:
        """Where the run may end here, as far as that is not excluded."""
        return [one for one in run.breaks if one not in self._assumed and not one.is_excluded(self)]

    def on_condition(
        self,
        run: Run,
        point: Point,
        tensors: Sequence[Tensor],
        emit: Callable[[Evaluation, Point, bool], list[Value]],
    ) -> list[Value]:
        """What `emit` returns at `point`, emitted for a chunk without breaks of `run` and for others where there may be
        some. `emit` evaluates `tensors`, in the evaluation that it gets, and is told whether there are no breaks.
        """
        for tensor in self._kept:
            if tensor in tensors:  # all lanes are written to its buffer here, and not in a branch
                self.at(tensor, point)
        breaks = self.breaks(run)
        if not breaks:
            return emit(self, point, True)
        builder, lanes = self.builder, point.width
        straight = builder.constant(1, "i1")
        for one in breaks:
            straight = builder.logical_and(straight, one.condition(self))

        def branch(whole: bool) -> list[Value]:
            # Otherwise what only the other lanes need would be computed before both branches.
            here = point if whole else point.moved(point.axis, builder.here(point.indices[point.axis]))
            inner = Evaluation(builder, self.unmasked, {})
            inner.boxes = self.boxes
            inner._assumed = self._assumed.union(run.breaks) if whole else self._assumed
            return [builder.broadcast(value, lanes) for value in emit(inner, here, whole)]

        return builder.if_else(straight, lambda: branch(True), lambda: branch(False))

    def _in_run(self, tensor: Tensor, point: Point) -> Value | None:
        """The elements of a tensor in a run, computed from the first lane; None if it may have breaks here."""
        run = self.run(tensor, point)
        if run is None or self.breaks(run):
            return None
        first = self.first(tensor, point)
        return first if run.step == 0 else counted(self.builder, first, run.step, point.width)

    def _remember(self, tensor: Tensor, point: Point, value: Value) -> None:
        self._known[id(tensor), point.key] = value, self.builder.region
        buffer = self._kept.get(tensor)
        if buffer is not None:
            buffer.write(self.builder, point, value)

    def settle(self, tensors: Sequence[Tensor], accesses: Sequence[Access], point: Point) -> None:
        """Compute `tensors`, and the lane masks of `accesses`, at `point` before everything else, for both cases of
        `split`.
        """
        boxes = {access.box: access for access in accesses}
        if not tensors and not boxes:
            return

        def compute(inner: Evaluation, place: Point) -> list[Value]:
            ones = self.builder.constant(1, "i1")
            values = [inner.at(tensor, place) for tensor in tensors]
            values += [access.lanes_in_bounds(inner, place) or ones for access in boxes.values()]
            return [self.builder.broadcast(value, place.width) for value in values]

        values = self.either(point, compute)
        for tensor, value in zip(tensors, values, strict=False):
            self._remember(tensor, point, value)
        self.boxes = dict(zip(boxes, values[len(tensors) :], strict=True))

    def either(self, point: Point, emit: Callable[[Evaluation, Point], list[Value]]) -> list[Value]:
        """The values that `emit` yields, emitted for both cases of `split`. The lanes of `point` lie along an axis."""
        assert self.split is not None
        builder = self.builder
        whole, inside = self.split

        def within() -> list[Value]:
            return emit(Evaluation(builder, inside, {}, self.streamed, past=self.past), point)

        def beyond() -> list[Value]:
            # Otherwise the masks would be computed before both branches.
            here = point.moved(point.axis, builder.here(point.indices[point.axis]))
            return emit(Evaluation(builder, frozenset(), {}), here)

        return builder.if_else(whole, within, beyond)

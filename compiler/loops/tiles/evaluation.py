"""Evaluating tensors inside one tile loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder, Region
from triton_porting_kit.compiler.loops.ir.values import Value

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.tiles.access import Access
    from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor


class Evaluation:
    """The state of evaluating tensors at the points of one tile loop.

    `floor` is the level above which memory reads must not be placed (the place of the consumer), and
    `unmasked` the accesses that are known to lie in bounds here. A tensor in `kept` is also written to
    its buffer when it is evaluated at the loop's own point. Stores to the access `streamed` go past the caches.
    `split`: an i1, and what is `unmasked` where it is true; `boxes` then holds masks of lanes by bounds of accesses.
    """

    def __init__(
        self,
        builder: LoopBuilder,
        unmasked: frozenset[object],
        kept: dict[Tensor, Buffer],
        streamed: object = None,
        split: tuple[Value, frozenset[object]] | None = None,
    ) -> None:
        self.builder = builder
        self.floor = builder.level
        self.unmasked = unmasked
        self.streamed = streamed
        self.split = split
        self.boxes: dict[object, Value] = {}
        self.zero = builder.i64(0)
        self._kept = kept
        self._known: dict[tuple[object, ...], tuple[Value, Region]] = {}

    def at(self, tensor: Tensor, point: Point) -> Value:
        """The elements of `tensor` at `point`; computed once per point and open region.

        What was computed in a branch is neither there nor in the tensor's buffer where the branch was not taken.
        """
        tensor = tensor.buffer or tensor
        known = self._known.get((id(tensor), point.key))
        if known is not None and known[1].is_open:
            return known[0]
        value = tensor.at(self, point)
        self._remember(tensor, point, value)
        return value

    def _remember(self, tensor: Tensor, point: Point, value: Value) -> None:
        self._known[id(tensor), point.key] = value, self.builder.region
        buffer = self._kept.get(tensor)
        if buffer is not None:
            buffer.write(self.builder, point, value)

    def settle(self, tensors: Sequence[Tensor], accesses: Sequence[Access], point: Point) -> None:
        """Compute `tensors`, and the lanes of `accesses` in bounds, at `point` before all else, for both ways."""
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
        """What `emit` yields, written for both ways of `split`. The lanes of `point` lie along an axis."""
        assert self.split is not None
        builder = self.builder
        whole, inside = self.split

        def within() -> list[Value]:
            return emit(Evaluation(builder, inside, {}), point)

        def beyond() -> list[Value]:
            # Else the masks would be computed in front of both branches.
            here = point.moved(point.axis, builder.here(point.indices[point.axis]))
            return emit(Evaluation(builder, frozenset(), {}), here)

        return builder.if_else(whole, within, beyond)

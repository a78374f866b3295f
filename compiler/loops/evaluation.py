"""Evaluating tensors inside one tile loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.tensors import Buffer, Point, Tensor


class Evaluation:
    """The state of evaluating tensors at the points of one tile loop.

    `floor` is the level above which memory reads must not be placed (the place of the consumer), and
    `unmasked` the accesses that are known to lie in bounds here. A tensor in `kept` is also written to
    its buffer when it is evaluated at the loop's own point. Stores to the access `streamed` go past the caches.
    """

    def __init__(
        self,
        builder: LoopBuilder,
        unmasked: frozenset[object],
        kept: dict[Tensor, Buffer],
        streamed: object = None,
    ) -> None:
        self.builder = builder
        self.floor = builder.level
        self.unmasked = unmasked
        self.streamed = streamed
        self.zero = builder.i64(0)
        self._kept = kept
        self._known: dict[tuple[object, ...], Value] = {}

    def at(self, tensor: Tensor, point: Point) -> Value:
        """The elements of `tensor` at `point`; computed once per point."""
        tensor = tensor.buffer or tensor
        key = (id(tensor), point.key())
        value = self._known.get(key)
        if value is None:
            value = tensor.at(self, point)
            self._known[key] = value
            buffer = self._kept.get(tensor)
            if buffer is not None:
                buffer.write(self.builder, point, value)
        return value

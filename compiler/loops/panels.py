"""The operands of a dot over several trips of a loop: packed side by side, or read where they lie, then multiplied.

Which dots are multiplied so, and why that changes nothing that shows, says `waiting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops.access import Load
from triton_porting_kit.compiler.loops.blocks import Blocking
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value
from triton_porting_kit.compiler.loops.evaluation import Evaluation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.products import Product
from triton_porting_kit.compiler.loops.program import Operation
from triton_porting_kit.compiler.loops.tensors import Buffer, Point, Tensor


class Rows(Buffer):
    """Rows with a `pitch` from one to the next, in elements."""

    def __init__(self, shape: tuple[int, int], element: str, pointer: Value, pitch: int) -> None:
        super().__init__(shape, element, pointer)
        self.strides = [pitch, 1]

    def joins(self, dimension: int) -> bool:
        return False


class Strips(Buffer):
    """Rows cut into strips of `strip` columns: in memory a strip's `pitch` rows lie together, then the next one's.

    So the loop over a strip's rows walks through memory line by line, and all sets of a cache hold some of it.
    """

    def __init__(self, shape: tuple[int, int], element: str, pointer: Value, strip: int, pitch: int) -> None:
        super().__init__(shape, element, pointer)
        self.strides = [strip, 1]
        self.pitch = pitch

    def joins(self, dimension: int) -> bool:
        return False

    def address(self, builder: LoopBuilder, point: Point) -> Value:
        row, column = point.indices
        strip = self.strides[0]
        assert point.width <= strip, "lanes that lie in two strips"
        start = builder.i64(0)  # of the strip
        if strip < self.shape[1]:
            within = builder.binary("arith.remui", column, builder.i64(strip))
            start, column = builder.sub(column, within), within
        terms = [
            builder.mul(row, builder.i64(strip)),
            builder.mul(start, builder.i64(self.pitch)),
            column,
        ]
        return builder.address(self.pointer, terms, types.storage(self.element))


@dataclass(frozen=True)
class Left:
    """Where A is read: its first element, and how many elements lie from one row to the next."""

    start: Value
    pitch: Value


Multiply: TypeAlias = Callable[[Left, Strips, Value], None]
"""Emits the multiplication of A and B over so many units along K."""


@dataclass
class Panel:
    """The operands of one dot, of up to `trips` trips."""

    product: Product
    block: Blocking
    trips: int
    left: Buffer
    """A, packed, as (M, units along K): of all trips, or of one trip where A is read `in_place` if it can be."""
    right: Strips
    """B, packed, as (units of all trips, N)."""
    in_place: bool
    """Whether A is read where it lies, in trips that find all of it in bounds."""
    filled: Value
    """i64, in the loop: how many trips' operands wait when a trip begins."""
    last: Value
    """i1, in the loop: whether this trip is the last one."""
    following: Value | None = None
    """i64: how many trips' operands wait when this trip is over."""

    @property
    def depth(self) -> int:
        """Units along K of one trip."""
        return self.right.pitch // self.trips

    @property
    def k(self) -> int:
        """Elements along K of one trip."""
        return self.depth * self.product.count

    def add(self, lowering: Lowering, operation: Operation, a: Tensor, b: Tensor, multiply: Multiply) -> None:
        """One trip's part of the dot `operation`: its operands take their places, and if it is time, `multiply`."""
        builder = lowering.builder
        more = builder.add(self.filled, builder.i64(1))
        full = builder.compare("eq", more, builder.i64(self.trips))
        due = builder.binary("arith.ori", full, self.last)
        self.product.pack_right(lowering, operation, b, self._right_from(builder, self.filled))
        if self.in_place:
            due = self._add_in_place(lowering, operation, a, more, due, multiply)
        else:
            self._add_packed(lowering, operation, a, more, due, multiply)
        builder.forget_reads()
        self.following = builder.select(due, builder.i64(0), more)

    def _add_packed(
        self, lowering: Lowering, operation: Operation, a: Tensor, more: Value, due: Value, multiply: Multiply
    ) -> None:
        builder, product = lowering.builder, self.product
        pitch, units = self.trips * self.k, builder.i64(self.depth)
        first = builder.address(self.left.pointer, [builder.mul(self.filled, units)], product.unit)
        place = Rows((self.left.shape[0], self.k), product.element, first, pitch)
        lowering.fill(operation, place, product.left(a))
        builder.forget_reads()

        def multiplied() -> list[Value]:
            left = Left(self.left.pointer, builder.i64(pitch))
            multiply(left, self.right, builder.mul(more, units))
            return []

        builder.if_else(due, multiplied)

    def _add_in_place(
        self, lowering: Lowering, operation: Operation, a: Tensor, more: Value, due: Value, multiply: Multiply
    ) -> Value:
        """Whether it was time.

        A trip with elements out of bounds packs A, and is multiplied by itself, after those that wait: zeros
        in B would not do where what lies out of bounds is infinite, or no memory at all.
        """
        assert isinstance(a, Load)
        builder, product, access = lowering.builder, self.product, a.access
        zero, one, units = builder.i64(0), builder.i64(1), builder.i64(self.depth)
        plain = access.plain_condition(builder)
        masked = builder.compare("eq", plain, builder.constant(0, "i1"))
        place = Buffer((self.left.shape[0], self.k), product.element, self.left.pointer)

        def packed() -> list[Value]:
            lowering.fill(operation, place, a)
            return []

        builder.if_else(masked, packed)
        corner = Evaluation(builder, frozenset({access}), {})
        here = access.pointer(corner, Point((zero, zero), -1, 1))
        # All trips that wait are plain: their rows begin that much before this one's.
        before = builder.mul(self.filled, builder.i64(-self.k))
        start = builder.address(here, [before], types.storage(product.element))
        builder.forget_reads()

        def multiplied() -> list[Value]:
            waits = builder.logical_and(masked, builder.compare("sgt", self.filled, zero))
            # One copy of the code for both: in the first round those that wait, if this trip is not as they are.
            with builder.loop(builder.select(waits, zero, one), builder.i64(2), one) as rounds:
                first = builder.compare("eq", rounds.induction, zero)
                direct = builder.binary("arith.ori", plain, first)
                left = Left(
                    builder.select(direct, start, self.left.pointer),
                    builder.select(direct, access.strides[0], builder.i64(self.k)),
                )
                trips = builder.select(first, self.filled, builder.select(plain, more, one))
                right = self._right_from(builder, builder.select(direct, zero, self.filled))
                multiply(left, right, builder.mul(trips, units))
            return []

        due = builder.binary("arith.ori", due, masked)
        builder.if_else(due, multiplied)
        return due

    def _right_from(self, builder: LoopBuilder, trips: Value) -> Strips:
        """B, from what one trip has packed on."""
        strip, n = self.right.strides[0], self.right.shape[1]
        first = builder.mul(trips, builder.i64(self.depth * strip))
        pointer = builder.address(self.right.pointer, [first], self.product.unit)
        return Strips((self.depth, n), self.product.unit, pointer, strip, self.right.pitch)

"""Where the factors of a dot lie: in memory, or packed in scratch in one of several orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, JoinAt, Point, Tensor

COLUMN_STRIP = 16
"""Most rows in a strip of an A that is packed column by column."""


class Rows(Buffer):
    """Rows with a `pitch` from one to the next, in elements: one iteration's part of a packed A."""

    def __init__(self, shape: tuple[int, ...], element: str, pointer: Value, pitch: int) -> None:
        super().__init__(shape, element, pointer)
        self.strides = [pitch, 1]

    def in_units(self, unit: str, count: int) -> Rows:
        """The same memory in units of `count` elements."""
        (rows, columns), (pitch, _) = self.shape, self.strides
        return Rows((rows, columns // count), unit, self.pointer, pitch // count)

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return None


class Strips(Buffer):
    """Rows cut into strips of `strip` columns. The `pitch` rows of a strip are contiguous; the next strip follows.

    The loop over the rows of a strip then reads consecutive cache lines, which are spread over all sets of a cache.
    """

    def __init__(self, shape: tuple[int, ...], element: str, pointer: Value, strip: int, pitch: int) -> None:
        super().__init__(shape, element, pointer)
        self.strides = [strip, 1]
        self.pitch = pitch
        self.most_lanes = strip

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return None

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


class Columns(Buffer):
    """A matrix that lies column by column. Its rows are cut into strips of `strip` rows, one behind the other."""

    def __init__(self, shape: tuple[int, ...], element: str, pointer: Value, strip: int) -> None:
        super().__init__(shape, element, pointer)
        self.strides[-2:] = [1, strip]

    def joins(self, dimension: int) -> Iterable[JoinAt] | None:
        return None


def column_strip(rows: int) -> int:
    """The strip of an A that is packed column by column: what a block of rows reads of each column is in one line."""
    return math.gcd(rows, COLUMN_STRIP)


@dataclass(frozen=True)
class Left:
    """Where A is read: the address of its first element, the row pitch in elements, and the distance of units.

    If rows are in strips of `strip` rows, each strip begins `strip` * `depth` elements behind the one before. Rows of a
    block that lie anywhere have `starts` instead of a pitch. Elements may be of another type, `raw`: a block of rows is
    converted before it is multiplied.
    """

    start: Value
    pitch: Value
    step: Value
    strip: int = 0
    depth: int = 0
    starts: tuple[Value, ...] = ()
    raw: str = ""

    @classmethod
    def of_columns(cls, builder: LoopBuilder, start: Value, strip: int, depth: int) -> Left:
        """Where `Columns` of so many columns are read."""
        return cls(start, builder.i64(1), builder.i64(strip), strip, depth)

    def from_row(self, builder: LoopBuilder, row: Value, element: str) -> Left:
        """The same from a row on, the first of a block."""
        element = types.storage(self.raw or element)
        if not self.strip:
            return replace(self, start=builder.address(self.start, [builder.mul(row, self.pitch)], element))
        within = builder.binary("arith.remui", row, builder.i64(self.strip))
        strips = builder.mul(builder.sub(row, within), builder.i64(self.depth))
        return replace(self, start=builder.address(self.start, [strips, within], element))

    def by_row(self, builder: LoopBuilder, count: int, element: str) -> Left:
        """The same with an address for each of the first `count` rows."""
        return replace(self, starts=tuple(self.rows(builder, builder.i64(0), count, element, element)))

    def rows(self, builder: LoopBuilder, k: Value, count: int, unit: str, element: str) -> list[Value]:
        """The addresses of the first rows at `k` units along K."""
        along = builder.mul(k, self.step)
        if self.starts:
            return [builder.address(start, [along], unit) for start in self.starts[:count]]
        start = builder.address(self.start, [along], unit)
        return [
            builder.address(start, [builder.mul(self.pitch, builder.i64(row))], element)
            for row in range(count)
        ]


def fill_either(
    lowering: Lowering,
    operation: Operation,
    place: Buffer,
    tensor: Tensor,
    condition: Value,
    specially: Callable[[], None],
) -> None:
    """Write a factor to its `place`: `specially` if the `condition` holds, else as every tensor is."""
    builder = lowering.builder

    def special() -> list[Value]:
        builder.forget_reads()
        specially()
        return []

    def usual() -> list[Value]:
        builder.forget_reads()
        lowering.fill(operation, place, tensor)
        return []

    builder.forget_reads()
    builder.if_else(condition, special, usual)
    builder.forget_reads()

"""Software prefetch around a loop of products: of tiles that the next program reads before it, and this one writes
behind it.

A program of attention reads a tile of queries, multiplies it by all keys, and writes a tile. Before and behind the loop
nothing is multiplied, and the tiles come from memory. So the loop's first product prefetches their lines into L2, a few
for each block of its sums. Addresses assume that a thread runs programs in order; where it does not, the lines go
unused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.kept_factors import iteration_number
from triton_porting_kit.compiler.loops.matmul.panels import Panels
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.loops.memory.growth import FOR
from triton_porting_kit.compiler.loops.memory.row_prefetch import step_between
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point

LINE = 64
"""Bytes of a cache line."""

ITERATIONS = 8
"""Over how many iterations of the loop the lines are spread: all at once would fill the buffers of the core's loads."""

Around: TypeAlias = Callable[[Value, Value], None]
"""Emits what the block of sums at a row and a column prefetches."""


def nothing_around(row: Value, column: Value) -> None:
    """Prefetches nothing."""


@dataclass(frozen=True)
class _Tile:
    """A tile of rows of whole lines, `pitch` elements apart."""

    start: Value
    pitch: Value
    rows: int
    width: int
    """Lines of a row."""
    element: str
    writes: bool

    @property
    def lines(self) -> int:
        return self.rows * self.width

    def prefetch(self, builder: LoopBuilder, number: Value) -> None:
        """Prefetch line `number`."""
        row, column = (
            builder.binary(f"arith.{op}", number, builder.i64(self.width)) for op in ("divui", "remui")
        )
        place = builder.address(self.start, [builder.mul(row, self.pitch)], self.element)
        place = builder.address(place, [builder.mul(column, builder.i64(LINE))], "i8")
        lane_memory.prefetch(builder, place, lane_memory.L2, writes=self.writes)


def around(lowering: Lowering, operation: Operation, block: Blocking, shape: tuple[int, int]) -> Around:
    """What the dot `operation`, whose sums have this shape, prefetches: if it is the first one in a loop that is in no
    other one.
    """
    loop = operation.block.parent
    if not lowering.target.prefetches or lowering.work_items > 1:
        return nothing_around
    if loop is None or loop.name != FOR or loop.block.parent is not None:
        return nothing_around
    waiting = lowering.part(Panels)
    dots = (other for other in operation.block.operations if other.name == operation.name)
    if next((dot for dot in dots if dot not in waiting), None) is not operation:
        return nothing_around
    tiles = [*_read_next(lowering, loop), *_written(lowering, loop)]
    if not tiles:
        return nothing_around
    builder = lowering.builder
    downs, acrosses = shape[0] // block.rows, shape[1] // block.strip
    before = builder.mul(iteration_number(lowering, loop), builder.i64(downs * acrosses))

    def emit(row: Value, column: Value) -> None:
        down, across = (
            builder.binary("arith.divui", index, builder.i64(size))
            for index, size in ((row, block.rows), (column, block.strip))
        )
        call = builder.add(before, builder.add(builder.mul(across, builder.i64(downs)), down))
        for lines in dict.fromkeys(tile.lines for tile in tiles):
            each = -(-lines // (downs * acrosses * ITERATIONS))
            first = builder.mul(call, builder.i64(each))

            def some(lines: int = lines, each: int = each, first: Value = first) -> list[Value]:
                for tile in tiles:
                    for line in range(each if tile.lines == lines else 0):
                        tile.prefetch(builder, builder.add(first, builder.i64(line)))
                return []

            builder.if_else(builder.compare("ult", first, builder.i64(lines)), some)

    return emit


def _read_next(lowering: Lowering, loop: Operation) -> Iterator[_Tile]:
    """The tiles that the next program reads before its loop."""
    builder = lowering.builder
    for operation in loop.block.operations[: loop.position]:
        tensor = lowering.tensors.get(operation.results[0]) if LoadOp.isa(operation) else None
        if not isinstance(tensor, Load) or len(tensor.shape) != 2 or not tensor.access.is_contiguous(1):
            continue
        step = step_between(lowering, operation)
        if step is None or tensor.access.wraps:
            continue
        zero = builder.i64(0)
        corner = Evaluation(builder, frozenset({tensor.access}), {})
        element = types.storage(tensor.element)
        start = builder.address(tensor.access.pointer(corner, Point((zero, zero), -1, 1)), [step], element)
        yield from _tile(lowering, tensor.shape, start, tensor.access.strides[0], element, writes=False)


def _written(lowering: Lowering, loop: Operation) -> Iterator[_Tile]:
    """The tiles that are written behind a loop at an address that is known before it."""
    for operation in loop.block.operations[loop.position + 1 :]:
        op = Store.dyn_cast(operation)
        if op is None or len(shape := op.value.type.shape or ()) != 2 or op.wrap_dims:
            continue
        base, offset, *strides = (lowering.scalars.get(value) for value in (op.base, op.offset, *op.strides))
        if base is None or offset is None or strides[0] is None or strides[1] is None:
            continue
        if strides[1].constant == 1:
            element = types.storage(op.value.type.element)
            start = lowering.builder.address(base, [offset], element)
            yield from _tile(lowering, shape, start, strides[0], element, writes=True)


def _tile(
    lowering: Lowering, shape: tuple[int, ...], start: Value, pitch: Value, element: str, *, writes: bool
) -> Iterator[_Tile]:
    """The tile, if its rows have whole lines and it leaves most of L2 to others."""
    rows, size = shape[0], shape[1] * types.byte_size(element)
    if size % LINE == 0 and rows * size <= lowering.target.caches.panel_bytes:
        yield _Tile(start, pitch, rows, size // LINE, element, writes)

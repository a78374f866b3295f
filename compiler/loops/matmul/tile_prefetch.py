"""Software prefetch of whole tiles beside a product in a loop, a few lines for each block of its sums.

A program of attention reads a tile of queries, multiplies it by all keys, and writes a tile. In front of the loop and
behind it nothing is multiplied, and the tiles come from memory. So the loop's first product prefetches what the next
program reads in front of it, and what this one writes behind it. Keys and values are packed once for all programs that
share them; while a product packs its right operand, it prefetches the one of the next iteration.

Addresses assume that a thread runs programs in order; where it does not, the lines go unused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.kept_factors import Kept, iteration_number
from triton_porting_kit.compiler.loops.matmul.panels import Panels
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, Place
from triton_porting_kit.compiler.loops.memory.growth import FOR
from triton_porting_kit.compiler.loops.memory.row_prefetch import step_between
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import LINE
from triton_porting_kit.compiler.loops.tiles.tensors import Point

ITERATIONS = 8
"""Over how many iterations of the loop the lines are spread: all at once would fill the buffers of the core's loads."""

Beside: TypeAlias = Callable[[Place], None]
"""Emits what a block of sums prefetches."""


def nothing(at: Place) -> None:
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
        place, column = self.start, number
        if self.rows > 1:
            row, column = (
                builder.binary(f"arith.{op}", number, builder.i64(self.width)) for op in ("divui", "remui")
            )
            place = builder.address(place, [builder.mul(row, self.pitch)], self.element)
        place = builder.address(place, [builder.mul(column, builder.i64(LINE))], "i8")
        lane_memory.prefetch(builder, place, lane_memory.L2, writes=self.writes)


def tiles_ahead(
    lowering: Lowering, operation: Operation, block: Blocking, shape: tuple[int, int], kept: Kept | None
) -> Beside:
    """What the blocks of the dot `operation` prefetch. Its sums have this `shape`.

    The first dot of an outermost loop prefetches the tiles around the loop. Where a right operand is `kept`, the dot
    prefetches the one of the next iteration.
    """
    loop, builder = operation.block.parent, lowering.builder
    if loop is None or loop.name != FOR or not lowering.target.prefetches or lowering.work_items > 1:
        return nothing
    outer = [*_read_next(lowering, loop), *_written(lowering, loop)] if _is_first(lowering, operation) else []
    right = [] if kept is None else list(_following(lowering, loop, kept))
    if not outer and not right:
        return nothing
    calls = block.blocks(*shape)
    before = builder.mul(iteration_number(lowering, loop), builder.i64(calls)) if outer else builder.i64(0)

    def emit(at: Place) -> None:
        call = at.number(builder)
        if outer:
            _around(builder, outer, builder.add(before, call), calls * ITERATIONS)
        if right and kept is not None:
            builder.if_else(kept.known, lambda: [], lambda: _share(builder, right, call, calls))

    return emit


def _around(builder: LoopBuilder, tiles: Sequence[_Tile], call: Value, calls: int) -> None:
    """Prefetch the lines of call number `call`, which may be none: the first `calls` ones prefetch all lines."""
    for lines in dict.fromkeys(tile.lines for tile in tiles):
        each = -(-lines // calls)
        first = builder.mul(call, builder.i64(each))

        def some(lines: int = lines, each: int = each, first: Value = first) -> list[Value]:
            for tile in tiles:
                for line in range(each if tile.lines == lines else 0):
                    tile.prefetch(builder, builder.add(first, builder.i64(line)))
            return []

        builder.if_else(builder.compare("ult", first, builder.i64(lines)), some)


def _share(builder: LoopBuilder, tiles: Sequence[_Tile], call: Value, calls: int) -> list[Value]:
    """Prefetch the share of each tile that is for call number `call`."""
    for tile in tiles:
        each = -(-tile.lines // calls)
        first = builder.mul(call, builder.i64(each))
        with builder.loop(first, builder.add(first, builder.i64(each)), builder.i64(1)) as lines:
            tile.prefetch(builder, lines.induction)
    return []


def _is_first(lowering: Lowering, operation: Operation) -> bool:
    """Whether a dot is the first one that its loop does in each iteration, and no other loop is around that."""
    loop, waiting = operation.block.parent, lowering.part(Panels)
    if loop is None or loop.block.parent is not None:
        return False
    dots = (other for other in operation.block.operations if other.name == operation.name)
    return next((dot for dot in dots if dot not in waiting), None) is operation


def _read_next(lowering: Lowering, loop: Operation) -> Iterator[_Tile]:
    """The tiles that the next program reads in front of its loop."""
    for operation in loop.block.operations[: loop.position]:
        tensor = lowering.tensors.get(operation.results[0]) if LoadOp.isa(operation) else None
        if isinstance(tensor, Load) and (step := step_between(lowering, operation)) is not None:
            yield from _read(lowering, tensor, step)


def _following(lowering: Lowering, loop: Operation, kept: Kept) -> Iterator[_Tile]:
    """What the load of a right operand reads in the next iteration."""
    owner = None if kept.load.definition is None else kept.load.definition.owner
    if (step := step_between(lowering, owner, loop)) is not None:
        yield from _read(lowering, kept.load, step)


def _read(lowering: Lowering, tensor: Load, step: Value) -> Iterator[_Tile]:
    """What lies `step` elements behind a tile that is read along its rows or its columns."""
    access, builder, zero = tensor.access, lowering.builder, lowering.builder.i64(0)
    along = next((axis for axis in (1, 0) if len(tensor.shape) == 2 and access.is_contiguous(axis)), None)
    if along is None or access.wraps:
        return
    element = types.storage(tensor.element)
    corner = access.pointer(Evaluation(builder, frozenset({access}), {}), Point((zero, zero), -1, 1))
    start, pitch = builder.address(corner, [step], element), access.strides[1 - along]
    yield from _tile(lowering, tensor.shape[1 - along], tensor.shape[along], start, pitch, element)


def _written(lowering: Lowering, loop: Operation) -> Iterator[_Tile]:
    """The tiles that are written behind a loop at an address that is known in front of it."""
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
            yield from _tile(lowering, shape[0], shape[1], start, strides[0], element, writes=True)


def _tile(
    lowering: Lowering, rows: int, length: int, start: Value, pitch: Value, element: str, writes: bool = False
) -> Iterator[_Tile]:
    """The tile, if its rows have whole lines and it leaves most of L2 to others."""
    size = length * types.byte_size(element)
    if size % LINE == 0 and rows * size <= lowering.target.caches.panel_bytes:
        if pitch.constant == length:  # one row, for addresses without divisions
            rows, size = 1, rows * size
        yield _Tile(start, pitch, rows, size // LINE, element, writes)

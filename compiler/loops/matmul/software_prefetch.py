"""Software prefetch for products: rows of A, and the part of B that the next iterations pack or find packed.

Packing mostly waits for memory, and multiplying needs none. So the multiplication of one panel prefetches, a few lines
at a time, the rows of B that the next panel will pack into L2. If this panel was found in the cache of packed panels,
the next cached panel is prefetched instead. Each block of rows prefetches the rows of A after it into L1. Addresses
assume that the loop walks A and B row after row. Where it does not, or ends, the prefetched lines go unused; a prefetch
never faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.panels import Left, Panel, Part
from triton_porting_kit.compiler.loops.matmul.products import Product, TileProduct
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor

LINE = 64
"""Bytes of a cache line."""

MOST = 8
"""Most lines of B to prefetch at a time: with few rows of sums, multiplying takes too little time to hide more."""

Fetch: TypeAlias = Callable[[Value, Value, Value, Left], None]
"""Emits the prefetches of one register block.

Takes its first row and column, a position along K, and A at that position.
"""


def steps_between(product: Product) -> int:
    """The number of steps along K that use one cache line of each row of A."""
    return LINE // types.byte_size(product.unit)


def advance(lowering: Lowering, definition: Def) -> Value | None:
    """How much a loop-carried value grows per iteration; None if not known."""
    body = definition.block
    if definition not in body.arguments[1:]:
        return None
    owner = body.operations[-1].operands[body.arguments.index(definition) - 1].owner
    if owner is None or owner.block is not body or owner.name != "arith.addi":
        return None
    others = [operand for operand in owner.operands if operand is not definition]
    return lowering.scalar(others[0]) if len(others) == 1 and others[0].block is not body else None


def lines_ahead(
    lowering: Lowering, dot: Operation, b: Tensor, panel: Panel, part: Part, m: int
) -> Fetch | None:
    """Returns a function that emits the prefetch of the next rows of A and of what the next iterations need of `b`.

    `b` is the right factor of a dot, and each of its strips is multiplied by `m` rows. None if prefetching would not
    pay.
    """
    product, block = panel.product, panel.block
    if not lowering.target.triple.startswith("x86_64") or isinstance(product, TileProduct):
        return None  # tile registers multiply faster than prefetches are issued
    builder = lowering.builder
    fetch_right = _right_ahead(lowering, dot, b, panel, part, m)

    def fetch(row: Value, column: Value, k: Value, left: Left) -> None:
        if fetch_right is not None:
            fetch_right(row, column, k)
        start = builder.address(left.start, [k], product.unit)
        for index in range(block.rows, 2 * block.rows):
            down = builder.mul(left.pitch, builder.i64(index))
            place = builder.address(start, [down], types.storage(product.element))
            lane_memory.prefetch(builder, place, lane_memory.L1)

    return fetch


def _right_ahead(
    lowering: Lowering, dot: Operation, b: Tensor, panel: Panel, part: Part, m: int
) -> Callable[[Value, Value, Value], None] | None:
    """The same for what follows this part of B.

    The function takes a register block's row and column, and a position along K.

    If this part was in the cache of packed panels, the next panel there is prefetched. None if the address of what
    follows is not known.
    """
    owner = dot.operands[1].owner
    if not isinstance(b, Load) or owner is None or not b.access.is_contiguous(1):
        return None
    load = LoadOp(owner)
    by = advance(lowering, load.offset)
    if by is None or any(stride.block is dot.block for stride in load.strides):
        return None
    builder, product, block, right = lowering.builder, panel.product, panel.block, panel.right
    element, unit = types.storage(b.element), product.unit
    corner = Evaluation(builder, frozenset({b.access}), {})
    packed = builder.address(part.right.pointer, [builder.i64(right.pitch * right.shape[1])], unit)
    pitch = builder.select(part.known, builder.i64(block.strip), b.access.strides[0])
    lines = max(1, block.strip * types.byte_size(b.element) // LINE)  # cache lines of a row
    share = -(-right.pitch * product.count // (m // block.rows))  # rows of B per block of rows of A
    steps = steps_between(product)
    times = -(-right.pitch // steps)
    each = min(MOST, -(-share * lines // times))
    # A prefetch covers `rows` rows, or one of the `parts` of a row.
    rows, parts = -(-each // lines), max(1, lines // each)
    within = lines // parts

    def fetch(row: Value, column: Value, k: Value) -> None:
        there = b.access.pointer(corner, Point((builder.i64(0), column), -1, 1))
        strip = builder.address(packed, [builder.mul(column, builder.i64(right.pitch))], unit)
        start = builder.select(part.known, strip, builder.address(there, [by], element))
        number = builder.binary("arith.divui", row, builder.i64(block.rows))
        time = builder.binary("arith.divui", k, builder.i64(steps))
        first = builder.mul(time, builder.i64(rows))
        if parts > 1:
            first, piece = (
                builder.binary(f"arith.{op}", time, builder.i64(parts)) for op in ("divui", "remui")
            )
            start = builder.address(start, [builder.mul(piece, builder.i64(within * LINE))], "i8")
        first = builder.add(builder.mul(number, builder.i64(share)), first)
        for down in range(rows):
            line = builder.address(
                start, [builder.mul(builder.add(first, builder.i64(down)), pitch)], element
            )
            for across in range(within):
                place = builder.address(line, [builder.i64(across * LINE)], "i8")
                lane_memory.prefetch(builder, place, lane_memory.L2)

    return fetch

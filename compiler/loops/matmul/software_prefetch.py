"""Software prefetch for products: A, and the part of B that the next iterations pack or find packed.

Packing mostly waits for memory, and multiplying needs none. So the multiplication of one panel prefetches, a few lines
at a time, the rows of B that the next panel will pack into L2. If this panel was found in the cache of packed panels,
the next cached panel is prefetched instead. An A that is packed column by column is prefetched like B. Of one that is
read or packed in rows, each block of rows prefetches those after it. Where the last multiplication stores the result,
each block prefetches the memory that the one below it writes. Addresses assume that the loop walks A and B row after
row, or column after column. Where it does not, or ends, the prefetched lines go unused; a prefetch never faults.

The rows of A go to L2 where units are elements, else to L1. Rows that are a multiple of 4 KiB apart share the same few
sets of L1. On Cascade Lake, L2 is up to 1 % faster for float32, limited to AVX2 1 to 5 %; bytes are 3 % slower by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Left
from triton_porting_kit.compiler.loops.matmul.instructions import TileProduct
from triton_porting_kit.compiler.loops.matmul.panels import Panel, Part
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product
from triton_porting_kit.compiler.loops.matmul.register_blocking import Place
from triton_porting_kit.compiler.loops.matmul.tile_prefetch import Beside, nothing
from triton_porting_kit.compiler.loops.memory.growth import advance
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import LINE
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor

MOST = 8
"""Most lines of B to prefetch at a time: with few rows of sums, multiplying takes too little time to hide more."""

Fetch: TypeAlias = Callable[[Place, Value, Left, Value], None]
"""Emits the prefetches of one register block.

Takes where it is, a position along K, its rows of A, and the position along these.
"""

Ahead: TypeAlias = Callable[[Place, Value], None]
"""The same for one factor. Takes where the register block is, and a position along K."""


def steps_between(product: Product) -> int:
    """The number of steps along K that use one cache line of each row of A."""
    return LINE // types.byte_size(product.unit)


def lines_ahead(
    lowering: Lowering, dot: Operation, a: Tensor, b: Tensor, panel: Panel, part: Part
) -> Fetch | None:
    """Returns a function that emits the prefetch of the next rows of A and of what the next iterations need of `b`.

    `a` and `b` are the factors of a dot. None if prefetching would not pay.
    """
    product = panel.product
    if not _pays(lowering, product):
        return None
    builder = lowering.builder
    fetch_right = _right_ahead(lowering, dot, b, panel, part)
    fetch_left = _columns_ahead(lowering, dot, a, panel) if panel.columns else None
    cache = lane_memory.L2 if isinstance(product, Elements) else lane_memory.L1

    def fetch(at: Place, k: Value, left: Left, along: Value) -> None:
        if fetch_right is not None:
            fetch_right(at, k)
        if fetch_left is not None:
            fetch_left(at, k)
        if panel.columns:
            return  # the rows after these are in the same lines
        unit, element = types.storage(left.raw or product.unit), types.storage(panel.element)
        block = at.region.block
        rows = left.rows(builder, along, 2 * block.rows, unit, element)
        for place in rows[block.rows :]:
            lane_memory.prefetch(builder, place, cache)

    return fetch


def _pays(lowering: Lowering, product: Product) -> bool:
    """Whether prefetches beside this product pay. Tile registers multiply faster than prefetches are issued."""
    return lowering.target.triple.startswith("x86_64") and not isinstance(product, TileProduct)


def _by(lowering: Lowering, dot: Operation, index: int, factor: Tensor) -> Value | None:
    """How far a factor of `dot` moves in memory from one iteration to the next; None if that is not known."""
    load = LoadOp.dyn_cast(dot.operands[index].owner) if isinstance(factor, Load) else None
    if load is None or any(stride.block is dot.block for stride in load.strides):
        return None
    by = advance(lowering, load.offset, dot.block)
    return None if by is None or by.constant == 0 else by


def _columns_ahead(lowering: Lowering, dot: Operation, a: Tensor, panel: Panel) -> Ahead | None:
    """The same for the next columns of an A that is packed column by column."""
    by = _by(lowering, dot, 0, a)
    if by is None:
        return None
    assert isinstance(a, Load)
    builder, right = lowering.builder, panel.right
    blocks = panel.block.blocks(panel.left.shape[0], right.shape[1])
    corner, zero = Evaluation(builder, frozenset({a.access}), {}), builder.i64(0)
    share = -(-right.pitch // blocks)  # columns of A per register block
    spread = _Spread.of(panel.product, right.pitch, share, a.shape[0] * types.byte_size(a.element))

    def fetch(at: Place, k: Value) -> None:
        here = a.access.pointer(corner, Point((zero, zero), -1, 1))
        start = builder.address(here, [by], types.storage(a.element))
        spread.emit(builder, start, a.access.strides[1], types.storage(a.element), at.number(builder), k)

    return fetch


def _right_ahead(lowering: Lowering, dot: Operation, b: Tensor, panel: Panel, part: Part) -> Ahead | None:
    """The same for what follows this part of B.

    If this part was in the cache of packed panels, the next panel there is prefetched. None if the address of what
    follows is not known.
    """
    by = _by(lowering, dot, 1, b)
    if by is None:
        return None
    assert isinstance(b, Load)
    if not b.access.is_contiguous(1):
        return None
    builder, product, right = lowering.builder, panel.product, panel.right
    element, unit = types.storage(b.element), product.unit
    corner = Evaluation(builder, frozenset({b.access}), {})
    packed = builder.address(part.right.pointer, [builder.i64(right.pitch * right.shape[1])], unit)

    def fetch(at: Place, k: Value) -> None:
        strip = at.region.block.strip
        share = -(-right.pitch * product.count // at.region.downs)  # rows of B per block of rows of A
        spread = _Spread.of(product, right.pitch, share, strip * types.byte_size(b.element))
        pitch = builder.select(part.known, builder.i64(strip), b.access.strides[0])
        there = b.access.pointer(corner, Point((builder.i64(0), at.column), -1, 1))
        known = builder.address(packed, [builder.mul(at.column, builder.i64(right.pitch))], unit)
        start = builder.select(part.known, known, builder.address(there, [by], element))
        spread.emit(builder, start, pitch, element, at.down(builder), k)

    return fetch


def stored_below(lowering: Lowering, panel: Panel, part: Part) -> Beside:
    """Returns a function that emits the prefetch of what the block of rows below stores, if `part` stores the result.

    Products of 512x512 floats take 2 to 4 % less time with it on Cascade Lake. Only AVX-512 uses it: with AVX2, larger
    products gain nothing, and kernels take 3 % longer to compile. A loop over the rows would gain nothing.
    """
    builder, epilogue = lowering.builder, panel.epilogue
    if not _pays(lowering, panel.product) or "avx512f" not in lowering.target.features:
        return nothing
    if epilogue is None or not epilogue.access.is_contiguous(1):
        return nothing
    access = epilogue.access
    corner = Evaluation(builder, frozenset({access}), {})

    def emit(at: Place) -> None:
        block = at.region.block

        def prefetched() -> list[Value]:
            below = builder.add(at.row, builder.i64(block.rows))
            for down in range(block.rows):
                row = builder.add(below, builder.i64(down))
                start = access.pointer(corner, Point((row, at.column), -1, 1))
                for line in range(0, block.strip * types.byte_size(access.element), LINE):
                    place = builder.address(start, [builder.i64(line)], "i8")
                    lane_memory.prefetch(builder, place, lane_memory.L2, writes=True)
            return []

        builder.if_else(part.stores, prefetched)

    return emit


@dataclass(frozen=True)
class _Spread:
    """The prefetch of `share` rows by one register block, spread over its way along K.

    Every `steps` along K, it covers `rows` rows, or one of the `parts` of a row, of `within` lines.
    """

    share: int
    steps: int
    rows: int
    parts: int
    within: int

    @classmethod
    def of(cls, product: Product, depth: int, share: int, row_bytes: int) -> _Spread:
        """That of rows of so many bytes over `depth` units along K."""
        lines, steps = -(-row_bytes // LINE), steps_between(product)
        times = -(-depth // steps)
        each = min(MOST, -(-share * lines // times))
        rows, parts = -(-each // lines), max(1, lines // each)
        return cls(share, steps, rows, parts, lines // parts)

    def emit(
        self, builder: LoopBuilder, start: Value, pitch: Value, element: str, number: Value, k: Value
    ) -> None:
        """Prefetch what register block `number` does at `k`, of rows from `start` that are `pitch` elements apart."""
        time = builder.binary("arith.divui", k, builder.i64(self.steps))
        first = builder.mul(time, builder.i64(self.rows))
        if self.parts > 1:
            first, piece = builder.i64(0), time
            if pitch.constant != self.parts * self.within * LINE // types.byte_size(
                element
            ):  # else rows adjoin
                first, piece = (
                    builder.binary(f"arith.{op}", time, builder.i64(self.parts)) for op in ("divui", "remui")
                )
            start = builder.address(start, [builder.mul(piece, builder.i64(self.within * LINE))], "i8")
        first = builder.add(builder.mul(number, builder.i64(self.share)), first)
        for down in range(self.rows):
            line = builder.address(
                start, [builder.mul(builder.add(first, builder.i64(down)), pitch)], element
            )
            for across in range(self.within):
                place = builder.address(line, [builder.i64(across * LINE)], "i8")
                lane_memory.prefetch(builder, place, lane_memory.L2)

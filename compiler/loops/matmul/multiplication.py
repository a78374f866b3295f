"""The loops of a product over packed operands: strips of B, blocks of rows of A, and K.

A block of sums stays in registers over the whole length along K; see `vector_kernels` and `amx_kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from triton_porting_kit.compiler.loops.arithmetic.elementwise import convert
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.amx_kernels import TileBlock
from triton_porting_kit.compiler.loops.matmul.epilogues import Epilogue
from triton_porting_kit.compiler.loops.matmul.factors import Left, Strips
from triton_porting_kit.compiler.loops.matmul.instructions import TileProduct
from triton_porting_kit.compiler.loops.matmul.panels import Part
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product, VectorProduct
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, Place, Region, unrolled
from triton_porting_kit.compiler.loops.matmul.row_tables import RowTable
from triton_porting_kit.compiler.loops.matmul.software_prefetch import Fetch, steps_between
from triton_porting_kit.compiler.loops.matmul.tile_prefetch import Beside, nothing
from triton_porting_kit.compiler.loops.matmul.vector_kernels import RegisterBlock
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk


def start_of(builder: LoopBuilder, buffer: Buffer, batch: Sequence[Value]) -> Value:
    """The address of the first element of a matrix, for these `batch` indices."""
    terms = [builder.mul(i, builder.i64(buffer.strides[0])) for i in batch]
    return builder.address(buffer.pointer, terms, buffer.element)


@dataclass(frozen=True)
class _Strip:
    """The first column of a strip, the address of its part of B, and each column's excess."""

    column: Value
    right: Value
    excess: list[Value]


@dataclass(frozen=True)
class Multiplication:
    """c (or `initial`) + a * b over a `part` of K, whose length is a multiple of the units of one step, in c."""

    lowering: Lowering
    product: Product
    block: Blocking
    part: Part
    c: Buffer
    fetch: Fetch | None = None
    epilogue: Epilogue | None = None
    initial: Tensor | None = None
    beside: Beside = nothing

    def emit(self, batch: Sequence[Value] = ()) -> None:
        """Emit the loops, for these `batch` indices."""
        builder, b = self.lowering.builder, self.part.right
        apart = builder.i64(b.pitch if isinstance(b, Strips) else 1)
        b_start, c_start = (start_of(builder, buffer, batch) for buffer in (b, self.c))
        room = self._room()
        for region in self.block.regions(*self.c.shape[-2:]):
            first, end, size = map(builder.i64, region.columns)
            with builder.loop(first, end, size, points=region.columns.pieces) as strips:
                column = strips.induction
                right = builder.address(b_start, [builder.mul(column, apart)], b.element)
                strip = _Strip(column, right, self._excess(column, region.block))
                self._region(region, strip, c_start, room)

    def _region(self, region: Region, strip: _Strip, c_start: Value, room: Buffer | None) -> None:
        """The blocks of a region in one strip."""
        builder, (m, n) = self.lowering.builder, self.c.shape[-2:]
        tile = self._tile(region.block, biased=room is not None)
        with builder.loop(
            builder.i64(0), builder.i64(m), builder.i64(region.block.rows), points=region.downs
        ) as rows:
            at = Place(region, rows.induction, strip.column)
            self.beside(at)
            c_row = builder.address(c_start, [at.column, builder.mul(at.row, builder.i64(n))], self.c.element)
            sums = self._multiplied(
                tile, at, strip, room, _less(builder, self._begun(tile, at, c_row), strip.excess)
            )
            self._store(tile, at, c_row, sums)

    def _store(self, tile: RegisterBlock | TileBlock, at: Place, c_row: Value, sums: list[Value]) -> None:
        """Store the `sums` of a block: to c at `c_row`, or where the epilogue stores them."""
        builder, epilogue, stores = self.lowering.builder, self.epilogue, self.part.stores
        pitch = builder.i64(self.c.shape[-1])
        if epilogue is None:
            tile.store(sums, c_row, pitch)
            return
        there, apart = epilogue.place(builder, at)
        start, pitch = (builder.select(stores, *ends) for ends in ((there, c_row), (apart, pitch)))
        with self.lowering.place_of(epilogue.store):
            tile.store(sums, start, pitch)
            epilogue.emit(self.lowering, stores, at)

    def _multiplied(
        self,
        tile: RegisterBlock | TileBlock,
        at: Place,
        strip: _Strip,
        room: Buffer | None,
        sums: list[Value],
    ) -> list[Value]:
        """The `sums` of a block with its products along K."""
        builder, part, rows = self.lowering.builder, self.part, at.region.block.rows
        if not isinstance(part.left, RowTable):
            there = part.left.from_row(builder, at.row, types.storage(self.product.element))
            return self._along(tile, at, there, strip.right, part.depth, room, sums, builder.i64(0))
        each, units = builder.i64(part.left.units), builder.i64(part.right.strides[-2])
        with builder.loop(builder.i64(0), part.iterations, builder.i64(1), sums) as iterations:
            before = builder.mul(iterations.induction, each)
            column = builder.address(strip.right, [builder.mul(before, units)], part.right.element)
            there = part.left.left(builder, iterations.induction, at.row, rows)
            iterations.yields = self._along(tile, at, there, column, each, None, iterations.arguments, before)
        return iterations.results

    def _along(
        self,
        tile: RegisterBlock | TileBlock,
        at: Place,
        there: Left,
        column: Value,
        end: Value,
        room: Buffer | None,
        sums: list[Value],
        before: Value,
    ) -> list[Value]:
        """The sums with `end` units more, of rows of A and a column of B; `before` units are done."""
        builder, fetch, zero = self.lowering.builder, self.fetch, self.lowering.builder.i64(0)
        a_rows = there if room is None else self._converted(there, end, room, at.region.block.rows)

        if fetch is None:
            return tile.multiply(sums, a_rows, column, zero, end)
        line = builder.i64(steps_between(self.product))
        with builder.loop(zero, end, line, sums) as lines:
            start = lines.induction
            fetch(at, builder.add(before, start), there, start)
            stop = builder.binary("arith.minsi", builder.add(start, line), end)
            lines.yields = tile.multiply(lines.arguments, a_rows, column, start, stop)
        return lines.results

    def _begun(self, tile: RegisterBlock | TileBlock, at: Place, c_row: Value) -> list[Value]:
        """What a register block begins with: the `initial`, if there is one, or what is in c."""
        builder, block = self.lowering.builder, at.region.block
        if self.initial is None:
            return tile.begin(self.part.begun, c_row, self.c.shape[-1])
        evaluation = Evaluation(builder, frozenset(), {})
        values = []
        for down in range(block.rows):
            for vector in range(block.vectors):
                indices = (
                    builder.add(at.row, builder.i64(down)),
                    builder.add(at.column, builder.i64(vector * block.lanes)),
                )
                lanes = block.lanes
                point = Point(indices, 1 if lanes > 1 else -1, lanes)
                values.append(builder.broadcast(evaluation.at(self.initial, point), lanes))
        return values

    def _room(self) -> Buffer | None:
        """Scratch for the rows of A of a register block, if these have to be converted or biased; it stays in L1."""
        part = self.part
        if isinstance(part.left, RowTable) or not (part.left.raw or self._biases_rows()):
            return None
        most = part.right.pitch if isinstance(part.right, Strips) else part.right.shape[-2]
        return self.lowering.scratch.allocate((self.block.rows, most), self.product.unit)

    def _biases_rows(self) -> bool:
        """Whether rows of A are biased before they are multiplied, once for each strip of B."""
        left = self.part.left
        return self.product.excess is not None and isinstance(left, Left) and left.step.constant == 1

    def _converted(self, rows: Left, depth: Value, room: Buffer, count: int) -> Left:
        """The first `count` rows of A, converted to the type that is multiplied or biased, in `room`.

        `depth` is a multiple of the units of one iteration, which a packed B holds.
        """
        builder, product, (_, pitch) = self.lowering.builder, self.product, room.shape
        lanes = chunk(self.part.right.shape[-2], self.lowering.target.lanes)
        zero, element, stored = builder.i64(0), rows.raw or product.unit, rows.raw or product.element
        starts = rows.rows(builder, zero, count, types.storage(element), types.storage(stored))
        with builder.loop(zero, depth, builder.i64(lanes)) as region:
            for row, start in enumerate(starts):
                place = builder.address(start, [region.induction], types.storage(element))
                alignment = types.byte_size(stored)
                found = lane_memory.read(
                    builder, place, element, lanes, floor=builder.level, alignment=alignment
                )
                if rows.raw:
                    found = convert(builder, "arith.extf", found, rows.raw, room.element)
                to = builder.address(room.pointer, [builder.i64(row * pitch), region.induction], room.element)
                lane_memory.write(builder, to, product.biased(builder, found))
        builder.forget_reads()
        return Left(room.pointer, builder.i64(pitch * product.count), builder.i64(1))

    def _tile(self, block: Blocking, *, biased: bool) -> RegisterBlock | TileBlock:
        """The micro-kernel that multiplies one block of sums by a packed B, or by several of its shape."""
        lowering, product, b = self.lowering, self.product, self.part.right
        builder, depth, pitch, sums = lowering.builder, b.shape[-2], b.strides[-2], self.c.element
        apart = pitch * b.pitch if isinstance(b, Strips) and pitch < block.strip else block.lanes
        if isinstance(product, TileProduct):
            most = b.pitch if isinstance(b, Strips) else depth
            read = (self.c.shape[-2] + block.strip) * most * types.byte_size(product.unit)  # for one strip
            streams = read > lowering.target.caches.l1
            return TileBlock(
                builder, product.instruction, product.element, block, sums, pitch, streams=streams
            )
        assert isinstance(product, VectorProduct)
        units = unrolled(lowering.target, depth) if isinstance(product, Elements) else 1
        return RegisterBlock(builder, product, block, sums, (pitch, apart), units, biased=biased)

    def _excess(self, column: Value, block: Blocking) -> list[Value]:
        """The excess of each column's sum in a strip: the sum over the part's iterations."""
        builder, part, width = self.lowering.builder, self.part, self.c.shape[-1]
        if part.excess is None:
            return []
        element = part.right.element
        zero = builder.constant(0, vector_type(element, block.lanes))
        first = builder.address(part.excess, [column], element)
        with builder.loop(builder.i64(0), part.iterations, builder.i64(1), [zero] * block.vectors) as region:
            row = builder.address(first, [builder.mul(region.induction, builder.i64(width))], element)
            for vector, total in enumerate(region.arguments):
                place = builder.address(row, [builder.i64(vector * block.lanes)], element)
                more = lane_memory.read(builder, place, element, block.lanes, floor=builder.level)
                region.yields.append(builder.add(total, more))
        return region.results


def _less(builder: LoopBuilder, values: list[Value], excess: list[Value]) -> list[Value]:
    """The accumulators, row by row, minus each column's excess."""
    return [builder.sub(value, more) for value, more in zip(values, cycle(excess))] if excess else values

"""Dots on a CPU's vector registers: a step along K loads one strip of B, and one unit of A per row of accumulators."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.matmul.factors import Left
from triton_porting_kit.compiler.loops.matmul.products import VectorProduct
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.loops.tiles import lane_memory


class RegisterBlock:
    """Loads, multiplies and stores one block of accumulators."""

    def __init__(
        self,
        builder: LoopBuilder,
        product: VectorProduct,
        block: Blocking,
        element: str,
        pitches: tuple[int, int],
        units: int = 1,
        *,
        biased: bool = False,
    ) -> None:
        self._builder = builder
        self._product = product
        self._block = block
        self._element = element
        self._pitch, self._apart = pitches  # of B, from a row and from a vector to the next one, in units
        self._biased = biased  # whether the units of A are
        self.units = units
        """Units along K that one iteration of the innermost loop multiplies."""

    def _read(self, pointer: Value, element: str, lanes: int) -> Value:
        return lane_memory.read(self._builder, pointer, element, lanes, floor=self._builder.level)

    def _place(self, base: Value, offset: int, element: str) -> Value:
        return self._builder.address(base, [self._builder.i64(offset)], element)

    def _accumulator(self, c_row: Value, index: int, width: int) -> Value:
        row, vector = divmod(index, self._block.vectors)
        return self._place(c_row, row * width + vector * self._block.lanes, self._element)

    def load(self, c_row: Value, width: int) -> list[Value]:
        """The accumulators of the block, row by row."""
        return [
            self._read(self._accumulator(c_row, index, width), self._element, self._block.lanes)
            for index in range(self._block.rows * self._block.vectors)
        ]

    def begin(self, begun: Value, c_row: Value, width: int) -> list[Value]:
        """The accumulators of the block: read from memory if `begun`, else zeros."""
        builder, block = self._builder, self._block
        zero = builder.constant(0, vector_type(self._element, block.lanes))
        zeros = [zero] * (block.rows * block.vectors)
        return builder.if_else(begun, lambda: self.load(c_row, width), lambda: zeros)

    def excess(self, b_column: Value, depth: Value, steps: int) -> list[Value]:
        """The excess of each column's sum (`Product.excess`). `steps` divides `depth`."""
        builder, product = self._builder, self._product
        assert product.excess is not None
        type = vector_type(self._element, self._block.lanes)
        by = builder.constant(product.excess, type)
        vectors = self._block.vectors
        totals = [builder.constant(0, type)] * (vectors * steps)  # each step has its own
        with builder.loop(builder.i64(0), depth, builder.i64(steps), totals) as region:
            for step in range(steps):
                k = builder.add(region.induction, builder.i64(step))
                row = self._row(
                    builder.address(b_column, [builder.mul(k, builder.i64(self._pitch))], product.unit)
                )
                region.yields += [
                    product.multiply_add(builder, by, b, total)
                    for b, total in zip(row, region.arguments[step * vectors :], strict=False)
                ]
        sums = region.results[:vectors]
        for step in range(1, steps):
            more = region.results[step * vectors : (step + 1) * vectors]
            sums = [builder.add(a, b) for a, b in zip(sums, more, strict=True)]
        return sums

    def store(self, values: list[Value], start: Value, pitch: Value) -> None:
        """Store the accumulators to rows with a pitch of `pitch` elements."""
        builder, block = self._builder, self._block
        for row in range(block.rows):
            place = builder.address(start, [builder.mul(pitch, builder.i64(row))], self._element)
            for vector in range(block.vectors):
                to = self._place(place, vector * block.lanes, self._element)
                lane_memory.write(builder, to, values[row * block.vectors + vector])

    def _row(self, b_row: Value, step: int = 0) -> list[Value]:
        """The units of B in the block's columns, `step` steps behind the address `b_row`."""
        block, unit = self._block, self._product.unit
        return [
            self._read(self._place(b_row, step * self._pitch + vector * self._apart, unit), unit, block.lanes)
            for vector in range(block.vectors)
        ]

    def multiply(self, sums: list[Value], a: Left, b_column: Value, start: Value, end: Value) -> list[Value]:
        """The sums with the products of the units from `start` to before `end`, a multiple of `units`.

        The address in B is carried, and each row of A has one: an address that is computed in the loop takes units from
        the multiply-adds. On Cascade Lake limited to AVX2, this takes 1 to 4 % less time.
        """
        builder, block, product = self._builder, self._block, self._product
        element, pitch = types.storage(product.element), builder.i64(self._pitch)
        b_row = builder.address(b_column, [builder.mul(start, pitch)], product.unit)
        a = a.by_row(builder, block.rows, element)
        with builder.loop(start, end, builder.i64(self.units), [*sums, b_row]) as loop:
            *sums, b_row = loop.arguments
            rows = a.rows(builder, loop.induction, block.rows, product.unit, element)
            for step in range(self.units):
                sums = self._step(sums, rows, builder.mul(a.step, builder.i64(step)), self._row(b_row, step))
            following = builder.address(b_row, [builder.i64(self.units * self._pitch)], product.unit)
            loop.yields = [*sums, following]
        return loop.results[:-1]

    def _step(self, values: list[Value], rows: list[Value], after: Value, b: list[Value]) -> list[Value]:
        """One step along K, `after` the addresses of the `rows`: adds their products with `b` to every accumulator."""
        builder, block, product = self._builder, self._block, self._product
        alignment = types.byte_size(product.element)
        sums = []
        for row, start in enumerate(rows):
            place = builder.address(start, [after], product.unit)
            unit = lane_memory.read(builder, place, product.unit, 1, floor=builder.level, alignment=alignment)
            unit = builder.broadcast(unit, block.lanes)
            unit = unit if self._biased else product.biased(builder, unit)
            first = row * block.vectors
            sums += [
                product.multiply_add(builder, unit, vector, total)
                for vector, total in zip(b, values[first : first + block.vectors], strict=True)
            ]
        return sums

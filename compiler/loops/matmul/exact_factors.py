"""Right factors of products of bf16 that need no rounding: f32 whose lower halves are zero, and numbers of 8 bits.

They are packed in pairs along K. Where columns of bytes lie in memory, units of four bytes are transposed before they
are converted: that moves half of what pairs of bf16 would.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from triton_porting_kit.compiler.loops.arithmetic import minifloats
from triton_porting_kit.compiler.loops.arithmetic.elementwise import convert
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import shuffled
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Elementwise, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop
from triton_porting_kit.compiler.loops.tiles.transposed import (
    rows_of_unit,
    transpose_tile,
    unit_of,
    upper_halves,
)
from triton_porting_kit.compiler.target import CpuTarget

BYTE_BITS = 8
BYTES = 4
"""Bytes along K in a unit."""
PAIRS = 2
"""Rows of pairs that a row of units becomes."""
LOOKED_UP = 64
"""Bytes that are looked up at a time."""
QUARTER = 16
"""Bytes in 128 bits."""


@dataclass(frozen=True)
class ExactFactor:
    """The factor that the ``arith`` cast `name` makes of `source`: bytes, or f32 whose lower halves are zero."""

    source: Tensor
    name: str

    @classmethod
    def of(cls, tensor: Tensor) -> ExactFactor | None:
        """A factor that is packed as bf16; None if it has to be rounded, or is bf16 already."""
        if tensor.element == "f32":  # exact: see `scaled_factors`
            return cls(tensor, "")
        name, source = "arith.extf", tensor
        if isinstance(tensor, Elementwise) and tensor.name in ("arith.extf", "arith.sitofp", "arith.uitofp"):
            name, source = tensor.name, tensor.operands[0]
        return cls(source, name) if types.BITS[source.element] <= BYTE_BITS else None

    @property
    def bytes(self) -> Tensor | None:
        """The factor's bytes, if it has any."""
        return self.source if types.BITS[self.source.element] == BYTE_BITS else None

    def wide(self) -> Tensor:
        """The factor as f32."""
        if not self.name:
            return self.source

        def emit(builder: LoopBuilder, values: list[Value]) -> Value:
            return self._widened(builder, values[0])

        return Elementwise(self.source.shape, "f32", [self.source], emit)

    def pack_columns(self, evaluation: Evaluation, target: CpuTarget, packed: Buffer) -> None:
        """Emit loops that write the factor to `packed`, in pairs. Its `bytes` lie in columns."""
        write = partial(self._write, evaluation.builder, packed)
        transpose_tile(evaluation, self.source, target, write, unit="i32", count=BYTES)

    def pack_rows(self, evaluation: Evaluation, packed: Buffer, lanes: int) -> None:
        """Emit loops that write the factor to `packed`, in pairs. It lies in rows."""
        builder, (*outer, depth, n) = evaluation.builder, packed.shape
        if self._is_looked_up(builder, lanes) and depth % PAIRS == 0:

            def units(point: Point) -> None:
                rows = rows_of_unit(evaluation, self.source, point, BYTES)
                self._write(builder, packed, point, unit_of(builder, rows))

            tile_loop(builder, (*outer, depth // PAIRS, n), lanes, units)
            return
        wide = self.wide()

        def pair(point: Point) -> None:
            packed.write(builder, point, upper_halves(builder, *rows_of_unit(evaluation, wide, point, 2)))

        tile_loop(builder, packed.shape, lanes, pair)

    def _write(self, builder: LoopBuilder, packed: Buffer, point: Point, units: Value) -> None:
        """Write a row of units of bytes as two rows of pairs."""
        *outer, row, column = point.indices
        first = builder.mul(row, builder.i64(PAIRS))
        for index, pair in enumerate(self.pairs(builder, units)):
            indices = (*outer, builder.add(first, builder.i64(index)), column)
            packed.write(builder, Point(indices, point.axis, point.width), pair)

    def pairs(self, builder: LoopBuilder, units: Value) -> list[Value]:
        """Two rows of pairs of bf16, given a row of units (i32) of four bytes along K, the first one lowest."""
        if self._is_looked_up(builder, units.lanes):
            return self._looked_up(builder, units)
        rows = [self._widened(builder, self._byte(builder, units, place)) for place in range(BYTES)]
        return [upper_halves(builder, *rows[place : place + 2]) for place in (0, 2)]

    def _is_looked_up(self, builder: LoopBuilder, lanes: int) -> bool:
        """Whether tables have the numbers for so many `lanes` of units."""
        fills = lanes == LOOKED_UP // BYTES
        return fills and self.bytes is not None and minifloats.is_looked_up(builder, self.source.element)

    def _looked_up(self, builder: LoopBuilder, units: Value) -> list[Value]:
        """The same for 8-bit floats, from tables of their bf16. All but the tables stays within 128 bits."""
        patterns = _bitcast(builder, units, "i8", LOOKED_UP)
        starts, bytes_each = range(0, LOOKED_UP, QUARTER), range(QUARTER // 2)
        # First the lower two bytes of each unit, then the upper two.
        order = [
            start + BYTES * (index // 2) + half + index % 2
            for start in starts
            for half in (0, BYTES // 2)
            for index in bytes_each
        ]
        patterns = shuffled(builder, patterns, patterns, order)
        low, high = minifloats.bfloat16_bytes(builder, patterns, self.source.element)
        pairs = []
        for half in (0, QUARTER // 2):
            places = [start + half + index for start in starts for index in bytes_each]
            both = [lane for place in places for lane in (place, LOOKED_UP + place)]
            pairs.append(_bitcast(builder, shuffled(builder, low, high, both), "i32", units.lanes))
        return pairs

    def _widened(self, builder: LoopBuilder, value: Value) -> Value:
        return convert(builder, self.name, value, self.source.element, "f32")

    @staticmethod
    def _byte(builder: LoopBuilder, units: Value, place: int) -> Value:
        """Byte number `place` of each unit."""
        shifted = builder.binary("arith.shrui", units, builder.constant(BYTE_BITS * place, units.type))
        return builder.cast("arith.trunci", shifted, vector_type("i8", units.lanes))


def _bitcast(builder: LoopBuilder, value: Value, element: str, lanes: int) -> Value:
    """The bits of a vector as so many lanes of another type."""
    type = vector_type(element, lanes)
    return builder.pure(f"vector.bitcast {value.name} : {value.type} to {type}", type, (value,))

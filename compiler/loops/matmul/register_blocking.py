"""How many accumulators of a dot stay in registers at a time, and how many steps along K follow without a branch.

Blocks of one size need not cover all sums. With 16 registers, twelve accumulators are four rows of three vectors, or
six rows of two, and the rows and columns of a tile are powers of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.target import CpuTarget

UNROLLED = 4
"""Most steps along K in one iteration of the innermost loop."""

WIDE, NARROW = 3, 2
"""Vectors of a row of a block with 16 registers: as many as fit, and in the columns that remain."""

HIGH, LOW = 6, 4
"""Rows of its narrow blocks, and of the blocks in the rows that remain and of wide blocks."""


@dataclass(frozen=True)
class Blocking:
    """A register block: `rows` rows of `vectors` vectors of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def strip(self) -> int:
        return self.vectors * self.lanes

    @property
    def packed_strip(self) -> int:
        """The columns of a strip of a packed B: of those that all blocks of the same sums consist of."""
        return self.lanes if self.vectors == WIDE else self.strip

    def regions(self, m: int, n: int) -> list[Region]:
        """The regions that cover `m` rows and `n` columns; this block is that of the first one.

        Those of the same columns follow each other.
        """
        first, *rest = _spans(n, self.strip, NARROW * self.lanes)
        narrow = replace(self, rows=HIGH if _takes_high(m) else self.rows, vectors=NARROW)
        found: list[Region] = []
        for columns, block in ((first, self), *((span, narrow) for span in rest)):
            bands = _spans(m, block.rows, LOW)
            downs = sum(rows.pieces for rows in bands)
            for rows in bands:
                before = found[-1].before + found[-1].blocks if found else 0
                found.append(Region(replace(block, rows=rows.size), rows, columns, before, downs))
        return found

    def tallest(self, m: int, n: int) -> int:
        """The most rows of a block of these regions."""
        return max(region.block.rows for region in self.regions(m, n))


class Span(NamedTuple):
    """Rows or columns, from `first` to before `end`, `size` at a time, with so many pieces `before` them."""

    first: int
    end: int
    size: int
    before: int

    @property
    def pieces(self) -> int:
        """The number of pieces."""
        return (self.end - self.first) // self.size

    def within(self, builder: LoopBuilder, index: Value) -> Value:
        """The number of the piece that begins at an index, among those of the span."""
        return builder.binary(
            "arith.divui",
            builder.sub(index, builder.i64(self.first)),
            builder.i64(self.size),
        )


class Region(NamedTuple):
    """Sums in register blocks of one size, with so many blocks `before` them, and `downs` blocks in each strip."""

    block: Blocking
    rows: Span
    columns: Span
    before: int
    downs: int

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.rows.pieces * self.columns.pieces


class Place(NamedTuple):
    """Where a register block is: its first row and column."""

    region: Region
    row: Value
    column: Value

    def down(self, builder: LoopBuilder) -> Value:
        """The number of the block among those of the same columns."""
        rows = self.region.rows
        return builder.add(builder.i64(rows.before), rows.within(builder, self.row))

    def number(self, builder: LoopBuilder) -> Value:
        """The number of the block among all."""
        region = self.region
        across = region.columns.within(builder, self.column)
        first = builder.add(
            builder.i64(region.before),
            builder.mul(across, builder.i64(region.rows.pieces)),
        )
        return builder.add(first, region.rows.within(builder, self.row))


def _spans(extent: int, size: int, rest: int) -> list[Span]:
    """An extent in as many pieces of `size` as leave a multiple of `rest`."""
    left = extent % size
    while left % rest:
        left += size
    first = Span(0, extent - left, size, 0)
    return [first, Span(extent - left, extent, rest, first.pieces)] if left else [first]


def blocking(target: CpuTarget, m: int, n: int, element: str) -> Blocking:
    """The largest block whose accumulators, one row of B's strip and one element of A fit the vector registers."""
    lanes = min(n, target.vector_bytes // types.byte_size(element))
    while n % lanes:
        lanes -= 1
    vectors = 1
    widest = 4 if target.vector_registers >= 32 else NARROW
    while vectors < widest and n % (2 * vectors * lanes) == 0:
        vectors *= 2
    if _fills_sixteen(target, element) and vectors == NARROW and m % LOW == 0:
        if n >= 2 * WIDE * lanes and lanes == target.lanes:  # tiles are filled by so many elements at a time
            return Blocking(LOW, WIDE, lanes)
        if _takes_high(m):
            return Blocking(HIGH, NARROW, lanes)
    rows, most = 1, target.vector_registers * 3 // 4  # the compiler needs the rest
    while m % (2 * rows) == 0 and (2 * rows) * vectors + vectors + 1 <= most:
        rows *= 2
    return Blocking(rows, vectors, lanes)


def _fills_sixteen(target: CpuTarget, element: str) -> bool:
    """Whether a block may have twelve accumulators, which with a strip and an element of A fill 15 or 16 registers.

    Two units that multiply and add in four cycles, or five as on Zen 2, need eight or ten independent sums: with eight,
    each delay is lost. On Granite Rapids four rows of two vectors reach 83 % of the peak in registers, six of two 93 %,
    and four of three 99 %.
    """
    return target.vector_registers == 16 and "fma" in target.features and types.is_float(element)


def _takes_high(m: int) -> bool:
    return m % LOW == 0 and m >= 2 * HIGH


def unrolled(target: CpuTarget, depth: int) -> int:
    """How many steps along K, a divisor of `depth`, one iteration of the innermost loop does, where units are elements.

    A step is so short that the loop's own instructions take units from the multiply-adds: four steps are 3 to 8 %
    faster for float32 on Granite Rapids, with AVX-512 and with AVX2. They lose 5 % with VDPBF16PS.
    """
    return (
        math.gcd(depth, UNROLLED) if target.vector_bytes >= 32 and target.triple.startswith("x86_64") else 1
    )

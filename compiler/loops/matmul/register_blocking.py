"""How many accumulators of a dot stay in registers at a time, and how many steps along K follow without a branch.

Blocks of one size need not cover all sums: the columns of a tile are a power of two, and twelve accumulators in 16
registers are four rows of three vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.target import CpuTarget

BYTES_OF_A_STEP = 16
"""An unrolled iteration does a step along K for every so many bytes of a register: four with AVX-512, two with AVX2."""

WIDE, NARROW = 3, 2
"""Vectors of a row of a block with 16 registers: as many as fit, and in the columns that remain."""

ROWS = 4
"""Rows of these blocks."""


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
        """The columns of a strip of a packed B, of which the blocks of all regions consist."""
        return self.lanes if self.vectors == WIDE else self.strip

    def regions(self, m: int, n: int) -> list[Region]:
        """The regions that cover `m` rows and `n` columns. This block is that of the first one."""
        first, *rest = _spans(n, self.strip, NARROW * self.lanes)
        found: list[Region] = []
        for columns, block in ((first, self), *((span, replace(self, vectors=NARROW)) for span in rest)):
            before = found[-1].before + found[-1].blocks if found else 0
            found.append(Region(block, columns, m // self.rows, before))
        return found

    def blocks(self, m: int, n: int) -> int:
        """The number of blocks in these regions."""
        last = self.regions(m, n)[-1]
        return last.before + last.blocks


class Span(NamedTuple):
    """Columns from `first` to before `end`, `size` at a time."""

    first: int
    end: int
    size: int

    @property
    def pieces(self) -> int:
        return (self.end - self.first) // self.size


class Region(NamedTuple):
    """All rows of some columns: `downs` blocks in each strip of them, and so many blocks `before` the first one."""

    block: Blocking
    columns: Span
    downs: int
    before: int

    @property
    def blocks(self) -> int:
        return self.downs * self.columns.pieces


class Place(NamedTuple):
    """Where a register block is: its first row and column."""

    region: Region
    row: Value
    column: Value

    def down(self, builder: LoopBuilder) -> Value:
        """The number of the block among those of the same columns."""
        return builder.binary("arith.divui", self.row, builder.i64(self.region.block.rows))

    def number(self, builder: LoopBuilder) -> Value:
        """The number of the block among all."""
        region, columns = self.region, self.region.columns
        distance = builder.sub(self.column, builder.i64(columns.first))
        across = builder.binary("arith.divui", distance, builder.i64(columns.size))
        first = builder.add(builder.i64(region.before), builder.mul(across, builder.i64(region.downs)))
        return builder.add(first, self.down(builder))


def _spans(extent: int, size: int, rest: int) -> list[Span]:
    """An extent in as many pieces of `size` as leave a multiple of `rest`."""
    left = extent % size
    while left % rest:
        left += size
    first = Span(0, extent - left, size)
    return [first, Span(extent - left, extent, rest)] if left else [first]


def blocking(target: CpuTarget, m: int, n: int, element: str, *, several: bool = False) -> Blocking:
    """The largest block whose accumulators, one row of B's strip and one element of A fit the vector registers.

    Blocks of `several` sizes have loops of their own each. They are for a product that waits for later iterations, and
    is the only one in its loop. A loop such as attention's has several products, and would take a half longer to
    compile. It ran 4 % faster, before two steps along K followed without a branch.

    Blocks of six rows, the last of which repeats the last row of sums, would need one loop. On Cascade Lake, products
    are 5 % slower by six rows of four vectors with AVX-512, and 10 % by six rows of two with AVX2.
    """
    lanes = min(n, target.vector_bytes // types.byte_size(element))
    while n % lanes:
        lanes -= 1
    vectors = 1
    widest = 4 if target.vector_registers >= 32 else NARROW
    while vectors < widest and n % (2 * vectors * lanes) == 0:
        vectors *= 2
    # `Lowering.fill` writes `target.lanes` elements at a time, which have to lie in one strip.
    suits = vectors == NARROW and lanes == target.lanes and m % ROWS == 0 and n >= 2 * WIDE * lanes
    if several and suits and _fills_sixteen(target, element):
        return Blocking(ROWS, WIDE, lanes)
    rows, most = 1, target.vector_registers * 3 // 4  # the compiler needs the rest
    while m % (2 * rows) == 0 and (2 * rows) * vectors + vectors + 1 <= most:
        rows *= 2
    return Blocking(rows, vectors, lanes)


def _fills_sixteen(target: CpuTarget, element: str) -> bool:
    """Whether a block may have twelve accumulators, which with a strip and an element of A fill 15 or 16 registers.

    Two units that multiply and add in four cycles, or five as on Zen 2, need eight or ten independent sums: with eight,
    each delay is lost. On Granite Rapids four rows of two vectors reach 83 % of the peak in registers, and four of
    three 99 %.
    """
    return target.vector_registers == 16 and "fma" in target.features and types.is_float(element)


def unrolled(target: CpuTarget, depth: int) -> int:
    """How many steps along K, a divisor of `depth`, one iteration of the innermost loop does, where units are elements.

    A step is so short that the loop's own instructions take units from the multiply-adds: four steps are 3 to 8 %
    faster for float32 on Granite Rapids, with AVX-512. They lose 5 % with VDPBF16PS. With AVX2, two are 3 % faster in
    wide blocks and 7 to 9 % in attention's, and four would be 3 % more, but take a half longer to compile.
    """
    if target.vector_bytes < 32 or not target.triple.startswith("x86_64"):
        return 1
    return math.gcd(depth, target.vector_bytes // BYTES_OF_A_STEP)

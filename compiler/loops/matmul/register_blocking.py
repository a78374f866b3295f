"""How many accumulators of a dot stay in registers at a time, and how many steps along K follow without a branch."""

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

SIX, FOUR = 6, 4
"""Rows of a block with 16 registers, and of the blocks of the rows that remain: 2^n is a multiple of six and one or two
fours.
"""


@dataclass(frozen=True)
class Blocking:
    """A register block: `rows` rows of `vectors` vectors of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def strip(self) -> int:
        return self.vectors * self.lanes

    def bands(self, m: int) -> list[Band]:
        """The bands of blocks that cover `m` rows, of which this block is the first."""
        rest = m % self.rows
        while rest % FOUR:
            rest += self.rows
        first = Band(0, m - rest, self, 0)
        return [first, Band(m - rest, m, replace(self, rows=FOUR), first.blocks)] if rest else [first]


class Band(NamedTuple):
    """Rows of sums from `first` to before `end` that blocks of one height cover, below so many others."""

    first: int
    end: int
    block: Blocking
    before: int

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return (self.end - self.first) // self.block.rows


class Place(NamedTuple):
    """Where a register block is: its first row and column."""

    band: Band
    row: Value
    column: Value

    def number(self, builder: LoopBuilder) -> Value:
        """The number of the block among those of the same columns."""
        band = self.band
        down = builder.binary(
            "arith.divui", builder.sub(self.row, builder.i64(band.first)), builder.i64(band.block.rows)
        )
        return builder.add(builder.i64(band.before), down)


def blocking(target: CpuTarget, m: int, n: int, element: str) -> Blocking:
    """The largest block whose accumulators, one row of B's strip and one element of A fit the vector registers."""
    lanes = min(n, target.vector_bytes // types.byte_size(element))
    while n % lanes:
        lanes -= 1
    vectors = 1
    widest = 4 if target.vector_registers >= 32 else 2
    while vectors < widest and n % (2 * vectors * lanes) == 0:
        vectors *= 2
    if _takes_six(target, element) and vectors == widest and m % FOUR == 0 and m >= 2 * SIX:
        return Blocking(SIX, vectors, lanes)
    rows, most = 1, target.vector_registers * 3 // 4  # the compiler needs the rest
    while m % (2 * rows) == 0 and (2 * rows) * vectors + vectors + 1 <= most:
        rows *= 2
    return Blocking(rows, vectors, lanes)


def _takes_six(target: CpuTarget, element: str) -> bool:
    """Whether six rows of two vectors, one row of B's strip and one element of A take all registers but one.

    Two units that multiply and add in four cycles, or five as on Zen 2, need eight or ten independent sums; with eight,
    each delay is lost.
    """
    return target.vector_registers == 16 and "fma" in target.features and types.is_float(element)


def unrolled(target: CpuTarget, depth: int) -> int:
    """How many steps along K, a divisor of `depth`, one iteration of the innermost loop does, where units are elements.

    A step on 512-bit registers is so short that the loop's own instructions take units from the multiply-adds: four
    steps are 3 to 8 % faster for float32 on Granite Rapids. They gain nothing with AVX2, and lose 5 % with VDPBF16PS.
    """
    return (
        math.gcd(depth, UNROLLED) if target.vector_bytes == 64 and target.triple.startswith("x86_64") else 1
    )

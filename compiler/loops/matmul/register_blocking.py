"""How many accumulators of a dot stay in registers at a time, and how many steps along K follow without a branch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.target import CpuTarget

UNROLLED = 4
"""Most steps along K in one iteration of the innermost loop."""


@dataclass(frozen=True)
class Blocking:
    """A register block: `rows` rows of `vectors` vectors of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def strip(self) -> int:
        return self.vectors * self.lanes


def blocking(target: CpuTarget, m: int, n: int, element: str) -> Blocking:
    """The largest block whose accumulators, one row of B's strip and one element of A fit the vector registers."""
    lanes = min(n, target.vector_bytes // types.byte_size(element))
    while n % lanes:
        lanes -= 1
    vectors = 1
    widest = 4 if target.vector_registers >= 32 else 2
    while vectors < widest and n % (2 * vectors * lanes) == 0:
        vectors *= 2
    rows, most = 1, target.vector_registers * 3 // 4  # the compiler needs the rest
    while m % (2 * rows) == 0 and (2 * rows) * vectors + vectors + 1 <= most:
        rows *= 2
    return Blocking(rows, vectors, lanes)


def unrolled(target: CpuTarget, depth: int) -> int:
    """How many steps along K, a divisor of `depth`, one iteration of the innermost loop does, where units are elements.

    A step on 512-bit registers is so short that the loop's own instructions take units from the multiply-adds: four
    steps are 3 to 8 % faster for float32 on Granite Rapids. They gain nothing with AVX2, and lose 5 % with VDPBF16PS.
    """
    return (
        math.gcd(depth, UNROLLED) if target.vector_bytes == 64 and target.triple.startswith("x86_64") else 1
    )

"""How many accumulators of a dot stay in registers at a time."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.records import dataclass


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

"""Where the buffers of a kernel are, and when they are in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from triton_porting_kit.compiler.loops.ir.program import Program

from .lifetimes import Lifetime


@dataclass(frozen=True)
class Placed:
    """A buffer in its place: bytes from the start of its memory."""

    lifetime: Lifetime
    address: int

    @property
    def end(self) -> int:
        return self.address + self.lifetime.bytes


@dataclass
class Plan:
    """Where the buffers of a kernel are. `program`: the kernel as it was when they were placed."""

    program: Program
    buffers: list[Placed] = field(default_factory=list)
    shares: bool = False
    """Whether what vector code keeps begins where its memory does, and not behind the buffers (see `sharing`)."""

    @property
    def kernel(self) -> str:
        return self.program.name

    def used(self, memory: str, *, aligned: int = 1) -> int:
        """Bytes of a memory up to the end of the last buffer, rounded up."""
        ends = (placed.end for placed in self.buffers if placed.lifetime.memory == memory)
        return -(-max(ends, default=0) // aligned) * aligned

    def live(self, memory: str) -> int:
        """The largest sum of bytes in use at one time: no plan takes less."""
        return most_live([placed.lifetime for placed in self.buffers if placed.lifetime.memory == memory])


def most_live(found: Iterable[Lifetime]) -> int:
    """The largest sum of the bytes of lifetimes at one time."""
    events = sorted(
        event for life in found for event in ((life.first, 1, life.bytes), (life.last, 2, -life.bytes))
    )
    total = largest = 0
    for _, _, change in events:
        total += change
        largest = max(largest, total)
    return largest

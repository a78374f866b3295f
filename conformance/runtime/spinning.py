"""A kernel that keeps the device busy for as long as a check likes, and then says so in memory."""

from __future__ import annotations

import functools
import time
from typing import Any

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.memory import MemoryAccess

# A linear congruential generator: each turn needs the one before, and no compiler knows a shorter way. The loop's
# bounds are 64-bit arguments whose count is not known to the compiler.
SPIN = """
def spin(O, turns, mark):
    x = turns.to(tl.int64)
    for i in range(turns):
        x = (x * 6364136223846793005 + 1442695040888963407) ^ (x >> 17)
    tl.store(O + 1, x)
    tl.store(O, mark.to(tl.int64))
"""

ODD = 3
"""Added to counts so that none is a multiple of 16, for which kernels are specialised."""


def spin(out: Any, turns: int, mark: int) -> None:
    """Launch, on the current stream, a program that takes `turns` turns and then stores `mark` in ``out[0]``.

    `out`: two 64-bit integers. `mark`: odd, not 1.
    """
    make_kernel(SPIN)[(1,)](out, turns - turns % 16 + ODD, mark)


def turns_for(context: Context, milliseconds: float) -> int:
    """How many turns take at least that long on this device."""
    return int(max(1.0, milliseconds / _milliseconds_per_turn(context.memory))) + 1


@functools.cache
def _milliseconds_per_turn(memory: MemoryAccess) -> float:
    block = memory.allocate(64)
    out = _Words(block)
    spin(out, 16, 5)
    memory.synchronize()
    turns = 1000
    while True:
        start = time.perf_counter()
        spin(out, turns, 5)
        memory.synchronize()
        elapsed = (time.perf_counter() - start) * 1000
        if elapsed > 10 or turns > 1 << 34:
            return elapsed / turns
        turns *= 4


class _Words:
    """A block of memory as 64-bit integers."""

    dtype = "int64"

    def __init__(self, block: Any) -> None:
        self._block = block

    def data_ptr(self) -> int:
        return int(self._block.address)

"""A kernel that keeps the device busy for a given time, and then stores a mark in memory."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.memory import Block, MemoryAccess

# A linear congruential generator: each iteration depends on the one before, and no compiler can shorten it. The number
# of iterations is a 64-bit argument that the compiler does not know.
SPIN = """
def spin(O, turns, mark):
    x = turns.to(tl.int64)
    for i in range(turns):
        x = (x * 6364136223846793005 + 1442695040888963407) ^ (x >> 17)
    tl.store(O + 1, x)
    tl.store(O, mark.to(tl.int64))
"""

SLOW = 15.0
"""The run time, in milliseconds, of a kernel that other work has to wait for."""

P = ParamSpec("P")

_PATIENCE = 10.0
"""The number of seconds to wait for a kernel's mark."""

ODD = 3
"""Added to counts so that none is a multiple of 16, for which Triton specialises kernels."""


def spin(out: Any, turns: int, mark: int) -> None:
    """Launch, on the current stream, a program that runs `turns` iterations and then stores `mark` in ``out[0]``.

    `out`: two 64-bit integers. `mark`: odd, not 1.
    """
    make_kernel(SPIN)[(1,)](out, turns - turns % 16 + ODD, mark)


def at_two_paces(
    body: Callable[Concatenate[Context, float, P], None],
) -> Callable[Concatenate[Context, P], None]:
    """Run a check that needs a slow kernel twice, with `SLOW` and with eight times as many milliseconds.

    On a busy machine, the first run may be too short to reveal missing synchronization.
    """

    @functools.wraps(body)
    def twice(context: Context, /, *args: P.args, **named: P.kwargs) -> None:
        for pace in (SLOW, 8 * SLOW):
            body(context, pace, *args, **named)

    return twice


def turns_for(context: Context, milliseconds: float) -> int:
    """The number of iterations that take at least this long on this device."""
    return int(max(1.0, milliseconds / _milliseconds_per_turn(context.memory))) + 1


@functools.cache
def _milliseconds_per_turn(memory: MemoryAccess) -> float:
    block = memory.allocate(64)
    _milliseconds(memory, block, 16)
    turns, least = 1000, 0.0
    while least < 5 and turns < 1 << 30:
        turns *= 4
        least = min(
            _milliseconds(memory, block, turns) for _ in range(3)
        )  # the minimum, because other load adds time
    return max(least, 1e-3) / turns


def _milliseconds(memory: MemoryAccess, block: Block, turns: int) -> float:
    """The time until the mark is in memory. It does not rely on `synchronize`, which checks test with this kernel."""
    block.write(np.zeros(64, np.uint8))
    memory.synchronize()
    start = time.perf_counter()
    spin(_Words(block), turns, ODD)
    memory.synchronize()
    while block.read()[0] != ODD and time.perf_counter() < start + _PATIENCE:
        pass
    return (time.perf_counter() - start) * 1000


class _Words:
    """A block of memory as 64-bit integers."""

    dtype = "int64"

    def __init__(self, block: Block) -> None:
        self._block = block

    def data_ptr(self) -> int:
        return int(self._block.address)

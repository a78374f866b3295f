"""Measures the time of a launch of an empty kernel."""

from __future__ import annotations

from typing import Any

import triton

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.performance.timing import time_of
from triton_porting_kit.conformance.types import KINDS

ARGUMENTS = 4


@triton.jit
def empty_kernel(pointer, first, second, factor):
    """Do nothing."""


def launch_latency(memory: MemoryAccess) -> dict[str, Any]:
    """Measure launches of a kernel with a pointer, two integers and a float."""
    array = GuardedArray(memory, KINDS["fp32"], (16,))

    def launch() -> None:
        empty_kernel[(1,)](array, 12345, 7, 0.5)

    def round_trip() -> None:
        launch()
        memory.synchronize()

    round_trip()
    many, one = time_of(launch, memory.synchronize), time_of(round_trip)
    return {
        "arguments": ARGUMENTS,
        "seconds": many.seconds,
        "spread": many.spread,
        "round_trip_seconds": one.seconds,
        "round_trip_spread": one.spread,
    }

"""Measures the speed of copies to the device, from it, and within it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.performance.timing import time_of

SIZES = (4 << 10, 1 << 20, 64 << 20)
"""The sizes of copies in bytes."""


def copies(memory: MemoryAccess) -> Iterator[dict[str, Any]]:
    """Measure copies in each direction and of each size."""
    for size in SIZES:
        content = np.zeros(size, np.uint8)
        source, target = memory.allocate(size), memory.allocate(size)
        source.write(content)
        calls: dict[str, Callable[[], Any]] = {
            "htod": partial(source.write, content),
            "dtoh": source.read,
            "dtod": partial(target.copy_from, source),
        }
        for direction, call in calls.items():
            call()
            memory.synchronize()
            found = time_of(call, memory.synchronize, budget=0.3)
            yield {
                "direction": direction,
                "bytes": size,
                "seconds": found.seconds,
                "spread": found.spread,
                "bytes_per_second": size / found.seconds,
            }

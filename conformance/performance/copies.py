"""How fast bytes are copied to the device, back, and within it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.performance.timing import time_of

SIZES = (4 << 10, 1 << 20, 64 << 20)
"""Bytes."""


def copies(memory: MemoryAccess) -> Iterator[dict[str, Any]]:
    """Each direction and size."""
    for size in SIZES:
        content = np.zeros(size, np.uint8)
        source, target = memory.allocate(size), memory.allocate(size)
        source.write(content)
        calls = {
            "htod": lambda block=source, data=content: block.write(data),
            "dtoh": source.read,
            "dtod": lambda block=target, other=source: block.copy_from(other),
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

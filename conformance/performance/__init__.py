"""Performance figures, which do not affect verdicts: `measure` times launches, copies and kernels of real size."""

from __future__ import annotations

import time
from typing import Any

from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.performance.copies import copies
from triton_porting_kit.conformance.performance.launches import launch_latency
from triton_porting_kit.conformance.performance.problems import kernels

SECONDS = 40.0
"""The default time for measurements, without creating operands and compiling kernels."""


def measure(session: Session, seconds: float = SECONDS) -> dict[str, Any]:
    """Measure times on the session's device in about `seconds`, as JSON types. A few calls of each are always made.

    ``launch``: `arguments`, `seconds` of a launch without waiting, its `spread`, `round_trip_seconds` of a launch with
    synchronization. ``copies``: `direction` (htod, dtoh, dtod), `bytes`, `seconds`, `spread`, `bytes_per_second`.
    ``kernels``: `kernel`, `shape`, `type`, `seconds`, `spread`, `numpy_seconds`, `torch_seconds` (None if there is no
    such peer), and `error` if the kernel could not be timed. Times are medians; spreads are interquartile ranges.
    """
    if not session.memory.runs:
        return {"launch": None, "copies": [], "kernels": []}
    end = time.monotonic() + seconds
    return {
        "launch": launch_latency(session.memory),
        "copies": list(copies(session.memory)),
        "kernels": list(kernels(session, end)),
    }

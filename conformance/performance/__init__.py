"""Figures of performance, with no verdict: `measure` times launches, copies and the kernels of real size."""

from __future__ import annotations

import time
from typing import Any

from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.performance.copies import copies
from triton_porting_kit.conformance.performance.launches import launch_latency
from triton_porting_kit.conformance.performance.problems import kernels

SECONDS = 40.0
"""Of timing; making operands, and kernels that are not compiled yet, come on top."""


def measure(session: Session, seconds: float = SECONDS) -> dict[str, Any]:
    """Times on the session's device, as JSON can hold them; in about `seconds`, or what a few calls of each take.

    ``launch``: `arguments`, `seconds` of a launch among many, its `spread`, `round_trip_seconds` of one that is waited
    for. ``copies``: `direction` (htod, dtoh, dtod), `bytes`, `seconds`, `spread`, `bytes_per_second`. ``kernels``:
    `kernel`, `shape`, `type`, `seconds`, `spread`, `numpy_seconds`, `torch_seconds` (None where there is no such
    peer), and `error` where the kernel could not be timed. Times are medians; spreads are between quartiles.
    """
    if not session.memory.runs:
        return {"launch": None, "copies": [], "kernels": []}
    end = time.monotonic() + seconds
    return {
        "launch": launch_latency(session.memory),
        "copies": list(copies(session.memory)),
        "kernels": list(kernels(session, end)),
    }

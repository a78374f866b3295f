"""The time that ranks take on chips joined by links: a simulation of events. docs/distributed.md describes it."""

from __future__ import annotations

from triton_porting_kit.distributed.model.timing.running import Timed, time_ranks

__all__ = ["Timed", "time_ranks"]

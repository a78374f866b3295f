"""A trace in the JSON of Chrome's tracing, which Perfetto opens: a process for each core, a row for each unit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from triton_porting_kit.chips.trace import CORE, MATRIX, Interval, Launch, Trace

_LAUNCHES = 0
"""The process whose one row has the launches; that of core c is c + 1."""


def perfetto(trace: Trace) -> str:
    """The JSON text. Times are microseconds of the chip's clock."""
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": [*_events(trace)]}, separators=(",", ":"))


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    yield _name("process", _LAUNCHES, 0, f"{trace.chip}: launches")
    for core in range(trace.cores):
        yield _name("process", core + 1, 0, f"core {core}")
        for unit, name in enumerate(trace.units):
            yield _name("thread", core + 1, unit, name)
    for launch in trace.launches:
        start, period = launch.start / 1e3, 1 / trace.megahertz
        about = {"programs": launch.programs, "cycles": launch.cycles, "cut": launch.cut}
        yield _span(launch.kernel, _LAUNCHES, 0, start, launch.cycles * period, about)
        for each in launch.intervals:
            yield _span(
                label(trace, each),
                each.core + 1,
                each.unit,
                start + each.start * period,
                (each.end - each.start) * period,
                _about(launch, each),
            )


def label(trace: Trace, interval: Interval) -> str:
    """What an interval is: ``global -> left``, ``product``, ``work``."""
    if interval.unit in (CORE, MATRIX):
        return "work" if interval.unit == CORE else "product"
    if interval.source == interval.target:
        return f"fill {trace.memories[interval.target]}"
    return f"{trace.memories[interval.source]} -> {trace.memories[interval.target]}"


def _about(launch: Launch, interval: Interval) -> dict[str, Any]:
    about: dict[str, Any] = {"kernel": launch.kernel, "cycles": interval.end - interval.start}
    if interval.line:
        about["line"] = interval.line
    if interval.bytes:
        about["bytes"] = interval.bytes
    return about


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": f"{what}_name", "pid": process, "tid": thread, "args": {"name": name}}


def _span(
    name: str, process: int, thread: int, start: float, duration: float, about: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration, "args": about,
    }  # fmt: skip

"""A profile as one HTML page that needs nothing else: a table by kernel, a roofline plot, a timeline of each launch."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triton_porting_kit.chips.perfetto import label
from triton_porting_kit.chips.trace import Launch, Trace, by_kernel

_PAGE = Path(__file__).with_name("page.html")
_MOST_LAUNCHES = 24
"""Launches that have a timeline: those that took longest of each kernel come first."""
_MOST_INTERVALS = 20_000
"""Of a launch: the first ones."""


def page(trace: Trace) -> str:
    """The text of the page."""
    data = {
        "chip": trace.chip,
        "megahertz": trace.megahertz,
        "cores": trace.cores,
        "units": trace.units,
        "memories": trace.memories,
        "bytesPerCycle": trace.bytes_per_cycle,
        "launchCount": len(trace.launches),
        "kernels": [asdict(kernel) for kernel in by_kernel(trace)],
        "launches": [_launch(trace, launch) for launch in _chosen(trace)],
    }
    # Inside of a script, only these characters could end it.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
    return _PAGE.read_text().replace("{{data}}", text.replace("&", "\\u0026"))


def _chosen(trace: Trace) -> list[Launch]:
    """Of each kernel in turn, the launch that took longest of those that are left."""
    queues: dict[str, list[Launch]] = {}
    for launch in sorted(trace.launches, key=lambda each: each.cycles):
        queues.setdefault(launch.kernel, []).append(launch)
    chosen: list[Launch] = []
    while any(queues.values()) and len(chosen) < _MOST_LAUNCHES:
        chosen += [queue.pop() for queue in queues.values() if queue]
    return sorted(chosen[:_MOST_LAUNCHES], key=lambda each: each.start)


def _launch(trace: Trace, launch: Launch) -> dict[str, Any]:
    shown = sorted(launch.intervals, key=lambda each: each.start)[:_MOST_INTERVALS]
    labels = sorted({label(trace, each) for each in shown})
    return {
        "kernel": launch.kernel,
        "programs": launch.programs,
        "start": launch.start,
        "cycles": launch.cycles,
        "cut": launch.cut or len(shown) < len(launch.intervals),
        "labels": labels,
        "intervals": [
            [
                each.core,
                each.unit,
                each.line,
                round(each.start, 2),
                round(each.end, 2),
                round(each.bytes),
                labels.index(label(trace, each)),
            ]
            for each in shown
        ],
    }

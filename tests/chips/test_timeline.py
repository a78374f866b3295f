"""Timelines as pictures: a bar for each command, where and as long as the trace says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from test_trace import LINES

from triton_porting_kit.chips.timeline import longest, timeline
from triton_porting_kit.chips.trace import parse

SVG = "{http://www.w3.org/2000/svg}"


def test_every_kernel_s_longest_launch_is_drawn() -> None:
    trace = parse(LINES.splitlines())
    found = longest(trace)
    assert set(found) == {launch.kernel for launch in trace.launches}
    for kernel, launch in found.items():
        assert launch.cycles == max(each.cycles for each in trace.launches if each.kernel == kernel)


def test_bars_lie_in_proportion_to_time() -> None:
    trace = parse(LINES.splitlines())
    for launch in longest(trace).values():
        drawn = ElementTree.fromstring(timeline(trace, launch))
        bars = [bar for bar in drawn.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
        assert len(bars) == len(launch.intervals)
        ordered = sorted(launch.intervals, key=lambda each: each.start)
        for bar, each in zip(bars, ordered, strict=True):
            assert (float(bar.get("x", "")) - 120) / 900 == pytest.approx(
                each.start / launch.cycles, abs=1e-3
            )
            assert float(bar.get("width", "")) <= 900 * (each.end - each.start) / launch.cycles + 0.4
        assert len({bar.get("y") for bar in bars}) == len({(each.core, each.unit) for each in ordered})


def test_names_are_escaped() -> None:
    trace = parse(LINES.splitlines())
    launch = trace.launches[0]
    launch.kernel = "<script>"
    assert not re.search("<script>", timeline(trace, launch))

"""Traces of simulated chips: what is read, summed up, and written for Perfetto and as a page."""

from __future__ import annotations

import json
import re

import pytest

from triton_porting_kit.chips.page import page
from triton_porting_kit.chips.perfetto import perfetto
from triton_porting_kit.chips.trace import Interval, UnitTotals, by_kernel, parse
from triton_porting_kit.errors import TraceError

LINES = """\
chip tiny 2000 2 3
memory global 100
memory near 400
launch first 8 5000 1000 0
unit 0 0 0 0 100 0 5
unit 0 1 2 0 600 50 300
unit 0 2 3 20000 400 10 70
unit 1 0 0 0 100 0 0
unit 1 1 2 0 200 0 0
moved 0 20000
moved 1 20000
needed 12800
did 0 2 7 0 200 10000 0 1
did 0 2 7 150 400 10000 0 1
did 0 1 9 100 700 0 0 0
did 1 1 9 0 200 0 0 0
did 1 0 0 300 400 0 0 0
launch second</script><b> 1 6000 500 1
unit 0 0 0 0 50 0 0
moved 0 0
did 0 2 0 0 1 64 1 1
"""


def test_it_says_what_is_written() -> None:
    trace = parse(LINES.splitlines())
    assert (trace.chip, trace.megahertz, trace.cores, trace.units) == (
        "tiny",
        2000,
        2,
        ("core", "matrix", "dma0"),
    )
    assert (trace.memories, trace.bytes_per_cycle) == (("global", "near"), (100, 400))
    first, second = trace.launches
    assert (first.kernel, first.programs, first.start, first.cycles, first.cut) == (
        "first",
        8,
        5000,
        1000,
        False,
    )
    assert first.units[0, 1] == UnitTotals(commands=2, bytes=0, busy=600, ordered=50, waited=300)
    assert (first.moved, first.needed) == ({0: 20000, 1: 20000}, 12800)
    assert first.intervals[1] == Interval(0, 2, 7, 150, 400, 10000, 0, 1)
    assert second.cut


def test_totals_of_kernels() -> None:
    first, second = by_kernel(parse(LINES.splitlines()))
    assert (first.kernel, first.launches, first.milliseconds) == ("first", 1, 0.0005)
    # Of 2 cores and 1000 cycles.
    assert (first.matrix, first.core, first.dma) == (0.4, 0.1, 0.2)
    assert (first.global_bytes, first.bandwidth, first.intensity) == (20000, 0.2, 0.04)
    assert (first.needed_bytes, second.needed_bytes) == (12800, 0)
    # Transfers take 400 cycles of core 0; the products overlap with 300 of them, and those of core 1 with none.
    assert first.overlap == 300 / 400
    assert (first.stall, first.stalled) == ("matrix", 0.15)
    assert (second.milliseconds, second.matrix, second.core) == (0.00025, 0, 0.05)
    assert (second.intensity, second.overlap, second.stall) == (0, 0, "")


def test_perfetto_gets_a_row_for_each_unit() -> None:
    events = json.loads(perfetto(parse(LINES.splitlines())))["traceEvents"]
    rows = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    assert rows == {
        (core + 1, unit): name for core in (0, 1) for unit, name in enumerate(("core", "matrix", "dma0"))
    }
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 2 + 6
    (launch,) = (event for event in spans if event["name"] == "first")
    assert (launch["pid"], launch["ts"], launch["dur"]) == (0, 5, 0.5)
    (transfer,) = (event for event in spans if event["ts"] == 5 + 0.075)
    assert (transfer["name"], transfer["pid"], transfer["tid"], transfer["dur"]) == (
        "global -> near",
        1,
        2,
        0.125,
    )
    assert transfer["args"] == {"kernel": "first", "cycles": 250, "line": 7, "bytes": 10000}
    assert {event["name"] for event in spans[1:]} >= {"product", "work", "fill near"}


def test_the_page_holds_the_data_and_nothing_of_it_is_markup() -> None:
    text = page(parse(LINES.splitlines()))
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert "<" not in data
    found = json.loads(data)
    assert [kernel["kernel"] for kernel in found["kernels"]] == ["first", "second</script><b>"]
    first = found["launches"][0]
    assert first["labels"] == ["global -> near", "product", "work"]
    assert len(first["intervals"]) == 5
    assert [0, 2, 7, 150, 400, 10000, 0] in first["intervals"]
    assert "http://" not in text
    assert "https://" not in text


def test_of_many_launches_the_longest_of_each_kernel_are_shown() -> None:
    lines = ["chip tiny 1000 1 3", "memory global 1"]
    for number in range(100):
        lines.append(f"launch {'often' if number else 'once'} 1 {number} {1000 - number} 0")
    (data,) = re.findall(r"json\">(.*?)</script>", page(parse(lines)), re.DOTALL)
    shown = json.loads(data)["launches"]
    assert [each["start"] for each in shown] == [*range(24)]
    assert shown[0]["kernel"] == "once"


def test_the_last_chip_of_a_file_is_read() -> None:
    trace = parse([*LINES.splitlines(), "chip other 1000 1 2", "memory global 1"])
    assert (trace.chip, trace.launches) == ("other", [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        (
            "launch first 8 5000 1000 0",
            "mine:1: 'launch first 8 5000 1000 0' is no line of a trace: the first line",
        ),
        ("chip tiny 2000 2 3\nsomething", "mine:2: 'something' is no line of a trace: unknown word"),
        ("chip tiny 2000 2 3\nunit 0 1 2 0 600 50 300", "mine:2: .* is no line of a trace"),
        ("chip tiny fast 2 3", "mine:1: .* is no line of a trace"),
    ],
)
def test_other_files_are_refused(text: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        parse(text.splitlines(), "mine")

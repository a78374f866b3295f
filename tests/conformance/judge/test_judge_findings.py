"""Findings of times and errors, from made-up evidence."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.conformance.judge.findings import findings, time_of, verdict

MS = 1e-3


def evidence(walls: list[float], windows: list[float], **other: Any) -> dict[str, Any]:
    calls = [
        {
            "phase": "timed", "case": "c", "failure": "", "kind": "", "comparisons": [], "wall": wall,
            "device": None, "window": window, "operators": [],
        }
        for wall, window in zip(walls, windows, strict=True)
    ]  # fmt: skip
    return {
        "opened": {}, "calls": calls, "mute": [], "recorded": [], "control": [1 * MS] * 16, "notes": [],
        "allowed_operators": [], "work": {"bytes": 1e6, "flops": 0.0}, "roof": {"bandwidth": 1e9}, **other,
    }  # fmt: skip


def codes(found: dict[str, Any]) -> list[str]:
    return [item["code"] for item in findings(found)]


def test_a_time_that_adds_up() -> None:
    found = evidence([10 * MS] * 16, [11.5 * MS] * 16)
    assert codes(found) == []
    assert verdict(findings(found)) == "right"
    assert time_of(found)["seconds"] == pytest.approx(10 * MS)


def test_time_that_is_not_accounted_for() -> None:
    assert codes(evidence([2 * MS] * 16, [21 * MS] * 16)) == ["hidden"]


def test_one_that_lies_in_most_calls_has_its_true_time() -> None:
    """Half of the calls are reported truly: too many for the lower quartile, and they are the time."""
    found = evidence([2 * MS] * 8 + [20 * MS] * 8, [21 * MS] * 16)
    assert time_of(found)["seconds"] == pytest.approx(20 * MS)


def test_calls_that_others_disturb_are_not_held_against_it() -> None:
    found = evidence([10 * MS] * 16, [11 * MS] * 8 + [40 * MS] * 8)
    assert codes(found) == []


@pytest.mark.parametrize(
    ("first", "repeated", "expected"),
    [(4, 0, []), (0, 9, ["streams"]), (4, 5, []), (4, 7, ["streams"]), (4, None, ["streams"]), (0, None, [])],
)
def test_work_after_the_last_event(first: int, repeated: int | None, expected: list[str]) -> None:
    """Four calls, of which `first` leave the device busy, and twelve that repeat them, if they were repeated."""
    found = evidence([10 * MS] * 16, [11 * MS] * 16)
    for call in found["calls"]:
        call["device"] = 9 * MS
    for call in found["calls"][:first] + found["calls"][4 : 4 + (repeated or 0)]:
        call["device"] = 1 * MS
    if repeated is None:
        del found["calls"][4:]
    else:
        found["repeated_from"] = 4
    assert codes(found) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.9 * MS, []), (0.4 * MS, ["roof"])])
def test_the_roof(seconds: float, expected: list[str]) -> None:
    """A megabyte at a gigabyte per second takes a millisecond; half of that is beyond doubt."""
    assert codes(evidence([seconds] * 16, [seconds + 1 * MS] * 16)) == expected


@pytest.mark.parametrize("wall", [-1.0, 1.0])
def test_times_that_cannot_be(wall: float) -> None:
    assert "hidden" in codes(evidence([wall] * 16, [11 * MS] * 16))


@pytest.mark.parametrize(
    ("likes", "expected"),
    [([0.9] + [0.1] * 23, []), ([0.9], []), ([0.9, 0.8], ["lowered"]), ([0.9] * 3 + [0.1] * 21, ["lowered"])],
)
def test_errors_that_look_lowered(likes: list[float], expected: list[str]) -> None:
    """One call may look so by chance; a kernel that rounds its operands does so in more of them."""
    found = evidence([10 * MS] * len(likes), [11 * MS] * len(likes))
    for call, like in zip(found["calls"], likes, strict=True):
        call["comparisons"] = [{"differ": 0, "lowered": {"bf16": like}}]
    assert codes(found) == expected


def recorded(**other: Any) -> dict[str, Any]:
    return {
        "launches": 2, "made": 2, "why_not": "", "values": 0, "numbers": 0, "integers": 0, "derived": False,
        "foreign": [{"kernel": "0: k", "argument": "x", "foreign": 9, "elements": 9}],
        "scalars": [{"kernel": "0: k", "argument": "n", "value": "1.5"}], **other,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([recorded()] * 2, []),
        ([recorded(why_not="it is damaged")], ["host"]),
        ([recorded(), recorded(launches=1)], ["host"]),
        ([recorded(launches=0, made=0)] * 2, ["host"]),
        ([recorded(values=17)] * 2, ["host"]),
        ([recorded(values=16)] * 2, []),
        ([recorded(values=17), recorded()], []),  # what a former call left, or a table
        ([recorded(numbers=1)] * 2, ["host"]),
        ([recorded(numbers=16, derived=True)] * 2, []),
        ([recorded(numbers=17, derived=True)] * 2, ["host"]),
        ([recorded(integers=16)] * 2, []),
        ([recorded(integers=17)] * 2, ["host"]),
    ],
)
def test_what_was_recorded(calls: list[dict[str, Any]], expected: list[str]) -> None:
    assert codes(evidence([10 * MS] * 16, [11 * MS] * 16, records=True, recorded=calls)) == expected


def test_a_driver_that_does_not_record() -> None:
    calls = [recorded(launches=0, made=0)] * 2
    assert codes(evidence([10 * MS] * 16, [11 * MS] * 16, recorded=calls)) == []


def test_verdicts() -> None:
    assert verdict([{"code": "wrong"}, {"code": "error"}]) == "wrong"
    assert verdict([{"code": "wrong"}, {"code": "torch"}]) == "flagged"

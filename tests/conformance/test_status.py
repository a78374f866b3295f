"""Statuses and verdicts are what the evidence says."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.conformance.status import BAD, Status, Verdict, declared, outcome, verdict

HOLDS: dict[str, Any] = {"kind": "expectation", "what": "it is", "holds": True}
FAILS = {"kind": "expectation", "what": "it is", "holds": False}
RIGHT = {"kind": "comparison", "what": "out", "elements": 4, "differ": 0}
WRONG = {"kind": "comparison", "what": "out", "elements": 4, "differ": 1}
NOTHING = {"kind": "comparison", "what": "out", "elements": 0, "differ": 0}
BINARY = {"kind": "compiled", "what": "kernel", "bytes": 100}
EMPTY_BINARY = {"kind": "compiled", "what": "kernel", "bytes": 0}
REFUSED = {"kind": "error", "stage": "compiled: ttgir", "type": "CompilationError", "message": "no"}
OUT_OF_RESOURCES = {"kind": "error", "stage": "loaded", "type": "OutOfResources", "message": "no"}
THREW = {"kind": "error", "stage": "launched", "type": "RuntimeError", "message": "no"}
CRASHED = {"kind": "process", "signal": 11, "stage": "launched", "message": "SIGSEGV"}
HUNG = {"kind": "process", "timeout": 60, "stage": "launched", "message": "60 s"}
HARNESS = {"kind": "harness", "stage": "check", "type": "KeyError", "message": "x"}


@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        ([HOLDS], Status.PASS),
        ([RIGHT, HOLDS], Status.PASS),
        ([BINARY], Status.PASS),
        ([], Status.HARNESS_ERROR),
        ([HARNESS, HOLDS], Status.HARNESS_ERROR),
        ([RIGHT, WRONG], Status.FAIL),
        ([NOTHING], Status.FAIL),
        ([EMPTY_BINARY], Status.FAIL),
        ([HOLDS, FAILS], Status.FAIL),
        ([RIGHT, THREW], Status.FAIL),
        ([RIGHT, CRASHED], Status.CRASH),
        ([HUNG], Status.TIMEOUT),
    ],
)
def test_outcome(evidence: list[dict[str, Any]], status: Status) -> None:
    assert outcome(evidence) is status


@pytest.mark.parametrize(
    ("evidence", "listing", "status"),
    [
        ([REFUSED], "unsupported", Status.UNSUPPORTED),
        ([OUT_OF_RESOURCES], "unsupported", Status.UNSUPPORTED),
        ([RIGHT], "unsupported", Status.UNEXPECTED_PASS),
        ([THREW], "unsupported", Status.FAIL),
        ([WRONG], "unsupported", Status.FAIL),
        ([RIGHT, REFUSED, WRONG], "unsupported", Status.FAIL),
        ([CRASHED], "unsupported", Status.CRASH),
        ([HUNG], "expected_failures", Status.EXPECTED_FAILURE),
        ([CRASHED], "expected_failures", Status.EXPECTED_FAILURE),
        ([RIGHT], "expected_failures", Status.UNEXPECTED_PASS),
        ([WRONG], "waivers", Status.WAIVED),
        ([RIGHT], "waivers", Status.PASS),
        ([], "waivers", Status.HARNESS_ERROR),
        ([], "expected_failures", Status.HARNESS_ERROR),
    ],
)
def test_declared(evidence: list[dict[str, Any]], listing: str, status: Status) -> None:
    assert declared(evidence, listing) is status


@pytest.mark.parametrize(
    ("statuses", "found"),
    [
        ({}, Verdict.NOT_RUN),
        ({"a": Status.PASS, "b": Status.PASS}, Verdict.PASS),
        ({"a": Status.PASS}, Verdict.INCOMPLETE),
        ({"a": Status.PASS, "other": Status.PASS}, Verdict.INCOMPLETE),
        ({"a": Status.PASS, "b": Status.PASS, "other": Status.FAIL}, Verdict.FAIL),
        ({"a": Status.PASS, "b": Status.UNSUPPORTED}, Verdict.CONDITIONAL),
        ({"a": Status.PASS, "b": Status.WAIVED}, Verdict.CONDITIONAL),
        ({"a": Status.PASS, "b": Status.EXPECTED_FAILURE}, Verdict.EXPECTED),
        ({"a": Status.EXPECTED_FAILURE, "b": Status.EXPECTED_FAILURE}, Verdict.FAIL),
        ({"a": Status.PASS, "b": Status.EXPECTED_FAILURE, "c": Status.FAIL}, Verdict.FAIL),
        ({"a": Status.PASS, "b": Status.UNEXPECTED_PASS}, Verdict.PASS),
        ({"a": Status.UNSUPPORTED, "b": Status.UNSUPPORTED}, Verdict.FAIL),
        ({"a": Status.WAIVED, "b": Status.UNSUPPORTED}, Verdict.FAIL),
        ({"a": Status.UNSUPPORTED, "b": Status.UNEXPECTED_PASS}, Verdict.CONDITIONAL),
    ],
)
def test_verdict(statuses: dict[str, Status], found: Verdict) -> None:
    assert verdict(statuses, ["a", "b"]) is found


@pytest.mark.parametrize("status", sorted(BAD))
def test_bad_statuses_fail_a_level(status: Status) -> None:
    assert verdict({"a": Status.PASS, "b": status}, ["a", "b"]) is Verdict.FAIL


def test_a_level_without_mandatory_checks_never_passes() -> None:
    assert verdict({"a": Status.PASS}, []) is Verdict.INCOMPLETE

"""The status of a check and the verdict of a level. This is the only module that computes them from evidence.

An item of evidence is a dictionary of JSON types, of one of these kinds:

- ``comparison``: `elements` were compared, `differ` of them were wrong. ``expectation``: `holds`, or does not.
- ``compiled``: a kernel became a binary of `bytes`.
- ``fallbacks``: operators that a torch device left to the CPU, with `counts`, which affect no status.
- ``upstream``: torch itself fails in the same way without the backend, as `message` shows; or, of published kernels,
  the package is at fault, as `what` and `message` say.
- ``times``: `seconds` beside those of torch, `eager`. ``caught``: compile errors, in `messages`, that a package caught.
  ``finding``: a published kernel left its arguments, as `message` shows. These affect no status.
- ``error``: an exception in a `stage`. ``process``: the worker process died (`signal` or `exit`), or was ended after
  a check's limit (`timeout`, seconds), in a `stage`. ``harness``: the suite itself failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

Evidence = Mapping[str, Any]


class Status(StrEnum):
    """The status of a check."""

    PASS = "pass"
    FAIL = "fail"
    CRASH = "crash"
    TIMEOUT = "timeout"
    HARNESS_ERROR = "harness error"
    UNSUPPORTED = "unsupported"
    EXPECTED_FAILURE = "expected failure"
    UNEXPECTED_PASS = "unexpected pass"
    WAIVED = "waived"


BAD = frozenset({Status.FAIL, Status.CRASH, Status.TIMEOUT, Status.HARNESS_ERROR})
"""The statuses that make a run fail."""


class Verdict(StrEnum):
    """The verdict of a level."""

    PASS = "pass"
    """Every mandatory check passed."""
    CONDITIONAL = "pass with exceptions"
    """Every mandatory check passed, or is declared unsupported and was refused cleanly, or is waived."""
    EXPECTED = "fail as expected"
    """Mandatory checks fail, all of them declared as expected failures."""
    FAIL = "fail"
    INCOMPLETE = "incomplete"
    """Nothing failed, but mandatory checks were not run."""
    NOT_RUN = "not run"


def outcome(evidence: Sequence[Evidence]) -> Status:
    """The status according to the evidence alone: pass, fail, crash, timeout or harness error."""
    kinds = {item["kind"] for item in evidence}
    if "harness" in kinds:
        return Status.HARNESS_ERROR
    for item in evidence:
        if item["kind"] == "process":
            return Status.TIMEOUT if item.get("timeout") else Status.CRASH
    if "error" in kinds or not all(holds(item) for item in evidence if item["kind"] not in _NEUTRAL):
        return Status.FAIL
    if "upstream" in kinds:
        return Status.WAIVED
    proofs = {"comparison", "expectation", "compiled"}
    return Status.PASS if kinds & proofs else Status.HARNESS_ERROR


_NEUTRAL = frozenset({"upstream", "fallbacks", "times", "caught", "finding"})
"""Kinds that neither hold nor fail."""

_REFUSALS = frozenset({"NotImplementedError", "OutOfResources"})
"""Exceptions that mean "not supported on this chip" at any stage: Python's, and Triton's for on-chip resources."""


def holds(item: Evidence) -> bool:
    """Whether an item of evidence supports a pass."""
    match item["kind"]:
        case "comparison":
            return bool(item["differ"] == 0 and item["elements"] > 0)
        case "expectation":
            return item["holds"] is True
        case "compiled":
            return bool(item["bytes"] > 0)
    return False


def refused_cleanly(evidence: Sequence[Evidence]) -> bool:
    """Whether a check ended in an exception that means "not supported": one of the compiler, or of `_REFUSALS`."""
    errors = [item for item in evidence if item["kind"] == "error"]
    others = [item for item in evidence if item["kind"] != "error"]
    return (
        bool(errors)
        and all(item["stage"].startswith("compiled") or item["type"] in _REFUSALS for item in errors)
        and all(holds(item) for item in others if item["kind"] not in _NEUTRAL)
    )


def declared(evidence: Sequence[Evidence], listing: str | None) -> Status:
    """The status of a check, from its evidence and the list of the profile that names it.

    `listing`: ``unsupported``, ``expected_failures``, ``waivers`` or None.
    """
    found = outcome(evidence)
    if listing is None or found in (Status.HARNESS_ERROR, Status.WAIVED):
        return found
    if listing == "unsupported":
        if found is Status.PASS:
            return Status.UNEXPECTED_PASS
        return Status.UNSUPPORTED if refused_cleanly(evidence) else found
    if listing == "expected_failures":
        return Status.UNEXPECTED_PASS if found is Status.PASS else Status.EXPECTED_FAILURE
    return found if found is Status.PASS else Status.WAIVED


def verdict(statuses: Mapping[str, Status], mandatory: Iterable[str]) -> Verdict:
    """The verdict of a level, from the statuses of its checks by name and the mandatory names."""
    if not statuses:
        return Verdict.NOT_RUN
    names = list(mandatory)
    found = [statuses[name] for name in names if name in statuses]
    if any(status in BAD for status in statuses.values()):
        return Verdict.FAIL
    if not names or len(found) < len(names):
        return Verdict.INCOMPLETE
    passed = {Status.PASS, Status.UNEXPECTED_PASS}
    if not any(status in passed for status in found):
        return Verdict.FAIL  # a backend that refuses everything proves nothing
    if Status.EXPECTED_FAILURE in found:
        return Verdict.EXPECTED
    return Verdict.PASS if all(status in passed for status in found) else Verdict.CONDITIONAL

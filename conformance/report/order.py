"""The order of statuses by badness."""

from __future__ import annotations

from triton_porting_kit.conformance.status import Status

_ORDER = (
    Status.PASS,
    Status.UNEXPECTED_PASS,
    Status.UNSUPPORTED,
    Status.WAIVED,
    Status.EXPECTED_FAILURE,
    Status.FAIL,
    Status.TIMEOUT,
    Status.CRASH,
    Status.HARNESS_ERROR,
)


def badness(status: Status) -> int:
    """0 for a pass; larger numbers are worse."""
    return _ORDER.index(status)

"""The CPU backend passes the checks of whole programs."""

from __future__ import annotations

import pytest
import triton  # noqa: F401

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.language.programs import CHECKS
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.sessions import open_session
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.trial import try_check


@pytest.mark.parametrize("check", tuple(CHECKS), ids=lambda check: check.name)
def test_passes(check: Check) -> None:
    record = try_check(check, open_session("cpu", Profile()))
    assert record.status is Status.PASS, f"{record.stage}: {record.message}"

"""One nursery for all tests: what it imports takes longer than a judgement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from judge_helpers import HAS_TORCH

from triton_porting_kit.conformance.judge import judging
from triton_porting_kit.conformance.judge.process import Nursery


@pytest.fixture(autouse=True)
def same_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge on the same inputs at each run, which `tpk judge` draws so that nobody knows them."""
    monkeypatch.setattr(judging.secrets, "randbits", lambda bits: 7)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery(torch=HAS_TORCH) as found:
        yield found

"""One nursery for all tests: what it imports takes longer than a judgement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from judge_helpers import HAS_TORCH

from triton_porting_kit.conformance.judge.process import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery(torch=HAS_TORCH) as found:
        yield found

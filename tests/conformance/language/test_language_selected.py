"""The CPU backend passes the fixed programs about addresses."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.language.addresses import SEEDS
from triton_porting_kit.conformance.stress.isolation import Isolated


@pytest.mark.parametrize("third", [0, *(pytest.param(later, marks=pytest.mark.slow) for later in (1, 2))])
def test_fixed_programs_pass(third: int) -> None:
    with Isolated("cpu") as worker:
        outcomes = {seed: worker.run(seed) for seed in SEEDS[third::3]}
    assert {seed: str(found) for seed, found in outcomes.items() if found.failed} == {}

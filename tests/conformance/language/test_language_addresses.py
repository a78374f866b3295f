"""The CPU backend passes the fixed programs about addresses."""

from __future__ import annotations

from triton_porting_kit.conformance.language.addresses import SEEDS
from triton_porting_kit.conformance.stress.isolation import Isolated


def test_fixed_programs_pass() -> None:
    with Isolated("cpu") as worker:
        outcomes = {seed: worker.run(seed) for seed in SEEDS}
    assert {seed: str(found) for seed, found in outcomes.items() if found.failed} == {}

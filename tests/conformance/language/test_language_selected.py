"""The CPU backend passes the fixed random programs."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.language import addresses, products
from triton_porting_kit.conformance.stress.checks import Selected
from triton_porting_kit.conformance.stress.isolation import Isolated


@pytest.mark.parametrize("selected", [addresses.CHECKS, products.CHECKS], ids=lambda found: found.group)
@pytest.mark.parametrize("eighth", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))])
def test_fixed_programs_pass(eighth: int, selected: Selected) -> None:
    with Isolated("cpu") as worker:
        outcomes = {seed: worker.run(seed) for seed in selected.seeds[eighth::8]}
    assert {seed: str(found) for seed, found in outcomes.items() if found.failed} == {}


def test_checks_are_found_by_name() -> None:
    first = next(iter(products.CHECKS))
    assert first.name == f"language/products/{products.NUMBERS[0]:04}"
    assert products.CHECKS.named(first.name) is first
    assert addresses.CHECKS.named(first.name) is None
    assert products.CHECKS.named("language/products/9999") is None

"""The fixed programs of the level `language` have every pair of features."""

from __future__ import annotations

from collections import Counter

import pytest
from stress_helpers import constructs, made

from triton_porting_kit.conformance.language.addresses import CHECKS, NUMBERS
from triton_porting_kit.conformance.stress import situations
from triton_porting_kit.conformance.stress.features import covering, features, pairs_of
from triton_porting_kit.conformance.stress.generator import ADDRESSES, generate
from triton_porting_kit.conformance.stress.program import Program
from triton_porting_kit.conformance.stress.situations import SITUATIONS, situation

pytestmark = pytest.mark.xdist_group("stress-generator")  # the programs are shared
LEAST = 5


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return first(300)


def first(count: int) -> list[Program]:
    return [made(ADDRESSES + number) for number in range(count)]


def uncovered(programs: list[Program]) -> set[tuple[str, str]]:
    """Pairs of features that a few programs have, but not two of the fixed ones."""
    found = pairs_of(made(seed) for seed in CHECKS.seeds)
    return {pair for pair, count in pairs_of(programs).items() if count >= LEAST and found[pair] < 2}


def test_the_fixed_programs_have_all_pairs_twice(programs: list[Program]) -> None:
    assert len(pairs_of(made(seed) for seed in CHECKS.seeds)) > 3000
    assert uncovered(programs) == set()


@pytest.mark.slow  # makes 1,500 programs
def test_the_fixed_programs_have_all_pairs_of_many_programs() -> None:
    """After a change of the generator take others."""
    programs = first(1500)
    missing = uncovered(programs)
    assert not missing, f"take {[p.seed - ADDRESSES for p in covering(programs, LEAST, 2)]} for NUMBERS"


def test_the_fixed_programs_are_checks() -> None:
    names = [check.name for check in CHECKS]
    assert names == [f"language/addresses/{number:04}" for number in NUMBERS]
    assert len(set(names)) == len(names) <= 220


def test_few_programs_cover(programs: list[Program]) -> None:
    some = programs[:200]
    chosen = covering(some, least=3)
    assert {pair for pair, count in pairs_of(some).items() if count > 2} <= pairs_of(chosen).keys()
    assert len(chosen) < len(some) / 2


def test_features_are_of_programs_about_addresses() -> None:
    plain = generate(0)
    assert features(plain) == frozenset()
    assert Counter(constructs(plain))


def test_situations_have_draws_of_their_own(monkeypatch: pytest.MonkeyPatch, programs: list[Program]) -> None:
    """Programs without one do not depend on what situations there are."""
    found = Counter(what for p in programs if (what := situation(p.seed)[1]) is not None)
    assert found.keys() == {what for what, _ in SITUATIONS}
    plain = [p for p in programs[:80] if situation(p.seed)[1] is None]
    monkeypatch.setattr(situations, "OFTEN", 0.0)
    assert [generate(p.seed) for p in plain] == plain

"""Scores, against figures from a table of Wilson's intervals and counts made by hand."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.mutants import sources, verdict
from triton_porting_kit.conformance.mutants.classes import CLASSES, class_of
from triton_porting_kit.conformance.mutants.mutation import PYTHON, Mutation
from triton_porting_kit.conformance.mutants.score import Proportion, Score
from triton_porting_kit.conformance.mutants.verdict import Verdict


def made(name: str, operator: str = "constant") -> Verdict:
    return Verdict(Mutation("compiler/x.py", PYTHON, operator, 0, 1, "2", 1, (1, 1)), name, "", 1.0)


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(part: int, whole: int, low: float, high: float) -> None:
    assert Proportion(part, whole).interval == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_what_counts() -> None:
    names = {
        verdict.CAUGHT: 12, verdict.STRESSED: 1, verdict.MISSED: 2, verdict.NOT_REACHED: 3,
        verdict.EQUIVALENT: 4, verdict.UNOBSERVED: 5,
    }  # fmt: skip
    score = Score([made(name) for name, count in names.items() for _ in range(count)])
    assert (score.levels.part, score.levels.whole) == (12, 18)
    assert (score.with_stress.part, score.with_stress.whole) == (13, 18)
    assert (score.reached.part, score.reached.whole) == (12, 15)
    assert (score.strict.part, score.strict.whole) == (12, 23)
    assert len(score.survivors) == 6


def test_by_operator() -> None:
    score = Score([made(verdict.CAUGHT), made(verdict.CAUGHT, "logic"), made(verdict.MISSED, "logic")])
    assert {name: (part.levels.part, part.levels.whole) for name, part in score.by("operator").items()} == {
        "constant": (1, 1),
        "logic": (1, 2),
    }


def test_verdicts_travel_as_json() -> None:
    found = Verdict(made(verdict.CAUGHT).mutation, verdict.CAUGHT, "-a\n+b", 1.5, "language/a", also=("b",))
    assert Verdict.from_json(found.to_json()) == found


def test_every_file_has_a_class() -> None:
    found = {path: class_of(path) for path in sources.files()}
    assert set(found.values()) == {name for name, _ in CLASSES}
    assert found["compiler/structured/masks.py"] == "mask"
    assert found["compiler/loops/tiles/access.py"] == "address"
    assert found["driver/host/native/pool.cpp"] == "host"

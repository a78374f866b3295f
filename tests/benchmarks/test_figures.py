"""Figures: bars, units, merging of separate runs, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Results, measured, merge, ratio, show, unmet
from benchmarks.timing import Samples

SPEED = Figure("kernels", "softmax", "torch / ours", 1, "x", 1.2, 1.1, 1.3, less=False, bar=1.1)


@pytest.mark.parametrize(
    ("less", "bar", "met"),
    [(False, 1.2, True), (False, 1.3, False), (True, 1.2, True), (True, 1.1, False), (True, None, None)],
)
def test_bars(less: bool, bar: float | None, met: bool | None) -> None:
    assert replace(SPEED, less=less, bar=bar).met is met


def test_unmet_are_those_with_a_bar_that_is_missed() -> None:
    assert unmet([SPEED, replace(SPEED, bar=2.0), replace(SPEED, bar=None)]) == [replace(SPEED, bar=2.0)]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00123, "s", "1.23 ms"),
        (45e-6, "s", "45.0 µs"),
        (2.5e-9, "s", "2.50 ns"),
        (-3e-7, "s", "-300 ns"),
        (0.0, "s", "0.00 ns"),
        (1.5, "x", "1.50"),
        (46.9e9, "B/s", "46.9 GB/s"),
        (1.86e12, "FLOP/s", "1.86 TFLOP/s"),
        (8 << 20, "B", "8.00 MiB"),
    ],
)
def test_units(value: float, unit: str, text: str) -> None:
    assert show(value, unit) == text.replace("x", "")


def test_ratio_is_of_medians_and_its_spread_of_neighbours() -> None:
    figure = ratio(Samples((2.0, 4.0, 6.0)), Samples((1.0, 2.0, 2.0)), "g", "n", "c", 1, 1.5)
    assert (figure.value, figure.low, figure.high, figure.met) == (2.0, 2.0, 2.5, True)


def test_rounds_count_by_their_median() -> None:
    rounds = [[replace(SPEED, value=value, low=value - 0.1)] for value in (1.0, 3.0, 1.5)]
    (merged,) = merge(rounds)
    assert (merged.value, merged.rounds) == (1.5, (1.0, 3.0, 1.5))
    assert merged.low == pytest.approx(1.4)


def test_results_are_completed_by_those_of_others() -> None:
    slow, new = replace(SPEED, name="slow", value=9.0), replace(SPEED, name="new")
    others = Results({"command": "all", "date": "then", "note": "?"}, (slow, replace(SPEED, value=0.1)))
    found = Results({"command": "some"}, (SPEED, new)).completed(others)
    assert found.figures == (slow, SPEED, new)
    assert found.about == {"command": "some", "others": {"command": "all", "date": "then"}}
    third = Results({"command": "few"}, ()).completed(replace(found, about={**found.about, "date": "now"}))
    assert third.about["others"] == {"date": "now", **found.about}


def test_one_round_stays_as_it_is() -> None:
    assert merge([[SPEED]]) == [SPEED]


def test_figures_of_samples_have_medians_and_quartiles() -> None:
    figure = measured(Samples((1.0, 2.0, 3.0, 4.0, 5.0)), "g", "n", "c", 2, bar=3.0)
    assert (figure.value, figure.low, figure.high, figure.met) == (3.0, 2.0, 4.0, True)


def test_files_give_back_what_was_written(tmp_path: Path) -> None:
    results = Results({"note": "none"}, (SPEED, measured(1.0, "memory", "m", "c", unit="B", bar=2.0)))
    results.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results
    assert results.find("kernels", "softmax", "torch / ours", 1) == SPEED
    assert results.find("kernels", "softmax", "torch / ours", 2) is None
    assert json.loads((tmp_path / "results.json").read_text())["figures"][0]["met"] is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": 1, "about": {}, "figures": []}',
        '{"format": 2, "about": {}, "figures": [{}]}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is no file of results"):
        Results.read(tmp_path / "x.json")

"""Which figures got worse: beyond the tolerance, beyond the spread, and in the right direction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.compare import Change, changes, compared
from benchmarks.figures import Figure, Results

TIME = Figure("launch", "launcher object", "call", 1, "s", 1.0, 0.98, 1.02)
SPEED = Figure("kernels", "softmax", "torch / ours", 1, "x", 1.0, 0.98, 1.02, less=False, bar=1.0)


def moved(figure: Figure, factor: float) -> Figure:
    return replace(figure, value=figure.value * factor, low=figure.low * factor, high=figure.high * factor)


@pytest.mark.parametrize(
    ("figure", "factor", "relative", "significant"),
    [
        (TIME, 1.25, -0.2, True),
        (TIME, 0.8, 0.25, True),
        (TIME, 1.03, -0.03, False),
        (SPEED, 0.8, -0.2, True),
        (SPEED, 1.25, 0.25, True),
    ],
)
def test_direction_and_size(figure: Figure, factor: float, relative: float, significant: bool) -> None:
    change = Change(figure, moved(figure, factor))
    assert change.relative == pytest.approx(relative, abs=0.01)
    assert change.significant(0.05) is significant


def test_overlapping_quartiles_are_noise() -> None:
    change = Change(replace(TIME, high=1.5), moved(TIME, 1.3))
    assert not change.significant(0.05)


def test_what_was_measured_once_needs_more() -> None:
    once = replace(TIME, low=1.0, high=1.0)
    assert not Change(once, moved(once, 1.1)).significant(0.05)
    assert Change(once, moved(once, 1.3)).significant(0.05)


def test_times_count_where_there_is_no_peer() -> None:
    ours = replace(SPEED, column="ours", unit="s", less=True)
    alone = replace(ours, name="other")
    results = Results(
        {}, (ours, SPEED, alone, replace(SPEED, column="torch"), replace(TIME, group="machine"))
    )
    assert list(compared(results)) == [SPEED, alone]


def test_missing_figures_are_told() -> None:
    both, missing = changes(Results({}, (TIME, SPEED)), Results({}, (TIME,)))
    assert ([change.new for change in both], missing) == ([TIME], [SPEED])


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (0.5, 1), (2.0, 0)])
def test_exit_status(tmp_path: Path, factor: float, status: int) -> None:
    from benchmarks import compare

    Results({}, (TIME, SPEED)).write(tmp_path / "old.json")
    Results({}, (TIME, moved(SPEED, factor))).write(tmp_path / "new.json")
    app = typer.Typer()
    app.command()(compare.main)
    done = CliRunner().invoke(app, [str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    assert done.exit_code == status
    assert ("softmax: torch / ours" in done.output) == (factor != 1.0)


def test_files_that_are_no_results_give_2(tmp_path: Path) -> None:
    from benchmarks import compare

    app = typer.Typer()
    app.command()(compare.main)
    assert CliRunner().invoke(app, [str(tmp_path / "a"), str(tmp_path / "b")]).exit_code == 2

"""Counts of instructions: files of callgrind, baselines, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import counts
from benchmarks.counts import BASELINE, CountError, count, other_releases, parse, read, worse

FILE = """version: 1
creator: callgrind-3.19.0
desc: Trigger: Client Request: compile softmax: stages

events: Ir
summary: 12345
"""


def test_files_of_callgrind() -> None:
    assert parse(FILE) == ("compile softmax: stages", 12345)
    assert parse(FILE.replace("Client Request: compile softmax: stages", "Program termination")) is None


def test_more_than_the_tolerance_is_worse() -> None:
    old = {"a": 1000, "b": 1000, "c": 1000, "x: front end": 1000}
    assert worse(old, {"a": 1019, "b": 1021, "x: front end": 9000}, 0.02) == ["b", "c"]


def test_other_releases_are_named() -> None:
    baseline = {"versions": dict.fromkeys(counts.RELEASES, "1")}
    now: dict[str, str | None] = dict.fromkeys(counts.RELEASES, "1")
    assert other_releases(baseline, now) == []
    assert other_releases(baseline, now | {"triton": "2"}) == ["triton 1 → 2"]


def test_without_valgrind_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts.shutil, "which", lambda name: None)
    with pytest.raises(CountError, match="apt-get install valgrind"):
        count()


def test_the_baseline_that_is_kept_can_be_read() -> None:
    names = read(BASELINE)["counts"]
    assert {"compile matmul fp32: stages", "warm start softmax"} <= set(names)


@pytest.mark.parametrize("text", ["", "{}", '{"versions": 1, "counts": {}}'])
def test_other_files_are_no_baselines(tmp_path: Path, text: str) -> None:
    (tmp_path / "counts.json").write_text(text)
    with pytest.raises(CountError, match="--write"):
        read(tmp_path / "counts.json")


@pytest.mark.parametrize(("found", "status"), [(1000, 0), (1100, 1)])
def test_exit_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: int, status: int) -> None:
    releases = {name: counts.versions().get(name) for name in counts.RELEASES}
    (tmp_path / "counts.json").write_text(json.dumps({"versions": releases, "counts": {"a": 1000}}))
    monkeypatch.setattr(counts, "count", lambda: {"a": found})
    app = typer.Typer()
    app.command()(counts.main)
    assert CliRunner().invoke(app, ["--baseline", str(tmp_path / "counts.json")]).exit_code == status

"""`tpk verify` and `tpk report` from outside: what they print, and their exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_runs import (
    KERNELS,
    NASTY,
    PERFORMANCE,
    error,
    every_status,
    everything,
    record,
    write_run,
    wrong,
)

from triton_porting_kit.cli import main
from triton_porting_kit.conformance.report.build import write_reports


class Tpk:
    """The command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str]:
        """Exit status, and all that was printed."""
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return int(exit.value.code or 0), captured.out + captured.err


@pytest.fixture
def tpk(capsys: pytest.CaptureFixture[str]) -> Tpk:
    return Tpk(capsys)


def test_reports_are_written_from_a_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", every_status())
    (run / "performance.json").write_text(json.dumps(PERFORMANCE))
    report = write_reports(run, tmp_path / "out" / "deep")
    assert {p.name for p in (tmp_path / "out" / "deep").iterdir()} == {
        "report.json",
        "junit.xml",
        "report.html",
    }
    assert report.bad == 7
    write_reports(run, run)  # the folder of the run will do, too


def test_verify(tmp_path: Path, tpk: Tpk) -> None:
    write_reports(write_run(tmp_path, every_status()), tmp_path)
    status, printed = tpk("verify", tmp_path / "report.json")
    assert status == 0
    assert "npu: fail" in printed
    assert "agrees with its evidence" in printed
    text = (tmp_path / "report.json").read_text()
    (tmp_path / "report.json").write_text(text.replace('"status":"timeout"', '"status":"pass"', 1))
    status, printed = tpk("verify", tmp_path)
    assert status == 1
    assert "does not agree with its evidence (2 disagreements)" in printed
    assert "it claims the status 'pass'; its evidence gives 'timeout'" in printed


def test_verify_refuses_what_is_no_report(tmp_path: Path, tpk: Tpk) -> None:
    status, printed = tpk("verify", tmp_path / "report.json")
    assert (status, "cannot be read" in printed) == (1, True)


def test_merge(tmp_path: Path, tpk: Tpk) -> None:
    records = everything("kernels")
    folders = []
    for number in (1, 2):
        options = KERNELS["options"] | {"shard": [number, 2]}
        folder = write_run(tmp_path / str(number), records[number - 1 :: 2], options=options)
        write_reports(folder, folder)
        folders.append(folder)
    status, printed = tpk("report", "merge", *folders, "-o", tmp_path / "all")
    assert (status, "npu: pass" in printed) == (0, True)
    assert tpk("verify", tmp_path / "all")[0] == 0
    status, printed = tpk("report", "merge", folders[0], "-o", tmp_path / "half")
    assert status == 1
    assert "Shards that are not among these reports: 2" in printed
    assert records[1].name in printed
    assert "and " in printed


def test_merge_refuses_strangers(tmp_path: Path, tpk: Tpk) -> None:
    for seed in (0, 1):
        write_run(tmp_path / str(seed), [], seed=seed)
    status, printed = tpk("report", "merge", tmp_path / "0", tmp_path / "1", "-o", tmp_path / "all")
    assert (status, "seed is 1, not 0" in printed) == (1, True)


def test_diff(tmp_path: Path, tpk: Tpk) -> None:
    name = "language/arithmetic/add-fp32-tile_1"
    write_run(tmp_path / "old", [record(name)])
    write_run(tmp_path / "new", [record(name, wrong())])
    status, printed = tpk("report", "diff", tmp_path / "old", tmp_path / "new")
    assert status == 1
    assert f"newly failing: 1\n  {name}: pass -> fail" in printed
    status, printed = tpk("report", "diff", tmp_path / "new", tmp_path / "old")
    assert (status, "Nothing got worse." in printed) == (0, True)
    status, printed = tpk("report", "diff", tmp_path / "new", tmp_path / "new")
    assert (status, printed) == (0, "No check changed its status.\n")


def test_show(tmp_path: Path, tpk: Tpk) -> None:
    write_run(tmp_path / "run", [record("language/arithmetic/add-fp32-tile_1", error(NASTY))])
    status, printed = tpk("report", "show", tmp_path / "run")
    assert status == 1
    assert "compiled: ttir: CompilationError" in printed
    assert "\x1b" not in printed
    write_run(tmp_path / "all", everything("kernels"), **KERNELS)
    assert tpk("report", "show", tmp_path / "all")[0] == 0

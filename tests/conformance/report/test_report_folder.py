"""Reading run folders, whole and cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_runs import PERFORMANCE, error, every_status, record, right, write_run, wrong

from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.folder import read_run
from triton_porting_kit.conformance.status import Status, Verdict


def test_a_run_is_read(tmp_path: Path) -> None:
    records = every_status()
    write_run(tmp_path, records)
    (tmp_path / "performance.json").write_text(json.dumps(PERFORMANCE))
    report = read_run(tmp_path)
    assert list(report.records) == records
    assert set(report.statuses.values()) == set(Status)
    assert (report.not_run, report.damaged, report.performance) == ((), 0, PERFORMANCE)
    assert report.complete
    assert "planned" not in report.run


def test_a_last_line_may_be_cut_off(tmp_path: Path) -> None:
    names = ["language/arithmetic/add-fp32-tile_1", "language/arithmetic/add-fp64-tile_1"]
    write_run(tmp_path, map(record, names))
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    report = read_run(tmp_path)
    assert [r.name for r in report.records] == names[:1]
    assert (report.not_run, report.damaged) == ((names[1],), 1)
    assert not report.complete


def test_a_line_cut_off_in_the_middle_of_a_character(tmp_path: Path) -> None:
    write_run(tmp_path, [record("language/arithmetic/add-fp32-tile_1", error("größer"))])
    path = tmp_path / "records.jsonl"
    line = json.dumps(json.loads(path.read_text()), ensure_ascii=False).encode()
    path.write_bytes(line + b"\n" + line[: line.index(b"\xc3") + 1])
    assert len(read_run(tmp_path).records) == 1


def test_of_several_records_the_last_counts(tmp_path: Path) -> None:
    name = "language/arithmetic/add-fp32-tile_1"
    write_run(tmp_path, [record(name, wrong()), record(name, right())])
    assert read_run(tmp_path).statuses == {name: Status.PASS}


def test_records_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    names = [f"language/arithmetic/add-{kind}-tile_1" for kind in ("i8", "fp32", "i16")]
    write_run(tmp_path, map(record, reversed(names)), planned=names)
    assert [r.name for r in read_run(tmp_path).records] == names


def test_a_run_without_records_is_no_pass(tmp_path: Path) -> None:
    write_run(tmp_path, [])
    (tmp_path / "records.jsonl").unlink()
    report = read_run(tmp_path)
    assert report.verdict is Verdict.NOT_RUN


def test_a_run_that_found_no_backend(tmp_path: Path) -> None:
    """It may not know Triton's release, a device or a profile."""
    unknown = dict.fromkeys(("device", "profile", "triton_version", "options"))
    name = "language/arithmetic/add-fp32-tile_1"
    write_run(tmp_path, [record(name, error(stage="imported"))], **unknown)
    report = read_run(tmp_path)
    assert report.verdict is Verdict.FAIL
    assert report.levels[2].mandatory > 12_000


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="cannot be read: No such file"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ReportError, match="is not JSON"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ReportError, match="not a JSON object"):
        read_run(tmp_path)


def test_broken_figures_are_said_to_be(tmp_path: Path) -> None:
    write_run(tmp_path, [record("language/arithmetic/add-fp32-tile_1")])
    for text in ('{"launch": ', "[]"):
        (tmp_path / "performance.json").write_text(text)
        performance = read_run(tmp_path).performance
        assert performance is not None
        assert list(performance) == ["error"]

"""Reports and run folders that somebody else made: nothing is obeyed, and nothing is written elsewhere."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from report_runs import NASTY, error, every_status, metadata, record, report, write_run

from triton_porting_kit.cli import main
from triton_porting_kit.conformance.command.request import run_in
from triton_porting_kit.conformance.execution.runfolder import (
    RECORDS,
    RUN,
    RunFolder,
    RunFolderError,
    records_in,
)
from triton_porting_kit.conformance.report import document, junit
from triton_porting_kit.conformance.report.badge import run_badge
from triton_porting_kit.conformance.report.build import write_reports
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.page import text as page
from triton_porting_kit.conformance.report.verify import disagreements

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b1m\u202e\r"
OBEYED = set("\x1b\x07\x9b\u202e\r")
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b1m\u202e\r"


def tpk(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Status and all that is printed."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_a_terminal_obeys_nothing_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [*every_status(), record("language/arithmetic/add-i64-tile_1", error(ESCAPES))]
    one = write_run(tmp_path / "one", records, backend=f"npu{ESCAPES}")
    write_reports(one, one)
    other = write_run(tmp_path / "other", every_status(), backend=f"other{ESCAPES}")
    for command in (
        ("report", "show", one),
        ("verify", one),
        ("report", "merge", one, "--out", tmp_path / "out"),
        ("report", "merge", one, other, "--out", tmp_path / "out"),
        ("report", "diff", other, one),
    ):
        _, said = tpk(capsys, *command)
        assert SHOWN in said or json.dumps(ESCAPES).strip('"') in said
        assert not set(said) & OBEYED


def test_a_report_is_of_bounded_depth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"format": 1, "run": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert tpk(capsys, "verify", path) == (
        1,
        f"tpk: {path} is refused: lists and tables are nested more than 64 deep\n",
    )


@pytest.mark.parametrize("name", ["report.json", "report.html", "junit.xml"])
def test_reports_are_written_through_no_link(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run", every_status())
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (run / name).symlink_to(mine)
    with pytest.raises(ReportError, match=f"{name} is a symbolic link"):
        write_reports(run, run)
    assert mine.read_text() == "mine"


def test_a_badge_is_written_through_no_link(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", every_status())
    write_reports(run, run)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "badge.svg").symlink_to("mine")
    with pytest.raises(ReportError, match=r"badge\.svg is a symbolic link"):
        run_badge(run, tmp_path / "badge.svg")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", [RUN, RECORDS])
@pytest.mark.parametrize("keep", [True, False])
def test_a_run_is_written_through_no_link(tmp_path: Path, name: str, keep: bool) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "mine").write_text("mine")
    (run / name).symlink_to(tmp_path / "mine")
    with pytest.raises(RunFolderError, match="a symbolic link"):
        RunFolder(run, {"planned": []}, keep=keep)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["run.json", "records.jsonl", "performance.json", "report.json"])
def test_files_of_a_folder_are_regular_ones(tmp_path: Path, name: str) -> None:
    from triton_porting_kit.conformance.report.commands import load

    run = write_run(tmp_path / "run", every_status())
    write_reports(run, run)
    if name != "report.json":
        (run / "report.json").unlink()
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises((ReportError, RunFolderError), match=f"{name} is a named pipe"):
        load(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("options", {"shard": [1, 10**9]}),
        ("options", {"select": [1]}),
        ("options", {"stress": 10**9}),
        ("merged_from", [{"shard": 7}]),
        ("planned", ["x; rm -rf ~"]),
        ("planned", 7),
        ("profile", []),
        ("incidents", 7),
        ("seed", "1"),
    ],
)
def test_a_run_that_says_strange_things(tmp_path: Path, key: str, value: Any) -> None:
    from triton_porting_kit.conformance.report.folder import read_run

    (tmp_path / RUN).write_text(json.dumps({**metadata(), "planned": [], key: value}))
    with pytest.raises(ReportError, match="does not match the schema"):
        read_run(tmp_path)
    with pytest.raises(RunFolderError, match="does not match the schema"):
        run_in(tmp_path)


def test_lines_that_are_no_records_are_counted(tmp_path: Path) -> None:
    from triton_porting_kit.conformance.report.folder import read_run

    good = record("language/arithmetic/add-fp32-tile_1").to_json()
    bad = [
        *(
            good | change
            for change in ({"evidence": [7]}, {"evidence": [{}]}, {"seconds": "1"}, {"listing": []})
        ),
        *([], 7, "x", {}, good | {"evidence": [{"kind": "error"}]}, good | {"name": "a b"}),
    ]
    write_run(tmp_path, [])
    lines = [*map(json.dumps, [*bad, good]), "[" * 100_000, json.dumps(good).replace("0.0125", "NaN")]
    (tmp_path / RECORDS).write_text("\n".join(lines))
    found = read_run(tmp_path)
    assert (len(found.records), found.damaged) == (1, len(lines) - 1)
    assert good["name"] in records_in(tmp_path)


def test_a_report_of_many_random_programs_is_verified_at_once() -> None:
    limits = {"types": ["fp32"], "atomics": None, "features": None, "maximum_tile": None}
    run = metadata()
    run["profile"] = {**run["profile"], "capabilities": limits}
    run["options"] = {**run["options"], "stress": 1_000_000}
    found = document.document_of(report([record("stress/programs/99999")], **run))
    assert isinstance(disagreements(found), list)


def test_names_and_facts_are_text_in_every_form() -> None:
    evil = {"name": f"</script><img src=x onerror=alert(1)>{ESCAPES}", "memory": "kit"}
    run = metadata(device=evil, backend=NASTY, driver="javascript:alert(1)")
    made = report([record("language/arithmetic/add-fp32-tile_1", error(NASTY + ESCAPES))], **run)
    html = page(made)
    assert html.count("</script>") == html.count("<script") == 2
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert not set(html) & OBEYED
    tree = ElementTree.fromstring(junit.text(made))
    assert not set("".join(tree.itertext())) & OBEYED

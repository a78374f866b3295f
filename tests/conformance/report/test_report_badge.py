"""The badge: what it says of the verdicts, and that it is made from reports that hold only."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_runs import every_status, record, right, write_run

from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.conformance.report.badge import NOT_JUDGED, badge, reached, run_badge
from triton_porting_kit.conformance.report.build import write_reports
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import LevelResult
from triton_porting_kit.conformance.status import Verdict
from triton_porting_kit.porting.template import Template

NAMESPACE = "{http://www.w3.org/2000/svg}"
LETTERS = {
    "P": Verdict.PASS,
    "E": Verdict.CONDITIONAL,
    "X": Verdict.EXPECTED,
    "F": Verdict.FAIL,
    "I": Verdict.INCOMPLETE,
    "-": Verdict.NOT_RUN,
}


def said(svg: str) -> str:
    """The text on the right of a badge."""
    return ElementTree.fromstring(svg).findall(f".//{NAMESPACE}text")[1].text or ""


def levels_with(verdicts: str) -> list[LevelResult]:
    return [
        LevelResult(level, True, LETTERS[letter], {}, 0, ())
        for level, letter in zip(DEFAULT_LEVELS, verdicts, strict=True)
    ]


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ("-----", NOT_JUDGED),
        ("P----", "registration"),
        ("PP---", "runtime"),
        ("PPPPP", "stress"),
        ("PPI--", "runtime"),
        ("PIP--", "registration"),  # what is above a gap counts for nothing
        ("-PPPP", NOT_JUDGED),
        ("I----", NOT_JUDGED),
        ("F----", "fails registration"),
        ("FPPPP", "fails registration"),
        ("PPF--", "runtime, fails language"),
        ("PPIF-", "runtime, fails kernels"),
        ("-F---", "fails runtime"),
        ("PE---", "runtime, with exceptions"),
        ("EP---", "runtime, with exceptions"),
        ("PX---", "runtime, with exceptions"),
        ("PEF--", "runtime, with exceptions, fails language"),
    ],
)
def test_the_level_reached(verdicts: str, text: str) -> None:
    assert reached(levels_with(verdicts))[0] == text


def test_kernels_that_did_not_run() -> None:
    assert reached(levels_with("PPE--"), compile_only=True)[0] == "language, compiled only, with exceptions"
    assert reached(levels_with("F----"), compile_only=True)[0] == "fails registration"


def test_the_picture_says_it_in_words_too() -> None:
    svg = badge('a & "b"', "#123456")
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == root.findtext(f"{NAMESPACE}title") == 'triton conformance: a & "b"'
    assert said(svg) == 'a & "b"'
    assert "#123456" in svg
    assert "href" not in svg


def test_a_report_that_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reports(write_run(tmp_path, every_status()), tmp_path)
    out = tmp_path / "docs" / "badge.svg"
    assert run_badge(tmp_path, out) == 0
    text = said(out.read_text())
    assert text == "fails language"
    assert text in capsys.readouterr().out


def test_one_check_is_no_level(tmp_path: Path) -> None:
    write_reports(write_run(tmp_path, [record("registration/found", right())]), tmp_path)
    run_badge(tmp_path / "report.json", tmp_path / "badge.svg")
    assert said((tmp_path / "badge.svg").read_text()) == NOT_JUDGED


def test_a_report_that_was_touched(tmp_path: Path) -> None:
    write_reports(write_run(tmp_path, every_status()), tmp_path)
    path = tmp_path / "report.json"
    data = json.loads(path.read_text())
    for level in data["levels"]:
        level["verdict"] = "pass"
    path.write_text(json.dumps(data))
    with pytest.raises(ReportError, match="does not agree"):
        run_badge(path, tmp_path / "badge.svg")
    assert not (tmp_path / "badge.svg").exists()


def test_a_badge_that_cannot_be_written(tmp_path: Path) -> None:
    write_reports(write_run(tmp_path, every_status()), tmp_path)
    with pytest.raises(ReportError, match="is a folder, which is not replaced"):
        run_badge(tmp_path, tmp_path)


def test_a_fresh_repository_says_that_it_is_not_judged() -> None:
    (svg,) = [content for name, content, _ in Template.own().files() if name.endswith("badge.svg")]
    assert svg.decode() == badge()

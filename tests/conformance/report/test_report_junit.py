"""junit.xml as other programs read it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from junitparser import JUnitXml
from report_runs import LISTINGS, NASTY, error, every_status, everything, record, report

from triton_porting_kit.conformance.report import junit


def test_every_status_is_told(tmp_path: Path) -> None:
    records = every_status()
    path = tmp_path / "junit.xml"
    path.write_text(junit.text(report(records, complete=False)))
    xml = JUnitXml.fromfile(str(path))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (len(records), 4, 3, 3)
    cases = {f"{case.classname}/{case.name}": case for suite in xml for case in suite}
    crashed = cases["language.arithmetic/add-i8-tile_1"].result[0]
    assert crashed.type == "crash: launched"
    assert "last words" in crashed.text
    assert "tpk conform --backend npu" in crashed.text
    assert "first that differs: [1, 2]" in cases["language.arithmetic/add-fp32-tile_324"].result[0].text
    assert cases["language.arithmetic/own_sub-fp32-tile_1"].result[0].message.startswith("unsupported: ")
    assert "passed, though" in cases["language.arithmetic/own_sub-fp64-tile_1"].system_out


def test_whatever_a_message_holds_it_is_xml(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    listing = LISTINGS["unsupported"]
    made = [record("language/arithmetic/own_sub-fp32-tile_1", error(NASTY + "\ud800"), listing=listing)]
    made.append(record("language/arithmetic/add-fp32-tile_1", error(NASTY + "\ud800")))
    path.write_text(junit.text(report(made)))
    failure = ElementTree.parse(path).find(".//failure")
    assert failure is not None
    assert "</script><script>alert('ü €')" in (failure.text or "")


def test_no_checks_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(junit.text(report([])))
    assert JUnitXml.fromfile(str(path)).errors == 1


def test_missing_checks_are_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    records = everything()
    gone = records.pop(5)
    path.write_text(junit.text(report(records)))
    xml = ElementTree.parse(path)
    (failure,) = xml.findall(".//failure")
    assert failure.get("message") == "1 mandatory checks are missing"
    assert failure.text == gone.name


def test_many_failures_are_no_flood(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    names = [r.name for r in everything("kernels")] * 3
    path.write_text(junit.text(report([record(name, error("x" * 100_000)) for name in names])))
    assert path.stat().st_size < 10_000_000
    assert JUnitXml.fromfile(str(path)).failures > 1000

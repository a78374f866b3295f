"""report.json and its schema."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_runs import every_status, everything, record, report, right

from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError

SCHEMA = json.loads(document.SCHEMA.read_text())


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_reports_keep_to_the_schema() -> None:
    """To the standard validator's mind too."""
    data = json.loads(document.dumps(document.document_of(report(every_status()))))
    jsonschema.Draft7Validator(SCHEMA).validate(data)
    assert data["format"] == document.FORMAT
    assert data["digest"] == document.digest(data)


def break_status(data: dict[str, Any]) -> None:
    data["checks"][0]["status"] = "splendid"


def break_evidence(data: dict[str, Any]) -> None:
    del data["checks"][0]["evidence"][0]["differ"]


def break_name(data: dict[str, Any]) -> None:
    data["checks"][0]["name"] = "<b>"


def break_run(data: dict[str, Any]) -> None:
    del data["run"]["seed"]


def break_digest(data: dict[str, Any]) -> None:
    data["digest"] = "sha256:none"


def break_top(data: dict[str, Any]) -> None:
    data["comment"] = "looks good"


@pytest.mark.parametrize(
    "damage", [break_status, break_evidence, break_name, break_run, break_digest, break_top]
)
def test_what_breaks_the_schema_is_refused(damage: Any, tmp_path: Path) -> None:
    data = json.loads(document.dumps(document.document_of(report(every_status()))))
    damage(data)
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(data))
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ReportError, match=r"report\.json does not match the schema"):
        document.read(path)


def test_reports_are_read_as_written(tmp_path: Path) -> None:
    made = report(every_status())
    (tmp_path / document.NAME).write_text(document.text(made))
    assert document.load(tmp_path) == document.load(tmp_path / document.NAME) == made


def test_other_formats_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="cannot be read"):
        document.read(tmp_path)
    path = tmp_path / "report.json"
    path.write_text('{"format": 99}')
    with pytest.raises(ReportError, match="format 99, and this kit reads 1"):
        document.read(path)
    path.write_text("no")
    with pytest.raises(ReportError, match="is not JSON"):
        document.read(path)


def test_numbers_that_json_has_not() -> None:
    name = "language/arithmetic/add-fp32-tile_1"
    data = document.document_of(report([record(name, right() | {"worst_ulp": math.inf})]))
    assert data["checks"][0]["evidence"][0]["worst_ulp"] == "inf"
    assert "Infinity" not in document.dumps(data)


def test_thirteen_thousand_checks_are_quick(tmp_path: Path) -> None:
    made = report(everything())
    start = time.process_time()
    (tmp_path / document.NAME).write_text(document.text(made))
    assert document.load(tmp_path) == made
    assert time.process_time() - start < 20
    assert len((tmp_path / document.NAME).read_text().splitlines()) > len(made.records)

"""``report.json``: writing and reading, with validation against the schema and a digest of the content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report

FORMAT = 1
"""The version of the schema."""
NAME = "report.json"
SCHEMA = Path(__file__).parent / "schema.json"


def document_of(report: Report) -> dict[str, Any]:
    """A report as JSON, with its digest. Raises `ReportError` if it does not match the schema."""
    data = {"format": FORMAT, "mandatory_digest": mandatory.digest(), **report.to_json()}
    if not _is_json(data):
        data = _finite(data)
    data["digest"] = digest(data)
    validate(data, "the report")
    return data


def text(report: Report) -> str:
    """The content of ``report.json``, with one check per line."""
    return dumps(document_of(report))


def dumps(data: Mapping[str, Any]) -> str:
    """The text of a document, with one check per line, so that documents can be compared line by line."""
    head = {key: value for key, value in data.items() if key != "checks"}
    checks = ",\n".join(_dumps(check) for check in data["checks"])
    return f'{json.dumps(head, indent=1)[:-2]},\n "checks": [\n{checks}\n]\n}}\n'


def read(path: Path) -> dict[str, Any]:
    """Read a document from a file or a folder. Raises `ReportError` if it is not a document that matches the schema.

    Its claims are not checked; `triton_porting_kit.conformance.report.verify` does that.
    """
    named = not path.is_dir()
    file = path if named else path / NAME
    data = untrusted.read_json(file, untrusted.REPORT, ReportError, follow=named)
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise ReportError(
            f"{file} has format {data.get('format')!r:.80}, and this kit reads {FORMAT}; use the release that wrote it"
        )
    validate(data, str(file))
    assert isinstance(data, dict)
    return data


def load(path: Path) -> Report:
    """The report in a file or folder. Its statuses and verdicts are computed from the evidence."""
    return Report.from_json(read(path))


def digest(data: Mapping[str, Any]) -> str:
    """The digest of a document without its digest field. It detects accidental changes; it is not a signature."""
    content = {key: value for key, value in data.items() if key != "digest"}
    return f"sha256:{hashlib.sha256(_dumps(content, sort_keys=True).encode()).hexdigest()}"


def validate(data: Any, what: str, part: str = "") -> None:
    """Validate against the schema, or its definition of a `part`. Raises `ReportError` with the first mismatch."""
    import fastjsonschema

    try:
        _validator(part)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        raise ReportError(f"{what} does not match the schema: {error.message:.300}") from error


@cache
def _validator(part: str) -> Callable[[Any], Any]:
    import fastjsonschema

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    if part:
        schema = {key: schema[key] for key in ("$schema", "definitions")} | {
            "allOf": [{"$ref": f"#/definitions/{part}"}]
        }
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return compiled


def _dumps(value: Any, **options: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, **options)


def _is_json(data: Any) -> bool:
    try:
        _dumps(data)
    except ValueError:
        return False
    return True


def _finite(value: Any) -> Any:
    """Convert numbers that JSON cannot represent to strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value

"""Reading a run folder: ``run.json``, ``records.jsonl``, and ``performance.json`` where there is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report

RUN = "run.json"
RECORDS = "records.jsonl"
PERFORMANCE = "performance.json"

_UNKNOWN: dict[str, Any] = {
    "triton_version": "",
    "device": {},
    "profile": {"capabilities": {}, "unsupported": [], "expected_failures": [], "waivers": []},
    "options": {},
}
"""What is said of a run that found no backend to ask."""


def read_run(folder: Path) -> Report:
    """The report of a run, ended or not. Raises `ReportError`.

    ``records.jsonl`` is appended to while checks end, so a line may be cut off: what cannot be read is counted, and
    its check has no record. Of several records of a check the last counts.
    """
    run = _json(folder / RUN)
    if not isinstance(run, dict):
        raise ReportError(f"{folder / RUN} is no JSON object")
    for key, default in _UNKNOWN.items():
        if run.get(key) is None:
            run[key] = default
    planned = run.pop("planned", [])
    not_applicable = run.pop("not_applicable", [])
    records, damaged = _records(folder / RECORDS)
    order = {name: number for number, name in enumerate(planned)}
    return Report(
        run=run,
        records=tuple(sorted(records.values(), key=lambda r: (order.get(r.name, len(order)), r.name))),
        not_run=tuple(name for name in planned if name not in records),
        not_applicable=tuple(not_applicable),
        damaged=damaged,
        performance=_figures(folder / PERFORMANCE),
    )


def _records(path: Path) -> tuple[dict[str, Record], int]:
    """By name, in the order of the file; and how many lines could not be read."""
    records: dict[str, Record] = {}
    damaged = 0
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from error
    for line in filter(None, lines):
        try:
            record = Record.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError):
            damaged += 1
        else:
            records[record.name] = record
    return records, damaged


def _figures(path: Path) -> dict[str, Any] | None:
    """Figures of performance. That they cannot be read is no reason to have no report."""
    if not path.is_file():
        return None
    try:
        found = _json(path)
    except ReportError as error:
        return {"error": str(error)}
    return found if isinstance(found, dict) else {"error": f"{path} is no JSON object"}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReportError(
            f"{path} cannot be read: {error.strerror}. A run folder is what `tpk conform --report DIR` leaves in DIR"
        ) from error
    except ValueError as error:
        raise ReportError(f"{path} is not JSON: {error}") from error

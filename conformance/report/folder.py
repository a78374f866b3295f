"""Reads a run folder: ``run.json``, ``records.jsonl`` and optionally ``performance.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.execution.runfolder import PERFORMANCE, RECORDS, RUN, records_of
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.untrusted import Folder

_UNKNOWN: dict[str, Any] = {
    "triton_version": "",
    "device": {},
    "profile": {"capabilities": {}, "unsupported": [], "expected_failures": [], "waivers": []},
    "options": {},
}
"""Defaults for a run that could not start a worker."""


def read_run(folder: Path) -> Report:
    """The report of a run, finished or not. Raises `ReportError`.

    ``records.jsonl`` is appended to during a run, so its last line may be incomplete. Unreadable lines are counted, and
    their checks have no record. If a check has several records, the last one counts.
    """
    with Folder(folder, ReportError) as held:
        content = held.read(RUN, untrusted.REPORT, _REMEDY)
        lines = held.read(RECORDS, untrusted.REPORT) if held.has(RECORDS) else b""
        figures = held.read(PERFORMANCE, untrusted.REPORT) if held.has(PERFORMANCE) else None
    run = untrusted.parse_json(content, folder / RUN, ReportError)
    if not isinstance(run, dict):
        raise ReportError(f"{folder / RUN} is not a JSON object")
    for key, default in _UNKNOWN.items():
        if run.get(key) is None:
            run[key] = default
    document.validate(run, str(folder / RUN), "run")
    planned = run.pop("planned", [])
    not_applicable = run.pop("not_applicable", [])
    records, damaged = records_of(lines, lambda data: document.validate(data, RECORDS, "check"))
    order = {name: number for number, name in enumerate(planned)}
    return Report(
        run=run,
        records=tuple(sorted(records.values(), key=lambda r: (order.get(r.name, len(order)), r.name))),
        not_run=tuple(name for name in planned if name not in records),
        not_applicable=tuple(not_applicable),
        damaged=damaged,
        performance=None if figures is None else _figures(figures, folder / PERFORMANCE),
    )


_REMEDY = "a run folder is what `tpk conform --report DIR` leaves in DIR"


def _figures(content: bytes, path: Path) -> dict[str, Any]:
    """The performance figures. If they cannot be read, the report contains the error instead."""
    try:
        found = untrusted.parse_json(content, path, ReportError)
        document.validate(found, str(path), "performance")
    except ReportError as error:
        return {"error": str(error)}
    assert isinstance(found, dict)
    return found

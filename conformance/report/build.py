"""`write_reports`: creates the reports of a run from its folder."""

from __future__ import annotations

from pathlib import Path

from triton_porting_kit.conformance.report import document, junit, page
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.folder import read_run
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.untrusted import Folder


def write_reports(run_dir: Path, out_dir: Path) -> Report:
    """Read a run, finished or not, and write its reports. Raises `ReportError` if there is no run."""
    report = read_run(run_dir)
    write_all(report, out_dir)
    return report


def write_all(report: Report, out_dir: Path) -> None:
    """Write the reports of a run to a folder without following links in it. Raises `ReportError`."""
    with Folder(out_dir, ReportError, make=True) as folder:
        for made in (document, junit, page):
            folder.write(made.NAME, made.text(report).encode("utf-8", "replace"))

"""``tpk verify`` and ``tpk report``. Each command function prints and returns the exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from triton_porting_kit.conformance.execution.runfolder import RUN
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.build import write_all
from triton_porting_kit.conformance.report.diff import diff
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.failures import groups
from triton_porting_kit.conformance.report.folder import read_run
from triton_porting_kit.conformance.report.merge import merge
from triton_porting_kit.conformance.report.model import GOOD, Report
from triton_porting_kit.conformance.report.verify import disagreements
from triton_porting_kit.untrusted import Folder, shown

SHOWN = 50
"""The number of items of long lists that are printed."""


def load(path: Path) -> Report:
    """Load a report from a file, a folder with a report, or a run's folder without one. Raises `ReportError`."""
    if path.is_dir():
        with Folder(path, ReportError) as folder:
            run_only = folder.has(RUN) and not folder.has(document.NAME)
        if run_only:
            return read_run(path)
    return document.load(path)


def run_verify(path: Path) -> int:
    """Recompute all claims of a report. Returns 1 if one does not follow from its evidence, else 0."""
    data = document.read(path)
    found = disagreements(data)
    report = Report.from_json(data)
    _print_verdicts(report)
    if not found:
        print("The report agrees with its evidence and with the mandatory lists.")
        return 0
    print(f"\nThe report does not agree with its evidence ({len(found)} disagreements):")
    _print_some(found)
    return 1


def run_merge(paths: Sequence[Path], out: Path) -> int:
    """Merge the reports of shards. Returns 1 if checks are missing, else 0."""
    merged = merge([load(path) for path in paths])
    write_all(merged.report, out)
    _print_verdicts(merged.report)
    if merged.duplicates:
        print(f"\n{len(merged.duplicates)} checks are in several reports; the worst result of each is kept:")
        _print_some(merged.duplicates)
    if merged.shards:
        print(f"\nShards that are not among these reports: {', '.join(map(str, merged.shards))}")
    if merged.missing:
        print(f"\n{len(merged.missing)} checks have no result:")
        _print_some(merged.missing)
    print(f"\nWrote {out / document.NAME}")
    return 1 if merged.missing or merged.shards else 0


def run_diff(old: Path, new: Path) -> int:
    """Print the differences between two runs. Returns 1 if something got worse, else 0."""
    found = diff(load(old), load(new))
    for key, before, after in found.facts:
        print(shown(f"{key}: {json.dumps(before):.200} -> {json.dumps(after):.200}"))
    for level, before, after in found.verdicts:
        print(f"level {level}: {before} -> {after}")
    for title, changes in found.groups.items():
        if changes:
            print(f"\n{title}: {len(changes)}")
            _print_some([str(change) for change in changes])
    if not any(found.groups.values()):
        print("No check changed its status.")
        return 0
    worse = len(found.worse)
    print(f"\n{worse} got worse." if worse else "\nNothing got worse.")
    return 1 if worse else 0


def run_show(path: Path) -> int:
    """Print a summary. Returns 1 if the run did not pass, else 0."""
    report = load(path)
    _print_verdicts(report)
    for group in groups(report.records)[:SHOWN]:
        count = f" ({len(group.records)} checks)" if len(group.records) > 1 else ""
        stage = f"{group.stage}: " if group.stage else ""
        print(
            f"\n{group.status}: {group.records[0].name}{count}\n  {shown(stage + group.message, lines=False)}"
        )
    return int(report.verdict not in GOOD)


def _print_verdicts(report: Report) -> None:
    run = report.run
    release = run["triton_version"] or "unknown"
    said = f"{run['backend']}: {report.verdict}  (suite {run['suite_version']}, Triton {release})"
    print(shown(said, lines=False))
    for level in report.levels:
        counts = ", ".join(f"{count} {status}" for status, count in level.counts.items())
        lost = (
            f"; {len(level.missing)} mandatory checks have no result" if level.missing and level.run else ""
        )
        print(f"  {level.level:<13} {level.verdict!s:<21} {counts}{lost}".rstrip())


def _print_some(lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        print(f"  {shown(line, lines=False)}")
    if len(lines) > SHOWN:
        print(f"  and {len(lines) - SHOWN} more")

"""The content of the page: the variables of its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.public.entries import VERDICTS
from triton_porting_kit.conformance.public.results import Result, results_of
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report import code_objects
from triton_porting_kit.conformance.report.evidence import Exhibit, exhibit, rerun
from triton_porting_kit.conformance.report.failures import Group, groups
from triton_porting_kit.conformance.report.matrix import Mark, matrix
from triton_porting_kit.conformance.report.model import LevelResult, Report
from triton_porting_kit.conformance.report.page.figures import parts, seconds, size
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.torch.fallbacks import shares
from triton_porting_kit.conformance.types import KINDS

GROUPS = 60
"""The maximum number of groups of failures that are shown."""
IN_FULL = 3
"""The number of checks of each group whose evidence is shown."""
NAMES = 300
"""The number of names shown of a long list of checks."""
TEXT = 8000
"""The number of characters shown of a traceback or an output, from its end."""

_LISTS = (
    ("unsupported", "Unsupported", "the chip cannot do this"),
    ("expected_failures", "Expected failures", "not yet"),
    ("waivers", "Waivers", "agreed with a reader of the report"),
)


def view(report: Report) -> dict[str, Any]:
    """The variables of the template."""
    found = groups(report.records)
    language = next(result for result in report.levels if result.level == "language")
    sections = matrix(report.statuses, language.missing) if language.run else []
    return {
        "run": report.run,
        "verdict": str(report.verdict),
        "scope": _scope(report),
        "lead": lead(report),
        "warnings": warnings(report),
        "levels": [_level(result, report) for result in report.levels],
        "fact_groups": facts(report),
        "bad": report.bad,
        "group_count": len(found),
        "groups": [_group(group, report) for group in found[:GROUPS]],
        "sections": sections,
        "marks": list(Mark),
        "kinds": [kind for kind in KINDS if any(kind in section.columns for section in sections)],
        "capabilities": _capabilities(report.run["profile"]["capabilities"]),
        "lists": [_listed(report, *entry) for entry in _LISTS],
        "unexpected": [n for n, s in report.statuses.items() if s is Status.UNEXPECTED_PASS][:NAMES],
        "not_applicable": report.not_applicable,
        "public": public_rows(report),
        "public_columns": ["collection", *VERDICTS, "caught compile errors", "findings"],
        "performance": parts(report.performance),
        "code_objects": list(code_objects.rows(report.records)),
        "code_object_columns": code_objects.COLUMNS,
        "total": len(report.records) + len(report.not_run),
    }


def public_rows(report: Report) -> list[list[object]]:
    """For each collection of published kernels: the number of entries by verdict, caught compile errors, findings."""
    found: dict[str, list[Result]] = {}
    for result in results_of(report.records):
        found.setdefault(result.collection, []).append(result)
    return [
        [
            name,
            *(sum(result.verdict == verdict for result in results) for verdict in VERDICTS),
            sum(len(result.caught) for result in results),
            sum(bool(result.findings) for result in results),
        ]
        for name, results in found.items()
    ]


def lead(report: Report) -> str:
    """A summary of the run in one or two sentences."""
    if not report.records:
        return "No check was run, so the run does not pass."
    passed = report.counts.get(Status.PASS, 0)
    others = [f"{count:,} {status}" for status, count in report.counts.items() if status is not Status.PASS]
    text = f"{passed:,} of {len(report.records):,} checks pass"
    text += f"; {', '.join(others)}." if others else "."
    idle = [result.level for result in report.levels if not result.run]
    if idle:
        text += f" Levels without a check: {', '.join(idle)}."
    return text


def _scope(report: Report) -> str:
    """The scope of the verdict, if it does not cover everything."""
    parts = []
    if not set(DEFAULT_LEVELS).issubset(report.asked):
        parts.append(f"level{'s' if len(report.asked) > 1 else ''} {', '.join(report.asked)} only")
    if report.compile_only:
        parts.append("kernels compiled, not run")
    return "; ".join(parts)


def warnings(report: Report) -> list[str]:
    """Facts that limit the validity of the verdict."""
    options, run = report.options, report.run
    found = []
    if report.not_run:
        found.append(
            f"{_checks(len(report.not_run))} without a result: the run was interrupted or is still running."
        )
    elif not run["complete"]:
        found.append("The run did not finish.")
    if options.get("shard"):
        number, count = options["shard"]
        found.append(f"This is shard {number} of {count}; `tpk report merge` merges them.")
    if parts := run.get("merged_from"):
        shards = [part["shard"][0] for part in parts if part.get("shard")]
        text = f" of shards {', '.join(map(str, shards))}" if shards else ""
        found.append(f"Merged from {len(parts)} runs{text}.")
    if options.get("select"):
        chosen = options["select"]
        chosen = chosen if isinstance(chosen, str) else ", ".join(chosen)
        found.append(f"Only a selection was run: {chosen}")
    if report.compile_only:
        found.append(f"Kernels were compiled for {options.get('target') or 'a target'}, and not run.")
    for result in report.levels:
        if gone := report.gone(result):
            found.append(
                f"Level {result.level}: {_checks(len(gone))} that are mandatory are missing from the run."
            )
    if unexpected := report.counts.get(Status.UNEXPECTED_PASS):
        found.append(f"The profile is out of date: {unexpected:,} of the checks that it lists pass.")
    if report.damaged:
        found.append(
            f"{report.damaged} lines of the run's records could not be read; their checks have no result."
        )
    if run.get("dirty"):
        found.append("The kit that ran was a checkout with local changes.")
    return found


def facts(report: Report) -> list[tuple[str, list[tuple[str, str]]]]:
    """The backend, the device, the software and the options of the run."""
    run = report.run
    kit = [("kit", run.get("kit_version")), ("suite", run["suite_version"])]
    if run.get("commit"):
        kit.append(("commit", f"{run['commit']}{' with local changes' if run.get('dirty') else ''}"))
    kit += [("Triton", run["triton_version"]), ("Python", run.get("python"))]
    kit += [*run.get("toolchain", {}).items(), ("platform", run.get("platform"))]
    options = [(key, value) for key, value in report.options.items() if value]
    times = [("started", _time(run.get("start"))), ("ended", _time(run.get("end")))]
    spent = sum(record.seconds for record in report.records)
    times += [("time in checks", seconds(spent))]
    found = [
        ("Backend", [("name", run["backend"]), ("driver", run.get("driver")), ("target", run.get("target"))]),
        ("Device", list(run["device"].items())),
        ("Software", kit),
        ("Without the CPU", [(share.group, str(share)) for share in shares(report.records)]),
        ("Run", [*times, ("seed", run["seed"]), ("profile", run["profile"].get("source")), *options]),
    ]
    return [(title, _shown(items)) for title, items in found if items]


def _shown(items: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), _value(name, value))
        for name, value in items
        if value not in (None, "", [], {})
    ]


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if name.endswith("_bytes") and isinstance(value, int):
        return size(value)
    return str(value)


def _time(text: Any) -> str:
    try:
        return datetime.fromisoformat(str(text)).strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    except ValueError:
        return str(text or "")


def _checks(count: int) -> str:
    return f"{count:,} check{'s' if count != 1 else ''}"


def _level(result: LevelResult, report: Report) -> dict[str, Any]:
    return {
        "level": result.level,
        "meaning": LEVELS[result.level].promise(compile_only=report.compile_only),
        "asked": result.asked,
        "verdict": str(result.verdict),
        "run": result.run,
        "counts": [(str(status), count) for status, count in result.counts.items()],
        "mandatory": result.mandatory,
        "missing_count": len(result.missing),
        "missing": result.missing[:NAMES] if result.run else (),
    }


def _group(group: Group, report: Report) -> dict[str, Any]:
    rest = group.records[IN_FULL:]
    return {
        "status": str(group.status),
        "stage": group.stage,
        "message": group.message[:500],
        "count": len(group.records),
        "checks": [_failure(record, report) for record in group.records[:IN_FULL]],
        "others": [record.name for record in rest[:NAMES]],
        "unnamed": max(len(rest) - NAMES, 0),
    }


def _failure(record: Record, report: Report) -> dict[str, Any]:
    return {
        "name": record.name,
        "requirement": record.requirement,
        "listing": record.listing,
        "exhibits": [_cut(exhibit(item)) for item in record.evidence],
        "rerun": rerun(report.run, record.name),
    }


def _cut(shown: Exhibit) -> Exhibit:
    details = tuple(
        (
            title,
            text
            if len(text) <= TEXT
            else f"… the last {TEXT:,} characters, the full text is in report.json\n{text[-TEXT:]}",
        )
        for title, text in shown.details
    )
    return Exhibit(shown.holds, shown.what, shown.facts, shown.text[:TEXT], details)


def _capabilities(capabilities: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, value in capabilities.items():
        if value is None:
            text = "no limit" if name == "maximum_tile" else "all"
        else:
            text = (
                ", ".join(map(str, value)) or "none"
                if isinstance(value, (list, tuple))
                else f"{value:,} elements"
            )
        found.append((name.replace("_", " "), text))
    return found or [("capabilities", "nothing is declared: all are claimed")]


def _listed(report: Report, name: str, title: str, meaning: str) -> dict[str, Any]:
    """A list of the profile, with the statuses of the checks that each entry names."""
    counts: dict[str, Counter[Status]] = {}
    for record in report.records:
        if record.listing and record.listing.list == name:
            counts.setdefault(record.listing.pattern, Counter())[record.status] += 1
    entries = [
        {"pattern": e["pattern"], "reason": e["reason"], "link": e.get("link", "")}
        for e in report.run["profile"][name]
    ]
    if name == "unsupported" and "capabilities" in counts:
        entries.append(
            {"pattern": "capabilities", "reason": "what the profile's capabilities do not claim", "link": ""}
        )
    for entry in entries:
        entry["counts"] = [(str(s), c) for s, c in counts.get(entry["pattern"], Counter()).items()]
    return {"title": title, "meaning": meaning, "entries": entries}

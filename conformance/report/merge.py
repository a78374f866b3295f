"""`merge`: merges the reports of shards or of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.order import badness

SAME = (
    "suite_version",
    "kit_version",
    "commit",
    "dirty",
    "triton_version",
    "toolchain",
    "backend",
    "driver",
    "target",
    "seed",
)
"""Metadata that must be equal in all parts."""
SAME_DEVICE = ("memory", "name", "arch")
SAME_OPTIONS = ("select", "compile_only", "target")


@dataclass(frozen=True)
class Merged:
    """A merged report, with missing and duplicate checks."""

    report: Report
    missing: tuple[str, ...]
    """Mandatory or planned checks that have no record in any part."""
    duplicates: tuple[str, ...]
    """Checks with records in several parts, of which the worst is kept."""
    shards: tuple[int, ...]
    """The numbers of the shards that are missing."""


def merge(parts: Sequence[Report]) -> Merged:
    """Merge parts of a run. Raises `ReportError` if they do not belong to the same run."""
    if not parts:
        raise ReportError("there is nothing to merge; name the reports of all shards")
    for number, part in enumerate(parts[1:], 2):
        _verify_same(parts[0], part, number)
    records: dict[str, Record] = {}
    duplicates: dict[str, None] = {}
    for part in parts:
        for record in part.records:
            other = records.get(record.name)
            if other is not None:
                duplicates[record.name] = None
            if other is None or badness(record.status) > badness(other.status):
                records[record.name] = record
    lost_shards = _lost_shards(parts)
    not_run = tuple(dict.fromkeys(n for part in parts for n in part.not_run if n not in records))
    report = Report(
        run=_joined_run(parts, complete=not lost_shards and not not_run),
        records=tuple(records.values()),
        not_run=not_run,
        not_applicable=tuple(dict.fromkeys(name for part in parts for name in part.not_applicable)),
        damaged=sum(part.damaged for part in parts),
        performance=_joined_figures(parts),
    )
    missing = [*report.not_run]
    for level in report.levels:
        if level.asked:
            missing += level.missing
    return Merged(report, tuple(dict.fromkeys(missing)), tuple(duplicates), lost_shards)


def _verify_same(first: Report, other: Report, number: int) -> None:
    pairs = [(key, first.run.get(key), other.run.get(key)) for key in SAME]
    for key in SAME_DEVICE:
        pairs.append((f"device's {key}", first.run["device"].get(key), other.run["device"].get(key)))
    for key in SAME_OPTIONS:
        pairs.append((f"option {key}", first.options.get(key) or None, other.options.get(key) or None))
    pairs.append(("profile", _claims(first), _claims(other)))
    pairs.append(("number of shards", _shards(first)[1], _shards(other)[1]))
    for what, ours, theirs in pairs:
        if ours != theirs:
            raise ReportError(
                f"report {number} is not part of the same run as report 1: {what} is {theirs!r:.200}, not {ours!r:.200}"
            )


def _claims(report: Report) -> dict[str, Any]:
    """The profile without the path of its file."""
    return {key: value for key, value in report.run["profile"].items() if key != "source"}


def _shards(report: Report) -> tuple[frozenset[int], int]:
    """The shards in a report, which may be merged itself, and the number of shards of the run."""
    if shard := report.options.get("shard"):
        return frozenset({shard[0]}), shard[1]
    found = [part["shard"] for part in report.run.get("merged_from", ()) if part.get("shard")]
    return frozenset(number for number, _ in found), found[0][1] if found else 1


def _lost_shards(parts: Sequence[Report]) -> tuple[int, ...]:
    count = _shards(parts[0])[1]
    if count == 1:
        return ()
    there = frozenset().union(*(_shards(part)[0] for part in parts))
    return tuple(number for number in range(1, count + 1) if number not in there)


def _joined_run(parts: Sequence[Report], *, complete: bool) -> dict[str, Any]:
    levels = [level for level in LEVELS if any(level in part.asked for part in parts)]
    sources: list[dict[str, Any]] = []
    for part in parts:
        own = {key: part.run.get(key) for key in ("platform", "python", "start", "end")}
        own |= {"shard": part.options.get("shard"), "levels": list(part.asked), "checks": len(part.records)}
        sources += part.run.get("merged_from") or [own]
    first = parts[0].run
    starts = [part.run["start"] for part in parts if part.run.get("start")]
    ends = [part.run["end"] for part in parts if part.run.get("end")]
    return {
        **first,
        "options": {**first["options"], "levels": levels, "shard": None},
        "start": min(starts, default=None),
        "end": max(ends, default=None),
        "complete": complete,
        "merged_from": sources,
    }


def _joined_figures(parts: Sequence[Report]) -> dict[str, Any] | None:
    """Merge performance figures: concatenate lists, and keep the first of other values."""
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in (part.performance or {}).items():
            if isinstance(value, list) and isinstance(found.get(key), list):
                found[key] = found[key] + [row for row in value if row not in found[key]]
            else:
                found.setdefault(key, value)
    return found or None

"""`verify`: everything that a report claims, computed again from its evidence and the mandatory lists."""

from __future__ import annotations

import fnmatch
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report

LISTS = ("unsupported", "expected_failures", "waivers")


def disagreements(data: Mapping[str, Any]) -> list[str]:
    """What a document that keeps to the schema claims, and does not follow from the rest of it; a sentence each.

    Raises `ReportError` where this kit has not the mandatory lists that the report was judged by.
    """
    report = Report.from_json(data)
    report.verify_version()
    if data["mandatory_digest"] != mandatory.digest():
        version, kit, commit = (report.run.get(key) for key in ("suite_version", "kit_version", "commit"))
        raise ReportError(
            f"the report was judged by other mandatory lists of version {version} than this kit has; use the kit that "
            f"made it: {kit}, commit {commit}"
        )
    found = [*_checks(data["checks"], report), *_names(report), *_totals(data, report)]
    if data["digest"] != document.digest(data):
        found.append(
            "the digest is not that of the content: something was changed after the report was written"
        )
    return found


def seed_of(seed: int, name: str) -> int:
    """A check's own seed, as `triton_porting_kit.conformance.context.Session.seed_of` derives it from the run's."""
    return zlib.crc32(f"{seed}:{name}".encode())


def _checks(claimed: Sequence[Mapping[str, Any]], report: Report) -> Iterator[str]:
    profile = report.run["profile"]
    entries = [(name, entry) for name in LISTS for entry in profile[name]]
    for claim, record in zip(claimed, report.records, strict=True):
        name = record.name
        for key, value in (
            ("status", str(record.status)),
            ("stage", record.stage),
            ("message", record.message),
        ):
            if claim[key] != value:
                yield f"{name}: its {key} is given as {claim[key]!r:.200}; its evidence says {value!r:.200}"
        if record.level != name.partition("/")[0]:
            yield f"{name}: it is counted to the level {record.level}"
        if record.seed != seed_of(report.run["seed"], name):
            yield f"{name}: its seed {record.seed} does not come from the run's, {report.run['seed']}"
        yield from (f"{name}: {what}" for what in _impossible(record))
        yield from (f"{name}: {what}" for what in _listing(record, entries, profile["capabilities"]))


def _impossible(record: Record) -> Iterator[str]:
    """Evidence that contradicts itself."""
    for item in record.evidence:
        if item["kind"] == "comparison":
            if item["differ"] > item["elements"]:
                yield f"{item['differ']} elements differ, of {item['elements']}"
            if not item["differ"] and (item.get("message") or "actual" in item):
                yield f"no element differs, yet one is shown: {item.get('message', '')}"
        if item["kind"] == "expectation" and item["holds"] and item.get("message"):
            yield f"it is said to hold that {item['what']}, yet what was found instead is shown: {item['message']}"


def _listing(
    record: Record, entries: Sequence[tuple[str, Mapping[str, Any]]], capabilities: Mapping[str, Any]
) -> Iterator[str]:
    """Whether the profile names the check as its record says."""
    listing = record.listing
    if listing is not None and listing.pattern == "capabilities" and listing.list == "unsupported":
        if not any(value is not None for value in capabilities.values()):
            yield "it is unsupported by the profile's capabilities, and those claim everything"
        return
    naming = [(name, entry) for name, entry in entries if fnmatch.fnmatchcase(record.name, entry["pattern"])]
    if listing is None:
        if naming:
            yield f"the profile lists it under {naming[0][0]}, and its record does not say so"
        return
    if not naming:
        yield f"it is said to be listed under {listing.list}, as {listing.pattern!r}; the profile has no such entry"
        return
    name, entry = naming[0]
    if (listing.list, listing.pattern, listing.reason) != (name, entry["pattern"], entry["reason"]):
        yield f"it is said to be listed under {listing.list}, as {listing.pattern!r}; the profile says {name}, {entry}"


def _names(report: Report) -> Iterator[str]:
    for name, count in Counter(record.name for record in report.records).items():
        if count > 1:
            yield f"{name}: there are {count} records of it"
    for name in report.not_run:
        if name in report.statuses:
            yield f"{name}: it is said not to have been run, and there is a record of it"


def _totals(data: Mapping[str, Any], report: Report) -> Iterator[str]:
    computed = report.to_json()
    for key in ("verdict", "complete", "counts"):
        if data[key] != computed[key]:
            yield f"the {key} of the run is given as {_text(data[key])}; the checks come to {_text(computed[key])}"
    claimed = {level["level"]: level for level in data["levels"]}
    for level in computed["levels"]:
        name = level["level"]
        if name not in claimed:
            yield f"level {name} is left out"
            continue
        for key, value in level.items():
            if claimed[name][key] != value:
                yield f"level {name}: {key} is given as {_text(claimed[name][key])}; it is {_text(value)}"


def _text(value: Any) -> str:
    return f"{json.dumps(value):.300}"

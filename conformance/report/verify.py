"""`verify`: recomputes all claims of a report from its evidence and the mandatory lists."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.conformance.profile import LISTS, Capabilities, Profile
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.seeds import seed_of

BY_CAPABILITIES = "capabilities"
"""The pattern of listings that come from a capability that the profile does not claim."""


def disagreements(data: Mapping[str, Any]) -> list[str]:
    """The claims of a document that do not follow from its evidence, as sentences. The document matches the schema.

    Raises `ReportError` if this kit does not have the mandatory lists that the report was judged by.
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
        found.append("the digest does not match the content: the report was changed after it was written")
    return found


def _checks(claimed: Sequence[Mapping[str, Any]], report: Report) -> Iterator[str]:
    profile = _profile(report.run["profile"])
    known = _catalogue(report) if profile.capabilities != Capabilities() else {}
    for claim, record in zip(claimed, report.records, strict=True):
        name = record.name
        for key, value in (
            ("status", str(record.status)),
            ("stage", record.stage),
            ("message", record.message),
        ):
            if claim[key] != value:
                yield f"{name}: it claims the {key} {claim[key]!r:.200}; its evidence gives {value!r:.200}"
        if record.level != name.partition("/")[0]:
            yield f"{name}: it is counted under the level {record.level}"
        if record.seed != seed_of(report.run["seed"], name):
            yield f"{name}: its seed {record.seed} is not derived from the run's, {report.run['seed']}"
        yield from (f"{name}: {what}" for what in _impossible(record))
        if what := _wrong_listing(record, profile, known.get(name)):
            yield f"{name}: {what}"


def _impossible(record: Record) -> Iterator[str]:
    """Evidence that contradicts itself."""
    for item in record.evidence:
        if item["kind"] == "comparison":
            if item["differ"] > item["elements"]:
                yield f"{item['differ']} elements differ, but there are only {item['elements']}"
            if not item["differ"] and (item.get("message") or "actual" in item):
                yield f"no element differs, but one is shown: {item.get('message', '')}"
        if item["kind"] == "expectation" and item["holds"] and item.get("message"):
            yield f"the expectation {item['what']!r} is marked as met, but has a message: {item['message']}"


def _wrong_listing(record: Record, profile: Profile, check: Check | None) -> str:
    """Compare a record's listing with the profile's. Returns the disagreement, or an empty string.

    `check`: the check in this kit's catalogue; None if it is unknown, for example with another release of Triton.
    """
    claimed = record.listing
    limits = profile.capabilities != Capabilities()
    if check is None and limits and claimed is not None and claimed.pattern == BY_CAPABILITIES:
        return ""  # the capabilities that it needs are unknown
    expected = profile.listing(check or Check(record.name, record.requirement, _nothing))
    if claimed == expected:
        return ""
    if claimed is None:
        assert expected is not None
        return f"the profile lists it under {expected.list}, but its record does not"
    said = f"it claims to be listed under {claimed.list}, as {claimed.pattern!r}"
    return f"{said}; the profile has {expected}" if expected else f"{said}; the profile has no such entry"


def _nothing(context: Context) -> None:
    """The body of a placeholder check, which is never run."""


def _profile(data: Mapping[str, Any]) -> Profile:
    """Rebuild a profile from the result of `Profile.to_json`."""
    limits: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in data["capabilities"].items()
        if key in ("types", "atomics", "features", "maximum_tile", "torch_dtypes")
    }
    entries = [
        Listing(name, entry["pattern"], entry["reason"], entry.get("link", ""))
        for name in LISTS
        for entry in data[name]
    ]
    return Profile(capabilities=Capabilities(**limits), entries=tuple(entries))


def _catalogue(report: Report) -> dict[str, Check]:
    """The checks of this kit, with the capabilities that they need; of random programs, only those in the report."""
    from triton_porting_kit.conformance import catalogue
    from triton_porting_kit.conformance.stress.checks import DEFAULT_COUNT, program_of_run

    found = {
        check.name: check
        for check in catalogue.checks([level for level in DEFAULT_LEVELS if level != "stress"])
    }
    count, seed = int(report.options.get("stress") or DEFAULT_COUNT), report.run["seed"]
    for name in report.statuses:
        number = re.fullmatch(r"stress/programs/([0-9]{5,7})", name)
        if number and int(number[1]) < count:
            check = program_of_run(seed, int(number[1]))
            found[check.name] = check
    return found


def _names(report: Report) -> Iterator[str]:
    for name, count in Counter(record.name for record in report.records).items():
        if count > 1:
            yield f"{name}: there are {count} records of it"
    for name in report.not_run:
        if name in report.statuses:
            yield f"{name}: it is listed as not run, but there is a record of it"


def _totals(data: Mapping[str, Any], report: Report) -> Iterator[str]:
    computed = report.to_json()
    for key in ("verdict", "complete", "counts"):
        if data[key] != computed[key]:
            yield f"the run claims {key} = {_text(data[key])}; its checks give {_text(computed[key])}"
    claimed = {level["level"]: level for level in data["levels"]}
    for level in computed["levels"]:
        name = level["level"]
        if name not in claimed:
            yield f"level {name} is missing"
            continue
        for key, value in level.items():
            if claimed[name][key] != value:
                yield f"level {name} claims {key} = {_text(claimed[name][key])}; its checks give {_text(value)}"


def _text(value: Any) -> str:
    return f"{json.dumps(value):.300}"

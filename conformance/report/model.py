"""`Report`: the records of a run, and the verdicts computed from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.mandatory import SUITE_VERSION, Release
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.status import BAD, Status, Verdict, verdict

LATEST: Release = (98, 0)
"""The release assumed for a run that could not find Triton: all checks of the newest release are mandatory."""
GOOD = frozenset({Verdict.PASS, Verdict.CONDITIONAL, Verdict.EXPECTED})
"""Verdicts of a run without undeclared failures."""


@dataclass(frozen=True)
class LevelResult:
    """The result of a level."""

    level: str
    asked: bool
    """Whether the run requested this level."""
    verdict: Verdict
    counts: dict[Status, int]
    """The number of checks by status, without statuses that did not occur."""
    mandatory: int
    """The number of mandatory checks."""
    missing: tuple[str, ...]
    """Mandatory checks that have no record."""

    @property
    def run(self) -> int:
        return sum(self.counts.values())

    def to_json(self) -> dict[str, Any]:
        """The result as JSON. If nothing was run, the missing names are omitted: they are the whole mandatory list."""
        return {
            "level": self.level,
            "asked": self.asked,
            "verdict": str(self.verdict),
            "counts": {str(status): count for status, count in self.counts.items()},
            "mandatory": self.mandatory,
            "missing_count": len(self.missing),
            "missing": list(self.missing) if self.run else [],
        }


@dataclass(frozen=True)
class Report:
    """A run: its metadata, and the record of each check."""

    run: dict[str, Any]
    """The metadata of ``run.json``, without the names of checks."""
    records: tuple[Record, ...]
    not_run: tuple[str, ...] = ()
    """Planned checks without a record."""
    not_applicable: tuple[str, ...] = ()
    """Checks that do not apply to this backend."""
    damaged: int = 0
    """Lines of the run's records that could not be read."""
    performance: dict[str, Any] | None = None
    """Performance figures, which do not affect verdicts."""

    @cached_property
    def statuses(self) -> dict[str, Status]:
        """The status of each check, by name."""
        return {record.name: record.status for record in self.records}

    @cached_property
    def counts(self) -> dict[Status, int]:
        """The number of checks with each status."""
        return _counted(self.statuses.values())

    @property
    def options(self) -> Mapping[str, Any]:
        options: Mapping[str, Any] = self.run["options"]
        return options

    @property
    def complete(self) -> bool:
        """Whether the run finished."""
        return bool(self.run["complete"]) and not self.not_run

    @property
    def whole(self) -> bool:
        """Whether the run finished and covered all checks of its levels, without selection or shards."""
        return self.complete and not self.options.get("select") and not self.options.get("shard")

    @property
    def asked(self) -> tuple[str, ...]:
        """The levels that the run was to try."""
        wanted = self.options.get("levels") or DEFAULT_LEVELS
        return tuple(level for level in LEVELS if level in wanted)

    @property
    def compile_only(self) -> bool:
        """Whether kernels were compiled and not run."""
        return bool(self.options.get("compile_only"))

    @cached_property
    def levels(self) -> tuple[LevelResult, ...]:
        """What each level comes to."""
        return tuple(self._level(level) for level in LEVELS if level in self.asked or level in DEFAULT_LEVELS)

    @cached_property
    def verdict(self) -> Verdict:
        """The worst verdict of the requested levels. A run without checks does not pass."""
        found = [result.verdict for result in self.levels if result.asked or result.run]
        if not self.records or not found:
            return Verdict.NOT_RUN
        if Verdict.FAIL in found:
            return Verdict.FAIL
        if not GOOD.issuperset(found):
            return Verdict.INCOMPLETE
        return next(
            (worst for worst in (Verdict.EXPECTED, Verdict.CONDITIONAL) if worst in found), Verdict.PASS
        )

    def gone(self, result: LevelResult) -> tuple[str, ...]:
        """Mandatory checks without a record, in a run that covered the whole level."""
        if result.level == "stress" and self.options.get("stress"):
            return ()  # the number of programs was chosen by an option
        return result.missing if self.whole and result.asked else ()

    @property
    def bad(self) -> int:
        """The number of checks that failed in any way."""
        return sum(self.counts.get(status, 0) for status in BAD)

    def mandatory(self, level: str) -> tuple[str, ...]:
        """The names of the mandatory checks of a level. Raises `ReportError` for another version of the suite."""
        self.verify_version()
        if LEVELS[level].optional:
            return self._planned(level)
        return mandatory.names(
            level,
            release_of(str(self.run["triton_version"])),
            kit=not str(self.run["device"].get("memory", "")).startswith("torch"),
            compile_only=self.compile_only,
        )

    def _planned(self, level: str) -> tuple[str, ...]:
        """The checks that a run planned of a level."""
        return tuple(name for name in (*self.statuses, *self.not_run) if name.startswith(f"{level}/"))

    def verify_version(self) -> None:
        """Raise `ReportError` if this kit lacks the mandatory lists of the report's version of the suite."""
        if self.run["suite_version"] != SUITE_VERSION:
            raise ReportError(
                f"the report is of version {self.run['suite_version']} of the suite, but this kit has the mandatory "
                f"lists of version {SUITE_VERSION}; use a release of the kit with version {self.run['suite_version']}"
            )

    def _level(self, level: str) -> LevelResult:
        statuses = {name: status for name, status in self.statuses.items() if name.startswith(f"{level}/")}
        names = self.mandatory(level)
        missing = tuple(name for name in names if name not in statuses)
        found = verdict(statuses, names)
        result = LevelResult(
            level, level in self.asked, found, _counted(statuses.values()), len(names), missing
        )
        if LEVELS[level].optional and found in GOOD and not self.whole:
            return replace(result, verdict=Verdict.INCOMPLETE)
        if found is Verdict.INCOMPLETE and self.gone(result):
            return replace(result, verdict=Verdict.FAIL)
        return result

    def to_json(self) -> dict[str, Any]:
        """The content of ``report.json`` without its digest."""
        return {
            "run": self.run,
            "verdict": str(self.verdict),
            "complete": self.complete,
            "counts": {str(status): count for status, count in self.counts.items()},
            "levels": [result.to_json() for result in self.levels],
            "not_run": list(self.not_run),
            "not_applicable": list(self.not_applicable),
            "damaged": self.damaged,
            "performance": self.performance,
            "checks": [record.to_json() for record in self.records],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Create a report from the result of `to_json`. Statuses and verdicts are recomputed, not read."""
        return cls(
            run=dict(data["run"]),
            records=tuple(map(Record.from_json, data["checks"])),
            not_run=tuple(data["not_run"]),
            not_applicable=tuple(data["not_applicable"]),
            damaged=data["damaged"],
            performance=data["performance"],
        )


def release_of(version: str) -> Release:
    """Major and minor version of Triton; `LATEST` if the version is unknown. Raises `ReportError`."""
    if not version:
        return LATEST
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", version)
    if match is None:
        raise ReportError(f"{version!r:.80} is not a version of Triton, such as 3.9.0")
    return int(match[1]), int(match[2])


def _counted(statuses: Iterable[Status]) -> dict[Status, int]:
    counts = Counter(statuses)
    return {status: counts[status] for status in Status if status in counts}

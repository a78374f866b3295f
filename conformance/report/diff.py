"""`diff`: the differences between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.order import badness
from triton_porting_kit.conformance.status import BAD, Status

_FACTS = (
    "suite_version",
    "kit_version",
    "commit",
    "triton_version",
    "toolchain",
    "backend",
    "target",
    "device",
    "profile",
    "seed",
    "options",
)
_RANKS = {status: 5 if status in BAD else badness(status) for status in Status}
_RANKS[Status.UNEXPECTED_PASS] = 0
"""The ranks of statuses. Those with the same rank are neither better nor worse than each other."""


@dataclass(frozen=True)
class Change:
    """A check whose status changed."""

    name: str
    old: Status | None
    """The old status; None if the old run has no record of the check."""
    new: Status | None
    message: str = ""
    """What is wrong in the new run."""

    @property
    def worse(self) -> bool:
        """Whether the change makes the result worse. A missing check is always worse."""
        if self.new is None:
            return True
        if self.old is None:
            return self.new in BAD
        return _RANKS[self.new] > _RANKS[self.old]

    def __str__(self) -> str:
        text = f"{self.name}: {self.old or 'none'} -> {self.new or 'none'}"
        return f"{text}  {self.message}" if self.message else text


@dataclass(frozen=True)
class Difference:
    """The differences between two runs."""

    groups: dict[str, list[Change]]
    """``newly failing``, ``newly passing``, ``changed``, ``new`` and ``gone``. All keys are present."""
    verdicts: list[tuple[str, str, str]]
    """Level, old verdict and new verdict, for levels whose verdict changed."""
    facts: list[tuple[str, Any, Any]]
    """Other differences between the runs, such as versions, device and seed: key, old value, new value."""

    @property
    def worse(self) -> list[Change]:
        """The changes that make the result worse."""
        return [change for changes in self.groups.values() for change in changes if change.worse]


def diff(old: Report, new: Report) -> Difference:
    """The differences from `old` to `new`. Checks of levels that `new` did not request do not count as gone."""
    groups: dict[str, list[Change]] = {
        key: [] for key in ("newly failing", "newly passing", "changed", "new", "gone")
    }
    before, after = old.statuses, new.statuses
    records = {record.name: record for record in new.records}
    for name, status in after.items():
        previous = before.get(name)
        if previous is status:
            continue
        change = Change(name, previous, status, _message(records[name]))
        if previous is None:
            groups["new"].append(change)
        elif status in BAD and previous not in BAD:
            groups["newly failing"].append(change)
        elif status is Status.PASS:
            groups["newly passing"].append(change)
        else:
            groups["changed"].append(change)
    for name, status in before.items():
        if name not in after and name.partition("/")[0] in new.asked:
            groups["gone"].append(Change(name, status, None))
    return Difference(groups, _verdicts(old, new), _facts(old.run, new.run))


def _message(record: Record) -> str:
    return record.message.strip().partition("\n")[0][:200]


def _verdicts(old: Report, new: Report) -> list[tuple[str, str, str]]:
    if old.run["suite_version"] != new.run["suite_version"]:
        return []
    pairs = zip(old.levels, new.levels, strict=True)
    return [(a.level, str(a.verdict), str(b.verdict)) for a, b in pairs if a.verdict is not b.verdict]


def _facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(key, old.get(key), new.get(key)) for key in _FACTS if old.get(key) != new.get(key)]

"""Grouping of similar failures: a chip that rejects everything fails for one reason, not for 13,000."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import BAD, Status


@dataclass(frozen=True)
class Group:
    """Checks with the same status and stage, whose messages differ only in numbers and quoted strings."""

    status: Status
    stage: str
    message: str
    """The first line of the first check's message."""
    records: tuple[Record, ...]


def groups(records: Iterable[Record]) -> list[Group]:
    """Group the failed checks, in the order of the first check of each group."""
    found: dict[tuple[Status, str, str], list[Record]] = {}
    for record in records:
        status = record.status
        if status in BAD:
            found.setdefault((status, record.stage, _pattern(record)), []).append(record)
    return [
        Group(status, stage, first_line(same[0]), tuple(same)) for (status, stage, _), same in found.items()
    ]


def first_line(record: Record) -> str:
    """The failure in one line."""
    line = record.message.strip().partition("\n")[0].strip()
    if line:
        return line
    return "nothing was compared" if record.evidence else "the check left no evidence"


def _pattern(record: Record) -> str:
    """The common part of messages of one kind, without values that vary from check to check."""
    for item in record.evidence:
        if item["kind"] == "comparison" and item["differ"]:
            return "some elements differ" if item["differ"] < item["elements"] else "all elements differ"
    line = first_line(record).replace(record.name, "…")[:300]
    line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", line)
    return re.sub(r"'[^']*'", "'…'", line)

"""Statistics of compiled binaries as text and as a table: registers, on-chip memory, matrix instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Evidence

_NUMBERS = {
    "vgprs": "VGPRs",
    "agprs": "AGPRs",
    "sgprs": "SGPRs",
    "lds": "bytes of LDS",
    "scratch": "bytes of scratch",
    "spills": "spilled registers",
    "instructions": "instructions",
}
_SHOWN = 4
"""The number of matrix instructions that a row of the table names."""


def facts(item: Evidence) -> tuple[tuple[str, str], ...]:
    """The facts about a code object in an item of evidence, as names and values."""
    held: Mapping[str, Any] = item.get("code_object") or {}
    if not held:
        return ()
    found = [("architecture", str(held.get("arch", "")))]
    found += [(name, f"{held[key]:,}") for key, name in _NUMBERS.items() if held.get(key)]
    if matrix := held.get("matrix"):
        found.append(("matrix instructions", ", ".join(f"{count} {name}" for name, count in matrix.items())))
    return tuple(found)


def line(record: Record) -> str:
    """The code objects of a check in one line; empty if there are none."""
    parts = []
    for item in record.evidence:
        if held := item.get("code_object"):
            words = [f"{held[key]:,} {name}" for key, name in _NUMBERS.items() if held.get(key)]
            words += [f"{count} {name}" for name, count in held.get("matrix", {}).items()]
            parts.append(f"{item.get('what', item['kind'])}: {', '.join(words)}")
    return "; ".join(parts)


@dataclass
class Group:
    """The code objects of a group of checks, whose names have the same prefix."""

    name: str
    count: int = 0
    most: dict[str, int] = field(default_factory=dict)
    """The largest number of each kind."""
    spilled: int = 0
    """The number of code objects that spill registers."""
    matrix: Counter[str] = field(default_factory=Counter)
    """The number of code objects that contain each matrix instruction."""

    def add(self, held: Mapping[str, Any]) -> None:
        """Count a code object."""
        self.count += 1
        for key in _NUMBERS:
            self.most[key] = max(self.most.get(key, 0), int(held.get(key, 0)))
        self.spilled += bool(held.get("spills"))
        self.matrix.update(held.get("matrix", {}).keys())

    def row(self) -> list[str]:
        """The cells of the group's row in the table."""
        names = [f"{name} ({count})" for name, count in self.matrix.most_common(_SHOWN)]
        if (more := len(self.matrix) - _SHOWN) > 0:
            names.append(f"and {more} more")
        numbers = [f"{self.most[key]:,}" for key in ("vgprs", "agprs", "sgprs", "lds")]
        return [self.name, f"{self.count:,}", *numbers, f"{self.spilled:,}", ", ".join(names)]


COLUMNS = (
    "checks",
    "code objects",
    "VGPRs",
    "AGPRs",
    "SGPRs",
    "LDS bytes",
    "with spills",
    "matrix instructions",
)
"""The columns of the table. Numbers are the maximum of a group."""


def rows(records: Iterable[Record]) -> Iterator[list[str]]:
    """The rows of the table, one for each group of checks, in the order of the run."""
    groups: dict[str, Group] = {}
    for record in records:
        for item in record.evidence:
            if held := item.get("code_object"):
                name = record.name.rpartition("/")[0]
                groups.setdefault(name, Group(name)).add(held)
    return (group.row() for group in groups.values())

"""The results of each operation of the language on each element type, as a matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.conformance.types import KINDS


class Mark(StrEnum):
    """The summary of a cell. Each mark also has a symbol, so that colours are not needed to distinguish them."""

    PASS = "pass"
    PARTIAL = "partial"
    """Some pass, some fail."""
    FAIL = "fail"
    DECLARED = "declared"
    """None fails, but not all pass: some are expected failures, waived or unsupported."""
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not run"


@dataclass
class Cell:
    """The checks of an operation on a type."""

    passed: int = 0
    failed: int = 0
    unsupported: int = 0
    declared: int = 0
    not_run: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.unsupported + self.declared + self.not_run

    @property
    def mark(self) -> Mark:
        if self.failed:
            return Mark.PARTIAL if self.passed else Mark.FAIL
        if self.not_run:
            return Mark.NOT_RUN
        if self.passed == self.total:
            return Mark.PASS
        return Mark.UNSUPPORTED if self.unsupported == self.total else Mark.DECLARED

    @property
    def label(self) -> str:
        """The number of checks that pass, and the total if they differ."""
        return str(self.total) if self.passed == self.total else f"{self.passed}/{self.total}"

    def add(self, status: Status | None) -> None:
        """Count a check; None: it was not run."""
        if status is None:
            self.not_run += 1
        elif status in BAD:
            self.failed += 1
        elif status is Status.UNSUPPORTED:
            self.unsupported += 1
        elif status is Status.PASS:
            self.passed += 1
        else:
            self.declared += 1

    def merge(self, other: Cell) -> None:
        """Count another cell's checks."""
        for name in ("passed", "failed", "unsupported", "declared", "not_run"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Section:
    """A group of operations."""

    name: str
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)
    """Cells by operation and type."""

    @property
    def columns(self) -> list[str]:
        """The types that occur, in the order of the language's table."""
        found = {kind for cells in self.rows.values() for kind in cells}
        return [kind for kind in KINDS if kind in found]

    @property
    def total(self) -> dict[str, Cell]:
        """The sum of all operations, by type."""
        found: dict[str, Cell] = {}
        for cells in self.rows.values():
            for kind, cell in cells.items():
                found.setdefault(kind, Cell()).merge(cell)
        return found

    @property
    def cell(self) -> Cell:
        """The sum of the section."""
        whole = Cell()
        for cell in self.total.values():
            whole.merge(cell)
        return whole


_NAME = re.compile(rf"language/(?P<section>[\w.-]+)/(?P<op>\w+)-(?P<kind>{'|'.join(KINDS)})-.+")


def matrix(statuses: Mapping[str, Status], missing: Iterable[str]) -> list[Section]:
    """The sections of the language, from the statuses of checks by name, and the names of checks without one."""
    sections: dict[str, Section] = {}
    everything: dict[str, Status | None] = {**statuses, **{n: None for n in missing if n not in statuses}}
    for name, status in everything.items():
        if match := _NAME.fullmatch(name):
            section = sections.setdefault(match["section"], Section(match["section"]))
            section.rows.setdefault(match["op"], {}).setdefault(match["kind"], Cell()).add(status)
    return list(sections.values())

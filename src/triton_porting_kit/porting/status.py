"""`tpk status`: the progress of a port, part by part, read from its sources and its last conformance reports."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.porting.parts import Part, State, parts_of
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.untrusted import shown

REPORTS = "conformance-report"
"""The folder of `tpk conform`'s reports; reports of selections are in a subfolder."""

_STYLES = {
    State.VIRTUAL: "yellow",
    State.KIT: "green",
    State.OWN: "green",
    State.MISSING: "bold red",
}


def run_status(root: Path, reports: Path | None, *, as_json: bool = False) -> int:
    """Print the parts. The exit status is 1 if a hook is missing."""
    repository = Repository(root.resolve())
    backend = repository.backend
    parts = parts_of(repository, reports or repository.root / REPORTS)
    counts = Counter(part.state for part in parts)
    own, kit = counts[State.OWN], counts[State.KIT]
    about_virtual = [test for test in repository.tests if test.about_virtual]
    if as_json:
        data = {
            "backend": backend,
            "own": own,
            "kit": kit,
            "parts": [part.to_json() for part in parts],
            "virtual_tests": [f"{test.place.file}::{test.name}" for test in about_virtual],
        }
        print(json.dumps(data, indent=1))
    else:
        console = Console(width=None if sys.stdout.isatty() else 132)
        _print(console, parts)
        for file, tests in groupby(about_virtual, key=lambda test: test.place.file):
            names = ", ".join(test.name for test in tests)
            console.print(f"{file} tests the virtual NPU: {names}", highlight=False, markup=False)
        more = f", {kit} the kit's" if kit else ""
        console.print(f"{backend}: {own} of {len(parts)} parts are the vendor's own{more}", highlight=False)
    return int(any(part.state is State.MISSING for part in parts))


def _print(console: Console, parts: list[Part]) -> None:
    table = Table("part", "whose", "where", "checks", "last result", box=None, pad_edge=False)
    for column in (0, 1, 2, 4):
        table.columns[column].no_wrap = True
    for part in parts:
        table.add_row(
            part.name,
            Text(part.state, _STYLES[part.state]),
            Text(shown(part.place or "")),
            Text(", ".join(part.checks)),
            _result(part.results or {}) if part.checks else "",
        )
    console.print(table, highlight=False)


def _result(results: Mapping[Status, int]) -> Text:
    if not results:
        return Text("not run", "dim")
    text = Text()
    for number, (status, count) in enumerate(_worst_first(results)):
        style = "bold red" if status in BAD else "green" if status is Status.PASS else "yellow"
        text.append(", " if number else "").append(f"{count} {status}", style)
    return text


def _worst_first(results: Mapping[Status, int]) -> Iterator[tuple[Status, int]]:
    yield from ((status, count) for status, count in results.items() if status in BAD)
    yield from ((status, count) for status, count in results.items() if status not in BAD)

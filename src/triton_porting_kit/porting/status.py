"""`tpk status`: how far a port is, part by part, read from its sources and its last conformance reports."""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triton_porting_kit.conformance.report.commands import load
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.driver import HOOKS
from triton_porting_kit.porting.sources import Function, Place, Repository

REPORTS = "conformance-report"
"""Where `tpk conform` leaves reports; those of selections lie in a folder in it."""
_VIRTUAL = re.compile(r"\bvnpu_\w+\s*\(")


class State(StrEnum):
    """Whose a part is."""

    VIRTUAL = "virtual NPU"
    OWN = "own"
    MISSING = "missing"


_STYLES = {State.VIRTUAL: "yellow", State.OWN: "green", State.MISSING: "bold red"}


@dataclass(frozen=True)
class Part:
    """A hook of the device, or another step of a port."""

    name: str
    state: State
    place: Place | None
    checks: tuple[str, ...]
    """Patterns for names of checks."""
    results: Mapping[Status, int]
    """How many of those checks ended how, when they were last tried."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": str(self.state),
            "file": self.place.file if self.place else None,
            "line": self.place.line if self.place else None,
            "checks": list(self.checks),
            "results": {str(status): count for status, count in self.results.items()},
        }


@dataclass(frozen=True)
class _Step:
    """A step that is no hook: the virtual NPU's as long as something of the kit's for it is used."""

    name: str
    sign: str
    """In `file` a regular expression, else a name that the package uses."""
    file: str
    checks: tuple[str, ...]


_STEPS = (
    _Step(
        "runtime library",
        r"find_package\(vnpu\b",
        "CMakeLists.txt",
        ("registration/discovery/driver-active",),
    ),
    _Step("target", "CpuTarget", "", ("registration/stages/*", "language/*")),
    _Step("binary", "link_shared_object", "", ("registration/stages/binary", "runtime/modules/*")),
)
_LAUNCHER_CHECKS = ("runtime/arguments/*", "runtime/structures/*", "runtime/grids/*", "runtime/refusals/*")


def parts_of(repository: Repository, reports: Path) -> list[Part]:
    """Every part of a port in the order in which it is replaced. Raises `PortingKitError`."""
    last = _last_results(reports)

    def part(name: str, state: State, place: Place | None, checks: tuple[str, ...]) -> Part:
        found = [
            status for check, status in last.items() if any(fnmatch.fnmatchcase(check, p) for p in checks)
        ]
        counts = Counter(found)
        return Part(name, state, place, checks, {s: counts[s] for s in Status if s in counts})

    steps = {step.name: part(step.name, *_step(repository, step), step.checks) for step in _STEPS}
    hooks = {name: part(name, *_hook(repository, name), hook.checks) for name, hook in HOOKS.items()}
    entry = hooks["launch_entry"]
    symbol = repository.use("RuntimeSymbol")
    launcher = part(
        "launcher",
        State.OWN if symbol or entry.state is not State.VIRTUAL else State.VIRTUAL,
        symbol or repository.subclass("Launcher") or entry.place,
        _LAUNCHER_CHECKS,
    )
    return [steps["runtime library"], *hooks.values(), launcher, steps["target"], steps["binary"]]


def _step(repository: Repository, step: _Step) -> tuple[State, Place | None]:
    sign = repository.line(step.file, step.sign) if step.file else repository.use(step.sign)
    if sign:
        return State.VIRTUAL, sign
    if step.file:
        return State.OWN, repository.line(step.file, ".")
    return State.OWN, repository.subclass("Backend")


def _hook(repository: Repository, name: str) -> tuple[State, Place | None]:
    """Whose a hook is: the virtual NPU's if a C++ function behind it calls the virtual NPU's runtime."""
    method = repository.method(name)
    if method is None or method.raises:
        # A device need not have a native launch routine.
        optional = method is None and HOOKS[name].optional
        return State.OWN if optional else State.MISSING, method.place if method else _class(repository)
    natives = [native for native in method.natives if native not in ("context", "Device")]
    natives.sort(key=lambda native: native != name)
    behind: list[Function] = []
    for native in natives:
        found = repository.functions.get(native, [])
        if not found and repository.bound(native) is None:
            return State.MISSING, method.place
        behind += found
    if name == "launch_entry" and any(re.search(r"(->|\.)\s*launch\s*\(", f.body) for f in behind):
        behind += repository.functions.get("launch", [])
    for function in behind:
        if _VIRTUAL.search(function.body):
            return State.VIRTUAL, function.place
    if behind:
        return State.OWN, behind[0].place
    return State.OWN, repository.bound(natives[0]) if natives else method.place


def _class(repository: Repository) -> Place:
    path, cls = repository.device
    return Place(path.relative_to(repository.root).as_posix(), cls.lineno)


def _last_results(reports: Path) -> dict[str, Status]:
    """The last status of each check, of a run of everything and of one of a selection."""
    found = []
    for folder in (reports, reports / "selected"):
        try:
            report = load(folder)
        except ReportError:
            continue  # there is none, or it is another kit's
        found.append((str(report.run.get("start", "")), report.statuses))
    return {
        name: status
        for _, statuses in sorted(found, key=lambda run: run[0])
        for name, status in statuses.items()
    }


# --- output ----------------------------------------------------------------------------------------------


def run_status(root: Path, reports: Path | None, *, as_json: bool = False) -> int:
    """Print the parts. The exit status is 1 if a hook is missing."""
    repository = Repository(root.resolve())
    backend = repository.backend
    parts = parts_of(repository, reports or repository.root / REPORTS)
    own = sum(part.state is State.OWN for part in parts)
    if as_json:
        data = {"backend": backend, "own": own, "parts": [part.to_json() for part in parts]}
        print(json.dumps(data, indent=1))
    else:
        _print(parts, f"{backend}: {own} of {len(parts)} parts are the vendor's own")
    return int(any(part.state is State.MISSING for part in parts))


def _print(parts: list[Part], summary: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else 132)
    table = Table("part", "whose", "where", "checks", "last result", box=None, pad_edge=False)
    for column in (0, 1, 2, 4):
        table.columns[column].no_wrap = True
    for part in parts:
        table.add_row(
            part.name,
            Text(part.state, _STYLES[part.state]),
            str(part.place or ""),
            Text(", ".join(part.checks)),
            _result(part.results),
        )
    console.print(table, highlight=False)
    console.print(summary, highlight=False)


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

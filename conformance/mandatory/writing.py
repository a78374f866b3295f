"""Writes the mandatory lists from the catalogue, for all supported releases of Triton."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.conformance.mandatory import (
    FIRST,
    LAST,
    SUITE_VERSION,
    Entry,
    MandatoryListError,
    Release,
    path_of,
)
from triton_porting_kit.toolchain import compat

Row = tuple[str, bool, bool]
"""A check's name, whether it needs the kit's device, and whether it applies to compile-only runs."""

_LIST = """
import json, sys
from triton_porting_kit.toolchain import compat
compat.release = lambda: ({}, {})
from triton_porting_kit.conformance import catalogue
print(json.dumps([[c.name, c.kit_device, c.compiles] for c in catalogue.checks()]))
"""


def catalogue_of(release: Release) -> list[Row]:
    """The catalogue for a release of Triton, independent of the installed one, computed in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST.format(*release)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MandatoryListError(
            f"the catalogue for Triton {release[0]}.{release[1]} cannot be made:\n{done.stderr}"
        )
    return [(name, kit, compiles) for name, kit, compiles in json.loads(done.stdout)]


def combine(catalogues: Mapping[Release, Sequence[Row]]) -> list[Entry]:
    """Combine the catalogues of all releases into one list, in the order of the newest."""
    releases = sorted(catalogues)
    order: list[str] = []
    for release in reversed(releases):
        order = _woven(order, [name for name, _, _ in catalogues[release]])
    rows: dict[str, dict[Release, Row]] = {name: {} for name in order}
    for release in releases:
        for row in catalogues[release]:
            rows[row[0]][release] = row
    return [_entry(name, rows[name], releases) for name in order]


def _woven(order: list[str], more: Iterable[str]) -> list[str]:
    """Insert the names that only `more` has into `order`, each after its predecessor in `more`."""
    known = set(order)
    followers: dict[str, list[str]] = {}
    last = ""
    for name in more:
        if name in known:
            last = name
        else:
            followers.setdefault(last, []).append(name)
    return followers.get("", []) + [n for name in order for n in (name, *followers.get(name, ()))]


def _entry(name: str, rows: Mapping[Release, Row], releases: Sequence[Release]) -> Entry:
    having = [release in rows for release in releases]
    first, last = having.index(True), len(having) - 1 - having[::-1].index(True)
    if not all(having[first : last + 1]) or len(set(rows.values())) > 1:
        raise MandatoryListError(
            f"check {name} is missing in a release of Triton between others, or its tags differ: rename one of them"
        )
    _, kit, compiles = next(iter(rows.values()))
    since = releases[first] if first else FIRST
    until = releases[last] if last < len(releases) - 1 else LAST
    return Entry(name, kit, compiles, since, until)


def document(level: str, entries: Iterable[Entry]) -> str:
    """The text of the list of a level."""
    lines = [
        f"# Mandatory checks of the level {level}, version {SUITE_VERSION} of the suite.",
        "# Written by `make docs` from the catalogue; the form is described in conformance/mandatory/__init__.py.",
        "",
    ]
    for (head, tags), group in groupby(entries, key=lambda e: (_head(e.name), e.tags)):
        tails = [entry.name.removeprefix(head) for entry in group]
        if len(tails) > 1 and head.endswith("-"):
            names = [head + "{" + ",".join(tails) + "}"]
        else:
            names = [head + tail for tail in tails]
        lines += [name + "".join(f" [{tag}]" for tag in tags) for name in names]
    return "\n".join(lines) + "\n"


def _head(name: str) -> str:
    """The common prefix of checks that share a line: for checks of the language, up to the operation and the type."""
    match = re.fullmatch(r"(language/[\w.-]+/\w+-\w+-)[\w.-]+", name)
    return match[1] if match else name


def documents() -> dict[str, str]:
    """The lists of all levels, by level."""
    entries = combine({release: catalogue_of(release) for release in compat.TRIED})
    return {
        level: document(level, [e for e in entries if e.name.startswith(f"{level}/")])
        for level in DEFAULT_LEVELS
    }


def write(folder: Path | None = None) -> None:
    """Write the lists to `folder`, or to their place in the package."""
    for level, text in documents().items():
        path = path_of(level)
        (folder / path.name if folder else path).write_text(text, encoding="utf-8")

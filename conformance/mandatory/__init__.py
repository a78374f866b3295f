"""The checks that a backend must pass, by level. The lists are under version control, so removals are noticed.

A list is a text file with one name per line. Names that differ only in their last part share a line:
``language/arithmetic/add-i1-{scalar,tile_1}``. Tags after a name limit it: ``[kit]`` to devices made with the kit,
``[since 3.7]`` and ``[until 3.8]`` to releases of Triton. ``[compiles]`` means that the check is also mandatory in
compile-only runs. ``python -m triton_porting_kit.conformance.mandatory`` writes the lists from the catalogue.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.errors import PortingKitError

SUITE_VERSION = "1"
"""The version of the lists, which changes when a release of the kit changes a list. Verdicts are comparable only within
one version."""

Release = tuple[int, int]

FIRST: Release = (0, 0)
LAST: Release = (99, 0)


class MandatoryListError(PortingKitError):
    """A list cannot be read or written."""


@dataclass(frozen=True)
class Entry:
    """A mandatory check."""

    name: str
    kit: bool = False
    """Whether it is mandatory only for devices made with the kit."""
    compiles: bool = False
    """Whether it is also mandatory in compile-only runs."""
    since: Release = FIRST
    until: Release = LAST

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags, as written in lists."""
        found = [name for name in ("kit", "compiles") if getattr(self, name)]
        found += [f"since {self.since[0]}.{self.since[1]}"] if self.since > FIRST else []
        found += [f"until {self.until[0]}.{self.until[1]}"] if self.until < LAST else []
        return tuple(found)

    def applies(self, release: Release, *, kit: bool, compile_only: bool) -> bool:
        """Whether it is mandatory for a run."""
        if not self.since <= release <= self.until:
            return False
        if compile_only:
            return self.compiles and not self.kit
        return kit or not self.kit


def names(level: str, release: Release, *, kit: bool = True, compile_only: bool = False) -> tuple[str, ...]:
    """The mandatory checks of a level for a release of Triton.

    `kit`: memory is accessed through the kit's `Device`. `compile_only`: kernels do not run.
    """
    return tuple(e.name for e in entries(level) if e.applies(release, kit=kit, compile_only=compile_only))


def path_of(level: str) -> Path:
    """The file of a level's list."""
    return Path(__file__).parent / f"{level}.txt"


@cache
def digest() -> str:
    """A digest of all lists, which identifies them while a version is not released yet."""
    content = b"".join(path_of(level).read_bytes() for level in LEVELS if path_of(level).is_file())
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@cache
def entries(level: str) -> tuple[Entry, ...]:
    """The whole list of a level; empty if there is none yet. Raises `MandatoryListError`."""
    path = path_of(level)
    return tuple(parse(path.read_text(encoding="utf-8"))) if path.is_file() else ()


_LINE = re.compile(r"(?P<head>[\w./-]+?)(?:\{(?P<tails>[\w.,-]+)\})?(?P<tags>(?: \[[^\]]+\])*)")


def parse(text: str) -> Iterator[Entry]:
    """Parse the entries of a list. Raises `MandatoryListError`."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise MandatoryListError(
                f"line {number} of a mandatory list is not the name of a check: {line!r:.100}"
            )
        tags = re.findall(r"\[([^\]]+)\]", match["tags"])
        for tail in (match["tails"] or "").split(","):
            yield _tagged(match["head"] + tail, tags, number)


def _tagged(name: str, tags: Iterable[str], number: int) -> Entry:
    fields: dict[str, object] = {}
    for tag in tags:
        word, _, value = tag.partition(" ")
        if tag in ("kit", "compiles"):
            fields[tag] = True
        elif word in ("since", "until") and re.fullmatch(r"\d+\.\d+", value):
            major, minor = value.split(".")
            fields[word] = (int(major), int(minor))
        else:
            raise MandatoryListError(f"line {number} of a mandatory list has the unknown tag [{tag}]")
    return Entry(name, **fields)  # type: ignore[arg-type]

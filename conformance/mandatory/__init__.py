"""The checks that a backend must pass, by level: lists that are checked in, so that one that goes away is seen.

A list is a text file with one name a line. Names that differ in their last part only share a line:
``language/arithmetic/add-i1-{scalar,tile_1}``. What follows a name limits it: ``[kit]`` to devices made with the kit,
``[since 3.7]`` and ``[until 3.8]`` to releases of Triton; ``[compiles]`` says that it is mandatory where kernels are
compiled only, too. ``python -m triton_porting_kit.conformance.mandatory`` writes the lists from the catalogue.
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
"""Changes whenever a list does in a release of the kit: verdicts are compared only within one version."""

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
    """Only of devices that are made with the kit."""
    compiles: bool = False
    """Also where kernels are compiled only."""
    since: Release = FIRST
    until: Release = LAST

    @property
    def tags(self) -> tuple[str, ...]:
        """What limits it, as lists write it."""
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

    `kit`: memory is reached through the kit's `Device`. `compile_only`: nothing runs.
    """
    return tuple(e.name for e in entries(level) if e.applies(release, kit=kit, compile_only=compile_only))


def path_of(level: str) -> Path:
    """The file of a level's list."""
    return Path(__file__).parent / f"{level}.txt"


@cache
def digest() -> str:
    """Of all lists: which they were, where a version has not been released yet."""
    content = b"".join(path_of(level).read_bytes() for level in LEVELS if path_of(level).is_file())
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@cache
def entries(level: str) -> tuple[Entry, ...]:
    """The whole list of a level; empty where there is none yet. Raises `MandatoryListError`."""
    path = path_of(level)
    return tuple(parse(path.read_text(encoding="utf-8"))) if path.is_file() else ()


_LINE = re.compile(r"(?P<head>[\w./-]+?)(?:\{(?P<tails>[\w.,-]+)\})?(?P<tags>(?: \[[^\]]+\])*)")


def parse(text: str) -> Iterator[Entry]:
    """The entries of a list."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise MandatoryListError(
                f"line {number} of a mandatory list is no name of a check: {line!r:.100}"
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

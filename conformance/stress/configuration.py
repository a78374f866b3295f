"""The targets for which programs are compiled, and the number of threads that run them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.conformance.stress.generator import FAMILIES
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.errors import PortingKitError

EACH = "each"


class NoSuchConfiguration(PortingKitError):
    """A backend does not know an instruction set, or cannot run programs in this configuration."""


@dataclass(frozen=True)
class Configuration:
    """One way to run a program. The default is the backend's own."""

    isa: str = ""
    threads: int = 0
    """The number of threads; 0: the backend's default."""
    options: tuple[tuple[str, Any], ...] = ()
    """Compiler options, such as those that select `isa`."""
    against: tuple[tuple[str, Any], ...] = ()
    """Compiler options of a second run, whose results are compared with those of the first; empty: no second run."""

    @property
    def first(self) -> Configuration:
        """The first run alone."""
        return replace(self, against=())

    @property
    def second(self) -> Configuration:
        """The second run alone."""
        return replace(self, options=tuple((dict(self.options) | dict(self.against)).items()), against=())

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the process that runs a program."""
        return {"TPK_NUM_THREADS": str(self.threads)} if self.threads else {}

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}" if self.threads else ""
        return ", ".join(filter(None, (self.isa, threads)))


DEFAULT = Configuration()


@dataclass(frozen=True)
class Order:
    """What to run: the program of a seed, or a launch; and its configuration and time limit."""

    work: int | Launch
    configuration: Configuration
    seconds: float


def levels_of(backend: str) -> Mapping[str, Mapping[str, str]]:
    """The instruction sets that the backend compiles for and this machine runs, with the compiler options for each."""
    from triton.backends import backends

    found = getattr(backends[backend].compiler, "isa_levels", None) if backend in backends else None
    return found() if found is not None else {}


def configurations(
    backend: str, isa: str = "", threads: str = "", against: str = ""
) -> tuple[Configuration, ...]:
    """Every combination of instruction sets (`EACH`, or names separated by commas) and thread counts (numbers separated
    by commas), each with a second run if `against` has compiler options (``NAME=VALUE``, separated by commas).

    Raises `NoSuchConfiguration`.
    """
    levels = levels_of(backend) if isa else {}
    if isa and not levels:
        raise NoSuchConfiguration(
            f"backend {backend!r} names no instruction-set levels (its compiler has no `isa_levels`), so that --isa "
            f"{isa} means nothing to it: leave --isa out"
        )
    names = [*levels] if isa == EACH else [name.strip() for name in isa.split(",")]
    for name in names:
        if isa and name not in levels:
            raise NoSuchConfiguration(
                f"backend {backend!r} has no instruction-set level {name!r} that this machine runs; there are "
                f"{', '.join(levels)}, or {EACH!r}"
            )
    return tuple(
        Configuration(name, count, tuple(sorted(levels[name].items())) if isa else (), _options(against))
        for name in names
        for count in _counts(threads)
    )


def _options(against: str) -> tuple[tuple[str, Any], ...]:
    pairs = [text.strip().partition("=") for text in against.split(",")] if against else []
    for name, _, value in pairs:
        if not name.isidentifier() or not value:
            raise NoSuchConfiguration(
                f"--against has {name!r}: give options as NAME=VALUE, as in form=linalg"
            )
    return tuple((name, _value_of(value)) for name, _, value in pairs)


def _value_of(text: str) -> Any:
    """A number, True, False or None as Python writes it; all else is text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _counts(threads: str) -> list[int]:
    counts = [text.strip() for text in threads.split(",")] if threads else []
    wrong = [text for text in counts if not text.isdecimal() or not 1 <= int(text) <= 1024]
    if wrong:
        raise NoSuchConfiguration(f"--threads has {wrong[0]!r}: give counts from 1 to 1024, as in 1,2")
    return [int(text) for text in counts] or [0]


def families(about: str) -> tuple[str, ...]:
    """The families of programs that `about` names, separated by commas; if it is empty, all. Raises
    `NoSuchConfiguration`."""
    names = tuple(name.strip() for name in about.split(",")) if about else tuple(FAMILIES)
    for name in names:
        if name not in FAMILIES:
            raise NoSuchConfiguration(
                f"no random programs are about {name!r}; --about takes {', '.join(FAMILIES)}"
            )
    return names

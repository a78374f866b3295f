"""`Fault`: one thing that is wrong with the test backend, and the checks that must notice.

A fault changes the CPU reference at its seams: it rewrites what one stage of the compiler hands to the next, or
takes the place of a method of the backend, its options, the launcher, the driver or the device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Rewrite = Callable[[str], str]
Replacement = Callable[..., Any]
"""Called with the method it replaces, the object and the arguments."""

CLEAN = "none"
"""Names the test backend without a fault."""

STAGES = ("ttir", "structured", "loops", "llir", "amdgcn")
"""Whose artefacts can be rewritten; ``ttir`` in MLIR's generic form. The last is of the backend that only compiles."""

OWNERS = ("backend", "options", "launcher", "driver", "utils", "device")
"""Whose methods can be replaced."""

PARTS = ("compiler", "launcher", "driver", "process", "binary")
"""What a fault can be in; ``process``: the worker process does not survive it; ``binary``: in what is compiled for a
GPU that is not there."""


@dataclass
class Seams:
    """Where the test backend is changed."""

    rewrites: dict[str, list[Rewrite]] = field(default_factory=lambda: {stage: [] for stage in STAGES})
    methods: dict[str, dict[str, Replacement]] = field(
        default_factory=lambda: {owner: {} for owner in OWNERS}
    )

    binaries: list[Callable[[bytes, Any], bytes]] = field(default_factory=list)
    """Changes of the binary, given it and the metadata, of the backend that only compiles."""

    def patch(self, owner: str, cls: type) -> None:
        """Replace the methods of a class that belongs to the test backend alone."""
        for name, replacement in self.methods[owner].items():
            plain = inspect.getattr_static(cls, name)
            if isinstance(plain, classmethod):
                setattr(cls, name, classmethod(_replaced(plain.__func__, replacement)))
            elif isinstance(plain, staticmethod):
                setattr(cls, name, staticmethod(partial(replacement, plain.__func__)))
            else:
                setattr(cls, name, _replaced(plain, replacement))

    def rewritten(self, stage: str, text: str) -> str:
        """An artefact's text with the fault in it."""
        for rewrite in self.rewrites[stage]:
            text = rewrite(text)
        return text


Apply = Callable[[Seams], None]


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    name: str
    part: str
    """One of `PARTS`."""
    sentence: str
    """What the backend does wrong."""
    apply: Apply
    caught_by: tuple[str, ...]
    """Patterns of names of checks. Of each pattern's checks one at least must fail."""
    compiles: bool = True
    """Whether kernels compile: then a check that fails in the compiler has not caught the fault."""
    seconds: float = 60.0
    """Time limit of a check while this fault is tried; short where the fault is to hang."""


class Table:
    """Collects faults, in order."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, part: str, name: str, sentence: str, apply: Apply, *caught_by: str, **fields: Any) -> None:
        """Add a fault; `fields`: others of `Fault`."""
        self._faults.append(Fault(name, part, sentence, apply, caught_by, **fields))


def in_language(pattern: str) -> str:
    """A pattern of the level `language` unless it names another."""
    return pattern if pattern.startswith(("kernels/", "stress/", "runtime/")) else f"language/{pattern}"


def rewrite(stage: str, *functions: Rewrite) -> Apply:
    """Rewrites the artefact of a stage."""

    def apply(seams: Seams) -> None:
        seams.rewrites[stage] += functions

    return apply


def method(owner: str, **replacements: Replacement) -> Apply:
    """Replaces methods; each replacement is given the real one, the object, and the arguments."""

    def apply(seams: Seams) -> None:
        seams.methods[owner].update(replacements)

    return apply


def both(*changes: Apply) -> Apply:
    """Several changes that make one fault."""

    def apply(seams: Seams) -> None:
        for change in changes:
            change(seams)

    return apply


def nothing(seams: Seams) -> None:
    """The clean backend."""


def _replaced(real: Callable[..., Any], replacement: Replacement) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        return replacement(real, self, *args, **keywords)

    return call

"""`Fault`: one planted fault of the test backend, and the checks that must catch it.

A fault changes the CPU reference at defined points: it rewrites the artefact that one compiler stage passes to the
next, or replaces a method of the backend, its options, the launcher, the driver or the device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Rewrite = Callable[[str], str]
Replacement = Callable[..., Any]
"""Called with the replaced method, the object and the arguments."""

CLEAN = "none"
"""The name of the test backend without a fault."""

STAGES = ("ttir", "structured", "loops", "llir", "amdgcn")
"""The stages whose artefacts can be rewritten; ``ttir`` is in MLIR's generic form. The last belongs to the
compile-only backend."""

OWNERS = ("backend", "options", "launcher", "driver", "utils", "device")
"""The objects whose methods can be replaced."""

PARTS = ("compiler", "launcher", "driver", "process", "binary")
"""The parts that can have a fault. ``process``: the fault kills or hangs the worker process. ``binary``: the fault is
in a binary for a GPU, which is only compiled."""


@dataclass
class Seams:
    """The changes of the test backend."""

    rewrites: dict[str, list[Rewrite]] = field(default_factory=lambda: {stage: [] for stage in STAGES})
    methods: dict[str, dict[str, Replacement]] = field(
        default_factory=lambda: {owner: {} for owner in OWNERS}
    )

    binaries: list[Callable[[bytes, Any], bytes]] = field(default_factory=list)
    """Functions that change the binary of the compile-only backend, given the binary and the metadata."""

    def patch(self, owner: str, cls: type) -> None:
        """Replace methods of a class that only the test backend uses."""
        for name, replacement in self.methods[owner].items():
            plain = inspect.getattr_static(cls, name)
            if isinstance(plain, classmethod):
                setattr(cls, name, classmethod(_replaced(plain.__func__, replacement)))
            elif isinstance(plain, staticmethod):
                setattr(cls, name, staticmethod(partial(replacement, plain.__func__)))
            else:
                setattr(cls, name, _replaced(plain, replacement))

    def rewritten(self, stage: str, text: str) -> str:
        """The text of an artefact with the fault."""
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
    """Patterns of check names. At least one check of each pattern must fail."""
    compiles: bool = True
    """Whether kernels still compile. If so, a check that fails in the compiler has not caught the fault."""
    seconds: float = 60.0
    """Time limit of a check with this fault; short for faults that hang."""


class Table:
    """Collects faults, in order."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, part: str, name: str, sentence: str, apply: Apply, *caught_by: str, **fields: Any) -> None:
        """Add a fault. `fields`: further fields of `Fault`."""
        self._faults.append(Fault(name, part, sentence, apply, caught_by, **fields))


def in_language(pattern: str) -> str:
    """Prefix a pattern with the level `language`, unless it names another level."""
    return pattern if pattern.startswith(("kernels/", "stress/", "runtime/")) else f"language/{pattern}"


def rewrite(stage: str, *functions: Rewrite) -> Apply:
    """Rewrite the artefact of a stage."""

    def apply(seams: Seams) -> None:
        seams.rewrites[stage] += functions

    return apply


def method(owner: str, **replacements: Replacement) -> Apply:
    """Replace methods. A replacement receives the real method, the object and the arguments."""

    def apply(seams: Seams) -> None:
        seams.methods[owner].update(replacements)

    return apply


def both(*changes: Apply) -> Apply:
    """Combine several changes into one fault."""

    def apply(seams: Seams) -> None:
        for change in changes:
            change(seams)

    return apply


def nothing(seams: Seams) -> None:
    """Change nothing: the clean backend."""


def _replaced(real: Callable[..., Any], replacement: Replacement) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        return replacement(real, self, *args, **keywords)

    return call

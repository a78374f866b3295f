"""`Options`: what `tpk public` asks of the processes of its run, in environment variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_THREADS, _CHECKED, _FROM, _CACHE, _SECONDS = (
    "TPK_PUBLIC_TIMES",
    "TPK_PUBLIC_CHECKED",
    "TPK_PUBLIC_FROM",
    "TPK_PUBLIC_CACHE",
    "TPK_PUBLIC_SECONDS",
)
THIS_PYTHON = ".".join(map(str, sys.version_info[:2]))


@dataclass(frozen=True)
class Options:
    """How the level `public` runs."""

    threads: tuple[int, ...] = ()
    """Numbers of threads to measure with; none: nothing is measured."""
    checked: bool = False
    """Whether every case runs a second time, with the kit's checks of memory accesses."""
    checkouts: Mapping[str, Path] = field(default_factory=dict)
    """Folders of the user's own, by collection, instead of the pinned packages."""
    cache: Path = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "triton-porting-kit" / "public"
    """Where packages are kept."""
    seconds: float = 0.0
    """Time limit of an entry, where its own is longer; 0: its own."""
    python: str = THIS_PYTHON
    """The release of Python that packages are fetched for. Not passed on: entries run in that of their process."""

    def variables(self) -> dict[str, str]:
        """The environment variables that `of_environment` reads."""
        return {
            _THREADS: ",".join(map(str, self.threads)),
            _CHECKED: "1" if self.checked else "",
            _FROM: os.pathsep.join(f"{name}={path}" for name, path in self.checkouts.items()),
            _CACHE: str(self.cache),
            _SECONDS: str(self.seconds),
        }

    @classmethod
    def of_environment(cls) -> Options:
        """The options of this process."""
        given = (part.partition("=") for part in os.environ.get(_FROM, "").split(os.pathsep) if part)
        cache = os.environ.get(_CACHE)
        return cls(
            tuple(int(word) for word in os.environ.get(_THREADS, "").split(",") if word),
            bool(os.environ.get(_CHECKED)),
            {name: Path(path) for name, _, path in given},
            Path(cache) if cache else cls.cache,
            float(os.environ.get(_SECONDS) or 0.0),
        )

"""`Settings`: the configuration that a worker process needs to run checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

_STOP = "stop"
_INCIDENTS = "incidents.jsonl"
CATALOGUE = "triton_porting_kit.conformance.catalogue"


@dataclass(frozen=True)
class Settings:
    """The configuration of all processes of a run. `to_json` and `from_json` are inverse."""

    backend: str
    """The name of the backend's entry point."""
    profile: str = ""
    """The path of the vendor's ``conformance.toml``; empty: the one of the backend's package, if it exists."""
    seed: int = 0
    target: str = ""
    """``BACKEND:ARCH:WARP``: kernels are compiled for this target and do not run. Empty: they run."""
    stress: int = 0
    """The number of random programs of the level `stress`; 0: the default."""
    scratch: str = ""
    """A folder for private files and the compile cache of all processes, empty when a run starts. Empty string: each
    worker has its own."""
    catalogue: str = CATALOGUE
    """The module whose function `checks` returns the checks. Tests of the suite use another one."""

    torch: bool = False
    """Whether the level `torch` is to run: workers then import torch and report its device."""
    captures: str = ""
    """The folder for recorded launches of failed checks, which are repeated for this; empty: nothing is recorded."""

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called, in any process of the run."""
        return bool(self.scratch) and (Path(self.scratch) / _STOP).exists()

    def stop(self) -> None:
        """Interrupt all processes of the run."""
        if self.scratch:
            (Path(self.scratch) / _STOP).touch()

    def note(self, incident: Mapping[str, Any]) -> None:
        """Record an event that is not the result of a check, for the report of the run."""
        if self.scratch:
            with (Path(self.scratch) / _INCIDENTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(incident) + "\n")

    def incidents(self) -> list[dict[str, Any]]:
        """The events that any process of the run has noted."""
        path = Path(self.scratch) / _INCIDENTS
        if not self.scratch or not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def with_profile(self, path: str) -> Settings:
        """The settings with another profile."""
        return replace(self, profile=path)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        return cls(**data)

"""`Settings`: what a worker process has to know before it can run checks."""

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
    """The same in every process of a run. `to_json` and `from_json` are inverse."""

    backend: str
    """Name of the backend's entry point."""
    profile: str = ""
    """The vendor's ``conformance.toml``; empty: the one beside the backend's package, if there is one."""
    seed: int = 0
    target: str = ""
    """``BACKEND:ARCH:WARP``: kernels are compiled for it and do not run. Empty: they run."""
    stress: int = 0
    """Random programs of the level `stress`; 0: as many as it makes by itself."""
    scratch: str = ""
    """A folder for private files of all processes, and for the compile cache: a run starts with an empty one. Empty:
    each worker has its own."""
    catalogue: str = CATALOGUE
    """The module whose `checks` gives the checks of some levels; tests of the suite have their own."""

    torch: bool = False
    """Whether the level `torch` is to run: workers then import torch and report its device."""
    captures: str = ""
    """The folder for recorded launches of checks that fail, which are run again for that; empty: none are."""

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called, in any process of the run."""
        return bool(self.scratch) and (Path(self.scratch) / _STOP).exists()

    def stop(self) -> None:
        """Interrupt all processes of the run."""
        if self.scratch:
            (Path(self.scratch) / _STOP).touch()

    def note(self, incident: Mapping[str, Any]) -> None:
        """Remember something that is no check's result, for the report of the run."""
        if self.scratch:
            with (Path(self.scratch) / _INCIDENTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(incident) + "\n")

    def incidents(self) -> list[dict[str, Any]]:
        """What was noted, in any process of the run."""
        path = Path(self.scratch) / _INCIDENTS
        if not self.scratch or not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def with_profile(self, path: str) -> Settings:
        """The same with the profile that was found."""
        return replace(self, profile=path)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        return cls(**data)

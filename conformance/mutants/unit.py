"""`Unit`: what one process runs: checks of the suite, or a random program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.check import Check

CHECKS, PROGRAM = "checks", "program"


@dataclass(frozen=True)
class Unit:
    """Checks or a random program to run in one process. `to_json` and `from_json` are inverse."""

    kind: str
    """`CHECKS`, or `PROGRAM` (identified by its seed)."""
    name: str
    checks: tuple[str, ...] = ()
    """Names of the checks; several checks in a unit share a kernel."""
    seed: int = 0

    @property
    def group(self) -> str:
        """The group of similar units; for checks of the language, those of one operation."""
        if self.kind != CHECKS:
            return self.kind
        head, _, last = self.name.rpartition("/")
        return f"{head}/{last.partition('-')[0]}" if head == "language" else head

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "checks": list(self.checks), "seed": self.seed}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Unit:
        return cls(**{**data, "checks": tuple(data["checks"])})


def units_of(checks: Iterable[Check]) -> list[Unit]:
    """Group checks into units: those of a batch together, each of the others alone."""
    found: dict[str, list[str]] = {}
    for check in checks:
        found.setdefault(check.batch or check.name, []).append(check.name)
    return [Unit(CHECKS, name, tuple(names)) for name, names in found.items()]


def program(seed: int) -> Unit:
    """The random program of a seed."""
    return Unit(PROGRAM, f"program/{seed}", seed=seed)

"""What the tests of `tpk compare` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "compared_programs.py"


@dataclass(frozen=True)
class Compared:
    """What came of a run."""

    status: int
    output: str
    errors: str
    document: dict[str, Any]
    environment: dict[str, str]

    def launches(self, status: str) -> list[dict[str, Any]]:
        return [launch for launch in self.document["launches"] if launch["status"] == status]


Comparer = Callable[..., Compared]

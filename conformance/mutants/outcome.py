"""The outcome of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

PASS, FAIL, CRASH, TIMEOUT, MEMORY = "pass", "fail", "crash", "timeout", "memory"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one unit. `to_json` and `from_json` are inverse."""

    kind: str
    """`PASS`; `FAIL`: a check failed; `CRASH`: the process died; `TIMEOUT`; `MEMORY`: it used too much memory."""
    seconds: float = 0.0
    check: str = ""
    """The first check that failed, if one did."""
    stage: str = ""
    message: str = ""
    failed: tuple[str, ...] = ()
    """All checks that failed, if all were run."""
    code: str = ""
    """For a random program, a digest of its compiled code."""
    lines: Mapping[str, list[int]] = field(default_factory=dict)
    """The lines that ran, by file, if requested."""

    @property
    def caught(self) -> bool:
        return self.kind != PASS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(**{**data, "failed": tuple(data["failed"])})

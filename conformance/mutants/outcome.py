"""What came of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

PASS, FAIL, CRASH, TIMEOUT, MEMORY = "pass", "fail", "crash", "timeout", "memory"


@dataclass(frozen=True)
class Outcome:
    """`to_json` and `from_json` are inverse."""

    kind: str
    """`PASS`; `FAIL`: a check says so; `CRASH`: the process died; `TIMEOUT`; `MEMORY`: it took too much."""
    seconds: float = 0.0
    check: str = ""
    """The first check that failed, if one did."""
    stage: str = ""
    message: str = ""
    failed: tuple[str, ...] = ()
    """All checks that failed, where all were run."""
    code: str = ""
    """Of a random program, a digest of what it was compiled to."""
    lines: Mapping[str, list[int]] = field(default_factory=dict)
    """Where asked for: by file, the lines that ran."""

    @property
    def caught(self) -> bool:
        return self.kind != PASS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(**{**data, "failed": tuple(data["failed"])})

"""The outcome of one program that was run."""

from __future__ import annotations

from dataclasses import dataclass

PASS = "pass"
WRONG = "wrong result"
OUT_OF_BOUNDS = "out-of-bounds write"
ERROR = "error"
CRASH = "crash"
TIMEOUT = "timeout"

SAME = "equal"
ROUNDED = "rounded differently"
"""How the results with two sets of options compare, if NumPy's rules for both allow them."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one program. `kind` is one of the constants of this module."""

    kind: str
    message: str = ""
    detail: str = ""
    """For an error, its stage and type. For a program that passed with two sets of options, `SAME` or `ROUNDED`."""

    @property
    def failed(self) -> bool:
        return self.kind != PASS

    def is_like(self, other: Outcome) -> bool:
        """Whether two failures have the same kind and, for errors, stage and type. Shrinking preserves this."""
        return self.kind == other.kind and (self.kind != ERROR or self.detail == other.detail)

    def __str__(self) -> str:
        place = f" ({self.detail})" if self.detail else ""
        return f"{self.kind}{place}: {self.message}" if self.message else f"{self.kind}{place}"

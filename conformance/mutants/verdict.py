"""`Verdict`: the outcome of one mutant, as reports keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from triton_porting_kit.conformance.mutants.mutation import Mutation

CAUGHT = "caught"
STRESSED = "caught by stress"
MISSED = "missed"
NOT_REACHED = "not reached"
EQUIVALENT = "equivalent"
UNOBSERVED = "unobserved"
INVALID = "invalid"
"""Of C++ that does not compile, or compiles to the same code: no mutant."""

MEANING = {
    CAUGHT: "a check of the mandatory levels fails because of it",
    STRESSED: "no such check does, but a random program that `tpk fuzz` runs next",
    MISSED: "nor that, but the corpus tells it from the original",
    NOT_REACHED: "no check runs its lines, and the corpus does not tell it from the original",
    EQUIVALENT: "checks and programs of the corpus run its lines, and none tells it from the original",
    UNOBSERVED: "checks run its lines and do not fail, and no program of the corpus runs them",
}
"""Of each verdict."""

AGAINST = (MISSED, NOT_REACHED)
"""Verdicts that count against the suite."""
EXCLUDED = (EQUIVALENT, UNOBSERVED)
"""What does not count; `UNOBSERVED` does in the strict score."""


@dataclass(frozen=True)
class Verdict:
    """`to_json` and `from_json` are inverse."""

    mutation: Mutation
    verdict: str
    diff: str
    seconds: float
    caught_by: str = ""
    """The check, or the program, that tells it from the original."""
    level: str = ""
    stage: str = ""
    """Where that failed, as reports of the suite name it."""
    how: str = ""
    """``fail``, ``crash``, ``timeout``, ``memory``."""
    message: str = ""
    also: tuple[str, ...] = ()
    """Other checks that caught it, of those that were tried."""
    tried: int = 0
    """The number of units of the suite that were tried."""
    reaching: int = 0
    """The number of units of the suite that run the mutant's lines."""
    programs: int = 0
    """The number of programs of the corpus that were tried."""
    running: int = 0
    """Of these, programs that are known to run its lines."""
    other_code: int = 0
    """Of these, programs that it is compiled to other code for."""
    flaky: tuple[str, ...] = ()
    """Units that failed once and passed when repeated."""
    effort: Mapping[str, float] = field(default_factory=dict)
    """What was to be done for it, in seconds."""

    def stands(self, effort: Mapping[str, float]) -> bool:
        """Whether more effort would not change it, or this is no more than there was: 0 of the suite is all of it."""
        if self.verdict in (CAUGHT, INVALID):
            return True
        mine = {key: self.effort.get(key, 0.0) for key in ("suite", "stress", "corpus")}
        enough = not mine["suite"] or 0 < effort["suite"] <= mine["suite"] or self.tried == self.reaching
        return enough and effort["stress"] <= mine["stress"] and effort["corpus"] <= mine["corpus"]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        given = {
            **data,
            "mutation": Mutation.from_json(data["mutation"]),
            "also": tuple(data["also"]),
            "flaky": tuple(data["flaky"]),
        }
        return cls(**given)

"""`Verdict`: the outcome of one mutant, as stored in reports."""

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
"""A mutation of C++ that does not compile, or compiles to the same code. It does not count as a mutant."""

MEANING = {
    CAUGHT: "a check of the mandatory levels fails because of it",
    STRESSED: "no check of the mandatory levels fails, but a further random program of `tpk fuzz` does",
    MISSED: "no check and no program of `tpk fuzz` fails, but a program of the corpus does",
    NOT_REACHED: "no check runs its lines, and no program of the corpus fails",
    EQUIVALENT: "checks and programs of the corpus run its lines, and none fails",
    UNOBSERVED: "checks run its lines and do not fail, and no program of the corpus is known to run them",
}
"""The meaning of each verdict."""

AGAINST = (MISSED, NOT_REACHED)
"""Verdicts that count against the suite."""
EXCLUDED = (EQUIVALENT, UNOBSERVED)
"""Verdicts that do not count. In the strict score, `UNOBSERVED` counts against the suite."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one mutant. `to_json` and `from_json` are inverse."""

    mutation: Mutation
    verdict: str
    diff: str
    seconds: float
    caught_by: str = ""
    """The check or the program that fails because of it."""
    level: str = ""
    stage: str = ""
    """The stage at which it failed, as in reports of the suite."""
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
    """The number of these programs that are known to run its lines."""
    other_code: int = 0
    """The number of these programs for which the mutant generates different code."""
    flaky: tuple[str, ...] = ()
    """Units that failed once and passed when repeated."""
    effort: Mapping[str, float] = field(default_factory=dict)
    """The effort limits that applied, in seconds."""

    def stands(self, effort: Mapping[str, float]) -> bool:
        """Whether the verdict stands: more effort cannot change it, or `effort` is not greater than the effort spent.

        An effort of 0 for the suite means all units.
        """
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

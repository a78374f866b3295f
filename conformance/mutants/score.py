"""The score of a sample and its confidence interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triton_porting_kit.conformance.mutants import verdict
from triton_porting_kit.conformance.mutants.classes import class_of
from triton_porting_kit.conformance.mutants.verdict import AGAINST, CAUGHT, EXCLUDED, STRESSED, Verdict

DEMANDED = 0.90
"""The required score of the mandatory levels."""
DEMANDED_WITH_STRESS = 0.95
_Z = 1.959963984540054
"""The quantile of the normal distribution for a confidence of 95 %."""


@dataclass(frozen=True)
class Proportion:
    """`part` of `whole`."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """The proportion; 1 if `whole` is 0."""
        return self.part / self.whole if self.whole else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval of the proportion with a confidence of 95 %."""
        if not self.whole:
            return 0.0, 1.0
        n, p = self.whole, self.value
        centre = p + _Z * _Z / (2 * n)
        spread = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        scale = 1 + _Z * _Z / n
        return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{100 * self.value:.1f}% ({self.part} of {self.whole}; 95% confidence {100 * low:.1f} to "
            f"{100 * high:.1f}%)"
        )


@dataclass(frozen=True)
class Score:
    """The scores of a set of verdicts."""

    verdicts: Sequence[Verdict]

    @property
    def counts(self) -> Counter[str]:
        """Mutants by verdict."""
        return Counter(found.verdict for found in self.verdicts)

    @property
    def levels(self) -> Proportion:
        """The share that the mandatory levels catch, of the mutants that are not equivalent or unobserved."""
        return Proportion(self.counts[CAUGHT], len(self.verdicts) - sum(self.counts[v] for v in EXCLUDED))

    @property
    def with_stress(self) -> Proportion:
        """The share that the levels or stress catch, of the same mutants."""
        return Proportion(self.counts[CAUGHT] + self.counts[STRESSED], self.levels.whole)

    @property
    def strict(self) -> Proportion:
        """The share that the levels catch, excluding only `EQUIVALENT`: unobserved mutants count as not caught."""
        return Proportion(self.counts[CAUGHT], len(self.verdicts) - self.counts[verdict.EQUIVALENT])

    @property
    def reached(self) -> Proportion:
        """The share that the levels catch, of the mutants whose lines checks run."""
        return Proportion(self.counts[CAUGHT], self.levels.whole - self.counts[verdict.NOT_REACHED])

    @property
    def survivors(self) -> list[Verdict]:
        """The mutants that count against the suite, and those that only stress catches."""
        return [found for found in self.verdicts if found.verdict in (*AGAINST, STRESSED)]

    def by(self, key: str) -> dict[str, Score]:
        """Scores by ``class`` (see `classes`), ``operator``, ``language`` or ``tree`` (the top-level folder)."""
        found: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            path = one.mutation.path
            name = {"tree": path.partition("/")[0], "class": class_of(path)}.get(key) or getattr(
                one.mutation, key
            )
            found.setdefault(name, []).append(one)
        return {name: Score(found[name]) for name in sorted(found)}


def alone(verdicts: Iterable[Verdict]) -> Counter[str]:
    """The number of mutants that each check was the first to catch, by name of the check."""
    return Counter(found.caught_by for found in verdicts if found.verdict == CAUGHT)

"""The records of the level as verdicts, times and findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from triton_porting_kit.conformance.public.entries import GRADIENT, VERDICTS
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status

LEVEL = "public"
FAULTS = ("kit", "crash", "timeout", "harness")
"""Verdicts that make a check fail; the others are upstream's."""


@dataclass(frozen=True)
class Times:
    """Seconds of a call, and of torch's operators for the same; None: it has no counterpart."""

    seconds: float
    eager: float | None

    @property
    def ratio(self) -> float | None:
        """How often faster than torch eager it is."""
        return self.eager / self.seconds if self.eager and self.seconds else None


@dataclass(frozen=True)
class Result:
    """What a run found of one entry on one type, forward or with gradients."""

    collection: str
    entry: str
    type: str
    gradient: bool
    verdict: str
    """Of `entries.VERDICTS`."""
    reason: str
    times: Mapping[int, Times] = field(default_factory=dict)
    """By number of threads."""
    caught: tuple[str, ...] = ()
    """Compile errors that the package caught."""
    findings: tuple[str, ...] = ()
    """What checks found: accesses out of bounds, races, results of memory that nobody wrote."""

    @property
    def variant(self) -> str:
        return f"{self.type} {GRADIENT}" if self.gradient else self.type

    @property
    def name(self) -> str:
        """The name of its check."""
        return f"{LEVEL}/{self.collection}/{self.entry}-{self.variant.replace(' ', '-')}"


_VERDICTS = {
    Status.PASS: "right",
    Status.FAIL: "kit",
    Status.CRASH: "crash",
    Status.TIMEOUT: "timeout",
    Status.HARNESS_ERROR: "harness",
}


def result_of(record: Record) -> Result:
    """The result in a record."""
    _, collection, rest = record.name.split("/", 2)
    gradient = rest.endswith(f"-{GRADIENT}")
    entry, kind = rest.removesuffix(f"-{GRADIENT}").rsplit("-", 1)
    verdict, reason = _VERDICTS.get(record.status, "kit"), record.message
    times: dict[int, Times] = {}
    caught: tuple[str, ...] = ()
    findings: list[str] = []
    for item in record.evidence:
        if item["kind"] == "upstream" and item["what"] in VERDICTS:
            verdict, reason = str(item["what"]), str(item["message"])
        elif item["kind"] == "times":
            times[item["threads"]] = Times(item["seconds"], item.get("eager"))
        elif item["kind"] == "caught":
            caught = tuple(item["messages"])
        elif item["kind"] == "finding":
            findings.append(str(item["message"]))
    return Result(
        collection,
        entry,
        kind,
        gradient,
        verdict,
        "" if verdict == "right" else reason,
        times,
        caught,
        tuple(findings),
    )


def results_of(records: Iterable[Record]) -> list[Result]:
    """The results in the records of the level."""
    return [result_of(record) for record in records if record.level == LEVEL]


def merged(results: Iterable[Result]) -> list[Result]:
    """One result of each entry: the last one, with times and findings of earlier runs if it has none."""
    found: dict[tuple[str, str, str], Result] = {}
    for result in results:
        key = (result.collection, result.entry, result.variant)
        before = found.get(key, result)
        found[key] = replace(
            result, times=result.times or before.times, findings=result.findings or before.findings
        )
    return list(found.values())


def ratios(results: Iterable[Result], threads: int) -> list[float]:
    """How often faster than torch eager each result is that has a counterpart, in ascending order."""
    found = (result.times[threads].ratio for result in results if threads in result.times)
    return sorted(ratio for ratio in found if ratio)


def geometric_mean(values: list[float]) -> float:
    """The geometric mean; NaN of no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan

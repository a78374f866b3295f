"""`Run`: what the page knows of a run. They are kept as JSON beside the page, so that each run adds to it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.public.entries import GRADIENT, VERDICTS
from triton_porting_kit.conformance.public.results import Result, Times, merged, results_of
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import Report

_REMEDY = "remove it, and write the page from the reports of all runs"


@dataclass(frozen=True)
class Facts:
    """Where and when a run was."""

    backend: str
    device: str
    triton: str
    torch: str = ""
    python: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Releases by name."""
    date: str = ""
    """The day it began."""
    load: tuple[float, ...] = ()
    """The machine's load when its results were added: of 1, 5 and 15 minutes."""
    watched: bool = True
    """Whether its results have the compile errors that packages caught."""


@dataclass(frozen=True)
class Run:
    """A run of the level."""

    facts: Facts
    results: tuple[Result, ...]
    summary: Mapping[str, int] = field(default_factory=dict)
    """Verdicts of results that were not kept one by one, and how many."""

    @property
    def counts(self) -> Counter[str]:
        """How many results have each verdict."""
        return Counter(self.summary) + Counter(result.verdict for result in self.results)


def of_report(report: Report) -> Run:
    """The run of a report that has just ended."""
    run = report.run
    libraries = {name: str(release) for name, release in run.get("toolchain", {}).items() if release}
    facts = Facts(
        str(run["backend"]),
        str(run["device"].get("name", "")),
        str(run["triton_version"]),
        libraries.get("torch", ""),
        str(run.get("python", "")),
        libraries,
        str(run.get("start") or "")[:10],
        tuple(round(load, 1) for load in os.getloadavg()),
    )
    return Run(facts, tuple(results_of(report.records)))


def places(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs by place, in the order of the first of each.

    A place of the first run's backend is a release of Triton. Of another backend there is one place: an entry counts
    once, whichever release it was tried on.
    """
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        backend = run.facts.backend
        release = run.facts.triton if backend == runs[0].facts.backend else ""
        found.setdefault((backend, release), []).append(run)
    return [*found.values()]


def joined(runs: Sequence[Run]) -> list[Run]:
    """The runs, each with the results of which it is the last in its place; without those that have none left."""
    found = []
    for same in places(runs):
        last = {_key(result): number for number, run in enumerate(same) for result in run.results}
        kept = {_key(result): result for result in merged(r for run in same for r in run.results)}
        for number, run in enumerate(same):
            keys = dict.fromkeys(_key(result) for result in run.results)
            found.append(replace(run, results=tuple(kept[key] for key in keys if last[key] == number)))
    return [run for run in found if run.results or run.summary]


def results(runs: Iterable[Run]) -> list[Result]:
    """All results of runs."""
    return [result for run in runs for result in run.results]


def read(path: Path) -> list[Run]:
    """The runs in a file; none if it is not there. Raises `ReportError`."""
    if not path.exists():
        return []
    data = untrusted.read_json(path, untrusted.RESULTS, ReportError, follow=True, remedy=_REMEDY)
    try:
        return [_run(item) for item in data["runs"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise ReportError(
            f"{path} does not have the results of public kernels: {problem}; {_REMEDY}"
        ) from error


def write(path: Path, runs: Iterable[Run]) -> None:
    """Keep runs in a file."""
    data = {"runs": [_to_json(run) for run in runs]}
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _key(result: Result) -> tuple[str, str, str]:
    return result.collection, result.entry, result.variant


def _run(data: Mapping[str, Any]) -> Run:
    facts = Facts(**{**data["facts"], "load": tuple(data["facts"].get("load", ()))})
    found = [
        _result(collection, entry, variant, value)
        for collection, entries in data["results"].items()
        for entry, variants in entries.items()
        for variant, value in variants.items()
    ]
    return Run(facts, tuple(found), data.get("summary", {}))


def _result(collection: str, entry: str, variant: str, value: str | Mapping[str, Any]) -> Result:
    """`value`: the verdict, or an object with it and what else there is."""
    more: Mapping[str, Any] = {"verdict": value} if isinstance(value, str) else value
    if more["verdict"] not in VERDICTS:
        raise ValueError(f"there is no verdict {more['verdict']!r}")
    return Result(
        collection,
        entry,
        variant.removesuffix(f" {GRADIENT}"),
        variant.endswith(f" {GRADIENT}"),
        more["verdict"],
        more.get("reason", ""),
        {int(threads): Times(*times) for threads, times in more.get("times", {}).items()},
        tuple(more.get("caught", ())),
        tuple(more.get("findings", ())),
    )


def _to_json(run: Run) -> dict[str, Any]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for result in run.results:
        more = dict(_more(result))
        value = {"verdict": result.verdict, **more} if more else result.verdict
        found.setdefault(result.collection, {}).setdefault(result.entry, {})[result.variant] = value
    facts = {name: value for name, value in asdict(run.facts).items() if value or name == "watched"}
    summary = {"summary": dict(run.summary)} if run.summary else {}
    return {"facts": facts, **summary, "results": found}


def _more(result: Result) -> Iterator[tuple[str, Any]]:
    """What there is of a result beside its verdict."""
    if result.reason:
        yield "reason", result.reason
    if result.times:
        yield "times", {str(threads): _rounded(times) for threads, times in result.times.items()}
    if result.caught:
        yield "caught", list(result.caught)
    if result.findings:
        yield "findings", list(result.findings)


def _rounded(times: Times) -> list[float | None]:
    return [None if value is None else float(f"{value:.4g}") for value in (times.seconds, times.eager)]

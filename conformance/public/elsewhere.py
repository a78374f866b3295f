"""The section of the page on other backends and releases of Triton than those of its first run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from triton_porting_kit.conformance.public.markdown import caught, not_right, table
from triton_porting_kit.conformance.public.results import FAULTS, Result
from triton_porting_kit.conformance.public.runs import Run, results


def section(others: Sequence[Sequence[Run]], here: Run, own: Iterable[Result]) -> Iterator[str]:
    """A row for each of the places, and what is not right there.

    `here` and its results, `own`, are the page's own: other releases of the same backend only list what differs.
    """
    if not others:
        return
    yield "## Other backends and releases of Triton\n"
    yield (
        "On older releases of Triton one type of most functions was tried. What is not right there is listed if it "
        "differs from *What is not right*; for other backends all of it is.\n"
    )
    yield from table(
        (
            "backend",
            "device",
            "Triton",
            "torch",
            "entry points",
            "right",
            "",
            "kit's fault",
            "package's own",
            "another release",
            "GPU feature",
            "caught compile errors",
        ),
        [_row(same) for same in others],
    )
    for runs in others:
        if len(runs) > 1:
            yield f"The runs on {runs[0].facts.backend}, and how many entries each is the last one of:\n"
            yield from table(
                ("date", "device", "Triton", "torch", "Python", "entry points", "caught compile errors"),
                [_run(run) for run in runs],
            )
    same = {_key(result) for result in own}
    for runs in others:
        known = same if runs[0].facts.backend == here.facts.backend else frozenset()
        failed = [r for r in results(runs) if r.verdict != "right" and _key(r) not in known]
        if failed:
            yield f"Not right on {_place(runs)}:\n"
            yield from not_right(failed)
    for runs in others:
        yield from caught(results(runs), f" on {_place(runs)}")


def _row(runs: Sequence[Run]) -> tuple[object, ...]:
    counts = sum((run.counts for run in runs), Counter[str]())
    total = counts.total()
    return (
        *(each(runs, name) for name in ("backend", "device", "triton", "torch")),
        total,
        counts["right"],
        f"{100 * counts['right'] / max(total, 1):.1f} %",
        sum(counts[verdict] for verdict in FAULTS),
        *(counts[verdict] for verdict in ("package", "release", "gpu")),
        _caught(runs, total),
    )


def _run(run: Run) -> tuple[object, ...]:
    facts = run.facts
    errors = sum(len(result.caught) for result in run.results) if facts.watched else "not kept"
    return facts.date, facts.device, facts.triton, facts.torch, facts.python, run.counts.total(), errors


def _caught(runs: Sequence[Run], total: int) -> str:
    """How many compile errors packages caught, and of how many results that is known, if not of all."""
    watched = [result for run in runs if run.facts.watched for result in run.results]
    known = len(watched) + sum(sum(run.summary.values()) for run in runs if run.facts.watched)
    count = sum(len(result.caught) for result in watched)
    return str(count) if known == total else f"{count}, of {known} entries"


def _place(runs: Sequence[Run]) -> str:
    return f"{each(runs, 'backend')}, Triton {each(runs, 'triton')}"


def _key(result: Result) -> tuple[str, ...]:
    return result.collection, result.entry, result.variant, result.verdict


def each(runs: Iterable[Run], fact: str) -> str:
    """What runs say of a fact, each once."""
    said = (part for run in runs for part in str(getattr(run.facts, fact)).split(", "))
    return ", ".join(dict.fromkeys(said))

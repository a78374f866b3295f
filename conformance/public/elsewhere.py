"""The section of the page on other backends and releases of Triton than those of its first run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from triton_porting_kit.conformance.public.markdown import caught, not_right, table
from triton_porting_kit.conformance.public.results import FAULTS, Result, merged, results_of
from triton_porting_kit.conformance.report.model import Report


def places(runs: Sequence[Report]) -> list[list[Report]]:
    """Runs by place, in the order of the first of each.

    A place of the first run's backend is a release of Triton. Of another backend there is one place: an entry counts
    once, whichever release it was tried on.
    """
    found: dict[tuple[str, str], list[Report]] = {}
    for run in runs:
        backend = str(run.run["backend"])
        release = str(run.run["triton_version"]) if backend == runs[0].run["backend"] else ""
        found.setdefault((backend, release), []).append(run)
    return [*found.values()]


def section(others: Sequence[Sequence[Report]], here: Report, own: Iterable[Result]) -> Iterator[str]:
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
    same = {_key(result) for result in own}
    rows, failed, caught_by = [], {}, {}
    for runs in others:
        results = merged(result for run in runs for result in results_of(run.records))
        counts = Counter(result.verdict for result in results)
        rows.append(
            (
                *(_all(runs, key) for key in ("backend", "device", "triton_version", "torch")),
                len(results),
                counts["right"],
                f"{100 * counts['right'] / max(len(results), 1):.1f} %",
                sum(counts[verdict] for verdict in FAULTS),
                *(counts[verdict] for verdict in ("package", "release", "gpu")),
                sum(len(result.caught) for result in results),
            )
        )
        place = f"{_all(runs, 'backend')}, Triton {_all(runs, 'triton_version')}"
        known = same if runs[0].run["backend"] == here.run["backend"] else frozenset()
        caught_by[place] = results
        failed[place] = [r for r in results if r.verdict != "right" and _key(r) not in known]
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
        rows,
    )
    for place, results in failed.items():
        if results:
            yield f"Not right on {place}:\n"
            yield from not_right(results)
    for place, results in caught_by.items():
        yield from caught(results, f" on {place}")


def _key(result: Result) -> tuple[str, ...]:
    return result.collection, result.entry, result.variant, result.verdict


def _all(runs: Iterable[Report], key: str) -> str:
    """What runs say, each once."""
    return ", ".join(dict.fromkeys(_of(run, key) for run in runs))


def _of(run: Report, key: str) -> str:
    if key == "device":
        return str(run.run["device"].get("name", ""))
    return str(run.run.get("toolchain", {}).get("torch", "") if key == "torch" else run.run[key])

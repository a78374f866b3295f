"""Writes docs/public-kernels.md from runs of the level, the plot of its times, and their results as JSON.

``python -m triton_porting_kit.conformance.public.page FILE REPORT...`` adds several runs to it.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from triton_porting_kit.conformance.public import elsewhere, runs
from triton_porting_kit.conformance.public.entries import VERDICTS, cases_of
from triton_porting_kit.conformance.public.findings import FINDINGS
from triton_porting_kit.conformance.public.markdown import caught, not_right, table
from triton_porting_kit.conformance.public.results import (
    FAULTS,
    Result,
    geometric_mean,
    ratios,
)
from triton_porting_kit.conformance.public.runs import Run
from triton_porting_kit.conformance.public.table import collections
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.folder import read_run

HEAD = """# Public kernels

Triton kernels that others publish, run unmodified. `tpk public --page FILE` wrote this page, from the results of its
run and those of earlier ones, which a file beside the page keeps (`public-kernels.json`). Do not edit either; edit
`conformance/public/`.

- A collection is a package of the index at a pinned release, installed without dependencies into a folder of its own.
  Nothing of it is in this repository.
- An entry is a public function or kernel on one class of shapes. It is counted once for each type, and once more for
  each type with gradients.
- Inputs and references are the kit's own. Results and gradients are compared with float64 on the CPU. The tolerance is
  64 epsilons of float32, 2 of bfloat16, 4 of float16, of a value and of the root mean square of its tensor, plus 8
  times the error of torch's operators in the same type. Entries with a larger tolerance say why in their table.
- On CUDA, products of float32 whose kernel names no precision are computed as IEEE numbers
  (`TRITON_F32_DEFAULT=ieee`), as on other backends. CUDA's own default is TF32, which keeps 10 bits; with
  `TRITON_F32_DEFAULT=tf32` the run judges that, and such products are wrong by the tolerance.
- Programs say `cuda`, and `as_cuda` maps it ([pytorch.md](pytorch.md#programs-that-say-cuda)).
- A failure is the kit's fault unless a rule in `conformance/public/sorting.py`, a run with checked accesses, or a
  person who looked (`known=` in a table) says otherwise.

| verdict | |
|---|---|
"""

SLOW = 1.5
"""From how many times torch eager's time on the page says why."""


def write(reports: Sequence[Path], page: Path) -> None:
    """Add the results in the folders of some runs to a page. Raises `ReportError`.

    What the page had is in a file of JSON beside it. If there is none, the first report says which backend and release
    of Triton the page is about; `elsewhere` says what it has of others.
    """
    kept = page.with_suffix(".json")
    found = runs.joined([*runs.read(kept), *(runs.of_report(read_run(folder)) for folder in reports)])
    if not found:
        raise ReportError(f"there are no results for {page}: name the folders of runs of the level")
    here, *others = runs.places(found)
    results = _in_order(runs.results(here))
    threads = sorted({count for result in results for count in result.times})
    picture = page.with_suffix(".svg")
    lines = [HEAD + "\n".join(f"| {name} | {meaning} |" for name, meaning in VERDICTS.items()), ""]
    lines += [*_machine(here), *_collections(results), *elsewhere.section(others, here[0], results)]
    if threads:
        lines += _speed(results, threads, picture.name)
        picture.write_text(plot({count: ratios(results, count) for count in threads}), encoding="utf-8")
    lines += [*_failures(results), *_findings(results), *_entries(results, threads)]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    runs.write(kept, found)


def _in_order(results: Iterable[Result]) -> list[Result]:
    """Results in the order of the tables, whichever run they are of."""
    names = (case.name for collection in collections() for case in cases_of(collection))
    places = {name: number for number, name in enumerate(names)}
    return sorted(results, key=lambda result: places.get(result.name, len(places)))


def _machine(here: Sequence[Run]) -> Iterator[str]:
    last = here[-1].facts
    dates = sorted(run.facts.date for run in here)
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    loads = [run.facts.load for run in here if any(result.times for result in run.results)]
    yield "## The run\n"
    yield from table(
        ("", ""),
        (
            ("backend", last.backend),
            ("device", elsewhere.each(here, "device")),
            ("runs, of which the last one of an entry counts", len(here)),
            ("date", span),
            ("Triton", f"{last.triton}, unless a collection names another one"),
            ("Python", last.python),
            ("libraries", ", ".join(f"{name} {release}" for name, release in last.libraries.items())),
            ("load after runs with times", "; ".join(" ".join(map(str, load)) for load in loads)),
        ),
    )


def _collections(results: Sequence[Result]) -> Iterator[str]:
    yield "## Collections\n"
    rows = []
    for collection in collections():
        own = [result for result in results if result.collection == collection.name]
        counts = Counter(result.verdict for result in own)
        rows.append(
            (
                f"`{collection.package}` {collection.version}",
                collection.licence,
                collection.needs,
                len(own),
                counts["right"],
                sum(counts[verdict] for verdict in FAULTS),
                counts["package"],
                counts["release"],
                counts["gpu"],
                sum(len(result.caught) for result in own),
            )
        )
    totals = [sum(int(row[column]) for row in rows) for column in range(3, 10)]
    yield from table(
        (
            "package",
            "licence",
            "needs",
            "entry points",
            "right",
            "kit's fault",
            "package's own",
            "another release",
            "GPU feature",
            "caught compile errors",
        ),
        [*rows, (f"{len(rows)} collections", "", "", *totals)],
    )
    arranged = [c for c in collections() if c.arranged or c.triton]
    yield ("Not here: attorch and tritonbench, which are not on the package index.\n")
    yield "What has to be arranged:\n"
    for collection in arranged:
        release = f"Triton {collection.triton}" if collection.triton else ""
        yield f"- `{collection.package}`: {'; '.join(filter(None, (release, collection.arranged)))}."
    yield ""


def _speed(results: Sequence[Result], threads: Sequence[int], picture: str) -> Iterator[str]:
    yield "## Speed beside torch eager\n"
    yield (
        "The time of torch's own operators on the same tensors, divided by that of the package's function: above 1, "
        "the package's kernel on the kit is faster. The fastest of up to ten calls each, of inputs that take "
        "milliseconds; gradients are forward and backward. Only entries with a counterpart and such inputs (`large=` "
        "in a table) are measured. Where the load above exceeds the processors, single times are off, most of all "
        "those with several threads.\n"
    )
    rows = []
    for count in threads:
        found = ratios(results, count)
        if found:
            slower = sum(1 for ratio in found if ratio < 1)
            rows.append(
                (count, len(found), f"{geometric_mean(found):.2f}", f"{found[len(found) // 2]:.2f}", slower)
            )
    yield from table(("threads", "compared", "geometric mean", "median", "slower than eager"), rows)
    yield f"![Ratios of time, in ascending order]({picture})\n"
    yield from _slow(results, threads)


def _slow(results: Iterable[Result], threads: Sequence[int]) -> Iterator[str]:
    """The results that take more than `SLOW` times as long as torch eager, and why."""
    why = {(c.name, entry.name): entry.slow for c in collections() for entry in c.entries}
    rows = []
    for result in results:
        found = [result.times[count].ratio if count in result.times else None for count in threads]
        if not any(ratio is not None and ratio < 1 / SLOW for ratio in found):
            continue
        alone = found[0] is not None and found[0] >= 1 / SLOW
        reason = (
            "not slow with one thread; the second was not looked into"
            if alone
            else why.get((result.collection, result.entry), "")
        )
        cells = ["" if ratio is None else f"{ratio:.2f}x" for ratio in found]
        rows.append((result.collection, f"`{result.entry}`", result.variant, *cells, reason))
    if rows:
        yield f"More than {SLOW:g} times as long as torch eager:\n"
        yield from table(("collection", "entry", "on", *map(_of_threads, threads), ""), rows)


def _of_threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _failures(results: Sequence[Result]) -> Iterator[str]:
    yield "## What is not right\n"
    yield from not_right(results)
    yield from caught(results, "")


def _findings(results: Sequence[Result]) -> Iterator[str]:
    """What someone looked at, with its program; then other lines of source at which a kernel leaves its arguments."""
    yield "## Findings for maintainers\n"
    yield (
        "Faults in the pinned releases. An access outside of the tensors that a kernel was given usually goes "
        "unnoticed on a GPU, because it hits other memory of the process; `tpk public --checked` reports it, as does "
        "`TPK_CHECK=memory tpk run --as-cuda program.py` for the programs below. `--checked` also runs the programs "
        "of each launch in descending order and each alone, to find races, and fills memory that `torch.empty` "
        "leaves as it is. 914 entry points were run so.\n"
    )
    tried = {result.collection for result in results}
    for finding in FINDINGS:
        if finding.collection in tried:
            yield f"### {finding.collection}: {finding.title}\n"
            yield f"`{finding.place}`: {finding.text}\n"
            yield f"```python\n{finding.program}```\n"
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for result in results:
        for text in result.findings:
            line = _place(text)
            if not any(f.collection == result.collection and line in (f.place, f.kernel) for f in FINDINGS):
                found.setdefault((result.collection, line), (result.entry, text))
    if found:
        yield "Other findings of checks:\n"
        for (collection, line), (entry, text) in found.items():
            message = re.sub(r"^host CPU: launch: ", "", text.partition(": tl.")[0]).partition(f": {line}")[0]
            yield f"- {collection}, `{line}`, in `{entry}`: {re.sub(r' [(][^()]*:[0-9]+[)]', '', message)}."
        yield ""


def _place(finding: str) -> str:
    """Where a finding is: a line, or of what examines whole launches the name of the kernel."""
    if place := re.search(r"([\w.-]+(?:/[\w.-]+)*\.py:\d+), in (\w+)", finding):
        return place[1]
    kernel = re.match(r"kernel '(\w+)'", finding)
    return kernel[1] if kernel else finding[:60]


def _entries(results: Sequence[Result], threads: Sequence[int]) -> Iterator[str]:
    yield "## Entries\n"
    timed = [*map(_of_threads, threads)]
    if timed:
        yield "Times are those of the first right type, in milliseconds, and how often faster than torch eager.\n"
    for collection in collections():
        own: dict[str, list[Result]] = {}
        for result in results:
            if result.collection == collection.name:
                own.setdefault(result.entry, []).append(result)
        if not own:
            continue
        yield f"### {collection.name}\n"
        why = {entry.name: entry for entry in collection.entries}
        rows = []
        for name, variants in own.items():
            right = [result.variant for result in variants if result.verdict == "right"]
            other = sorted({result.verdict for result in variants if result.verdict != "right"})
            entry = why.get(name)
            note = f"tolerance x {entry.tolerance:g}: {entry.because}" if entry and entry.because else ""
            cells = [_time(variants, count) for count in threads]
            rows.append((f"`{name}`", ", ".join(right) or "-", ", ".join(other), *cells, note))
        yield from table(("entry", "right on", "else", *timed, ""), rows)


def _time(variants: Iterable[Result], threads: int) -> str:
    for result in variants:
        if threads in result.times:
            times = result.times[threads]
            ratio = f", {times.ratio:.2f}x" if times.ratio else ""
            return f"{times.seconds * 1e3:.3g}{ratio}"
    return ""


_WIDTH, _HEIGHT, _EDGE = 720, 320, 48
_COLOURS = ("#1f77b4", "#d9662b", "#2b8a3e", "#8250df")


def plot(found: dict[int, list[float]]) -> str:
    """Ratios in ascending order as SVG, on a logarithmic axis, with the geometric means."""
    values = [ratio for series in found.values() for ratio in series] or [1.0]
    low = min(math.floor(math.log2(min(values))), -1)
    high = max(math.ceil(math.log2(max(values))), 1)

    def y(ratio: float) -> float:
        return _HEIGHT - _EDGE - (math.log2(ratio) - low) / (high - low) * (_HEIGHT - 2 * _EDGE)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for power in range(low, high + 1, max((high - low) // 8, 1)):
        stroke = "#444" if power == 0 else "#ddd"
        label, level = f"{2.0**power:g}x", y(2.0**power)
        parts.append(
            f'<line x1="{_EDGE}" x2="{_WIDTH - 8}" y1="{level:.1f}" y2="{level:.1f}" stroke="{stroke}"/>'
            f'<text x="{_EDGE - 6}" y="{level + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for number, (threads, series) in enumerate(found.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        step = (_WIDTH - _EDGE - 8) / max(len(series), 1)
        dots = "".join(
            f'<circle cx="{_EDGE + (k + 0.5) * step:.1f}" cy="{y(ratio):.1f}" r="2"/>'
            for k, ratio in enumerate(series)
        )
        text = f"{_of_threads(threads)}: geometric mean {geometric_mean(series):.2f}x"
        parts.append(
            f'<g fill="{colour}">{dots}<text x="{_EDGE + 8}" y="{20 + 16 * number}">{text}</text></g>'
        )
    parts.append(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 16}" text-anchor="middle">entries, in ascending order; '
        "above 1x, faster than torch eager</text></svg>"
    )
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Add runs to a page. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Add runs of the level public to a page.")
    parser.add_argument("page", type=Path, metavar="FILE", help="the page, such as docs/public-kernels.md")
    parser.add_argument("reports", type=Path, nargs="*", metavar="REPORT", help="the folder of a run")
    given = parser.parse_args(arguments)
    try:
        write(given.reports, given.page)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

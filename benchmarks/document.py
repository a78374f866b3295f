"""`python -m benchmarks.document`: write docs/performance.md from a results file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from .compiling import FRONT_END, STAGES
from .document_texts import HEAD, INNER_LOOPS, MISSES, SECTIONS, TAIL
from .figures import Figure, Results
from .kinds import FOLDER, fullest, read_kinds, title_of
from .kinds_picture import NAME, picture
from .measure import OURS
from .plots import MACHINE
from .report import bar_text, verdict
from .rows import BEST, COMPILED, EAGER, MEAN

RELEASES = ("triton", "torch")
ROOT = Path(__file__).resolve().parents[1]
DOCUMENT, PLOTS = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance"


def _others(about: Mapping[str, Any]) -> Iterator[str]:
    """The commands that measured the rest."""
    source: Any = about
    while source := source.get("others"):
        yield f"Figures that this does not measure: `{source['command']}` on {source['date']}.\n"


def machine_section(results: Results) -> Iterator[str]:
    """The machine and the versions."""
    about = results.about
    machine = about["machine"]
    yield "## Machine\n"
    if about.get("note"):
        yield f"**{about['note']}**\n"
    yield f"Measured by `{about['command']}`.\n"
    yield from _others(about)
    releases = ", ".join(f"{name} {release}" for name, release in about["versions"].items() if release)
    yield from table(
        ("", ""),
        (
            ("processor", f"{machine['cpu']}, {machine['device'].get('arch', machine['host'])}"),
            ("processors for this process", str(machine["cpus"])),
            ("other load when it ended", " ".join(map(str, machine["load"]))),
            ("date", about["date"]),
            ("releases", releases),
            (
                "separate runs",
                f"{about['rounds']}{', of which medians are shown' if about['rounds'] > 1 else ''}",
            ),
        ),
    )


def table(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """Lines of a table in Markdown, and an empty one."""
    head, body = list(head), list(body)
    if not body:
        return
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _threads(results: Results) -> list[int]:
    return sorted({figure.threads for figure in results.figures if figure.threads})


def _marked(figure: Figure | None) -> str:
    """A figure with its quartiles; bold where it misses its target."""
    if figure is None:
        return ""
    text = f"{figure.text()} ({figure.text(figure.low)} … {figure.text(figure.high)})"
    return f"**{text}**" if figure.met is False else text


def kernel_section(results: Results, kinds: Iterable[Results]) -> Iterator[str]:
    """Each row with its targets, and why they are missed on any of the `kinds`."""
    yield "## Kernels\n"
    yield (
        "Ratios with their quartiles; **bold** where the target is missed. In rows with AVX2, both sides are limited\n"
        "to AVX2.\n"
    )
    yield from kernel_table(results)
    found = [f for kind in kinds for f in kind.group("kernels") if f.column.endswith(f" / {OURS}")]
    yield from _reasons(found, "Of those that miss the target, here or on another kind of CPU:")


def kernel_table(results: Results) -> Iterator[str]:
    """A row for each kernel and peer, with columns for each number of threads."""
    threads = _threads(results)
    names = list(dict.fromkeys(figure.name for figure in results.group("kernels")))
    rows = []
    for name in names:
        for peer in (EAGER, COMPILED):
            column = f"{peer} / {OURS}"
            found = {count: results.find("kernels", name, column, count) for count in threads}
            if not any(found.values()):
                continue
            bars = [f"{f.bar:g}" if f and f.bar is not None else "-" for f in found.values()]
            times = [results.find("kernels", name, OURS, count) for count in threads]
            rows.append(
                [
                    name,
                    peer,
                    " / ".join(bars),
                    *(_marked(figure) for figure in found.values()),
                    " / ".join(time.text() if time else "-" for time in times),
                ]
            )
    counts = " / ".join(f"{count}" for count in threads)
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    yield from table(["work", "peer", f"target ({counts})", *heads, f"our time ({counts})"], rows)


def workload_section(results: Results, title: str = "## What models do") -> Iterator[str]:
    """What models do, beside the ways that torch has for it."""
    threads = _threads(results)
    found = results.group("workloads")
    if not found:
        return
    yield f"{title}\n"
    yield (
        "Kernels as their public users write them (`benchmarks/workloads/`), in Triton, beside torch eager,\n"
        "`torch.compile` with Inductor's C++, and, where torch has one, an operator of its own for the same work.\n"
        "The target holds for the fastest of them; **bold** where it is missed. Gradients are included where the name\n"
        "says so.\n"
    )
    rows = []
    for name in dict.fromkeys(figure.name for figure in found):
        columns = dict.fromkeys(f.column for f in found if f.name == name and f.column.endswith(f" / {OURS}"))
        others = [column for column in columns if column != BEST]
        best = [results.find("workloads", name, BEST, count) for count in threads]
        rows.append(
            [
                name,
                *(_marked(figure) for figure in best),
                "; ".join(
                    f"{column.removesuffix(f' / {OURS}')} "
                    + " / ".join(
                        f.text() if (f := results.find("workloads", name, column, count)) else "-"
                        for count in threads
                    )
                    for column in others
                ),
                *(
                    " / ".join(
                        show(f) if (f := results.find("workloads", name, column, count)) else ""
                        for count in threads
                    ).strip(" /")
                    for column, show in ((OURS, Figure.text), ("of the roof", _percent))
                ),
            ]
        )
    bars = {bar_text(f) for f in found if f.bar is not None and f.name != MEAN}
    counts = " / ".join(map(str, threads))
    heads = [f"{BEST}, {count} thread{'s' * (count > 1)}" for count in threads]
    yield from table(
        ["work", *heads, f"each ({counts})", f"our time ({counts})", f"of the roof ({counts})"], rows
    )
    yield (
        f"Target: {', '.join(sorted(bars))} each; geometric mean "
        + "".join(sorted({bar_text(f) for f in found if f.name == MEAN}))
        + ".\n"
    )
    yield from _reasons(f for f in found if f.column == BEST)


def _reasons(figures: Iterable[Figure], title: str = "Of those that miss the target:") -> Iterator[str]:
    """Why targets are missed, as far as it is known."""
    missed = [figure.name for figure in figures if figure.met is False]
    if why := [text for name, text in MISSES.items() if any(re.fullmatch(name, one) for one in missed)]:
        yield "\n".join((f"{title}\n", *why, ""))


def _percent(figure: Figure) -> str:
    return f"{100 * figure.value:.0f}%"


def limits_section(results: Results) -> Iterator[str]:
    """The roof, and how close each kernel comes to it."""
    yield "## What limits each kernel\n"
    yield (
        "The roof is measured on the same machine by dedicated loops (`benchmarks/probe.py`): a triad over as\n"
        "many bytes as the kernel accesses, and multiply-adds in registers. The lower bound of a kernel's time is\n"
        "the bytes that it must move at that bandwidth, or the operations that it must do at that peak, whichever\n"
        "takes longer. float16 is widened to float32 and compared with float32's peak. If bandwidth is the limit\n"
        "but the fraction is small, the time goes to arithmetic that the roof does not count: exponentials, erf,\n"
        "divisions, comparisons. Where torch reaches nearly all of the roof, no kernel can be much faster than\n"
        "torch.\n"
    )
    threads = _threads(results)
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    machine = list(dict.fromkeys((f.name, f.column) for f in results.group("machine")))
    yield from table(
        ("machine", *heads),
        (
            (
                name,
                *(f.text() if (f := results.find("machine", name, column, n)) else "" for n in threads),
            )
            for name, column in machine
        ),
    )
    rows = []
    for name in dict.fromkeys(f.name for f in results.group("kernels") if f.column == "of the roof"):
        found = [results.find("kernels", name, "of the roof", count) for count in threads]
        limit = next(f.note for f in found if f)
        ratios = [results.find("kernels", name, f"{EAGER} / {OURS}", count) for count in threads]
        theirs = [
            f"{100 * f.value / r.value:.0f}%" if f and r else "" for f, r in zip(found, ratios, strict=True)
        ]
        rows.append([name, limit, *(f"{100 * f.value:.0f}%" if f else "" for f in found), " / ".join(theirs)])
    heads = [f"of the roof, {head}" for head in heads]
    yield from table(("kernel", "limit", *heads, f"{EAGER} ({' / '.join(map(str, threads))})"), rows)


def compile_section(results: Results) -> Iterator[str]:
    """The time spent before a kernel runs."""
    figures = results.group("compile")
    if not figures:
        return
    yield "## Compiling\n"
    yield (
        "Compile times without any cache, in process. The front end is Triton's own, from Python to TTIR. The\n"
        "stages are the kit's; the first includes Triton's passes on TTIR. A warm start finds the kernel in the\n"
        "cache on disk. After Triton's lookup it binds the arguments, links the object, and creates the launcher.\n"
    )
    stages = list(dict.fromkeys(f.column for f in figures if f.column.startswith("stage ")))
    names = list(dict.fromkeys(f.name for f in figures if f.column == FRONT_END))
    find = {(f.name, f.column): f for f in figures}
    ratio, warm = "stages / front end", "warm start beyond the lookup, per kernel"
    yield from table(
        ("kernel", FRONT_END, STAGES, *(s.removeprefix("stage ") for s in stages), ratio, "warm start"),
        (
            (
                name,
                *(
                    f.text() if (f := find.get((name, column))) else ""
                    for column in (FRONT_END, STAGES, *stages)
                ),
                *(_marked(find.get((name, column))) for column in (ratio, warm)),
            )
            for name in names
        ),
    )
    bars = {f.column: bar_text(f) for f in figures if f.bar is not None}
    yield "Targets: " + "; ".join(f"{column} {bar}" for column, bar in bars.items()) + ".\n"
    for figure in figures:
        if figure.name not in names:
            yield f"Stages of {figure.name}: {_marked(figure)}, the target is {bar_text(figure)}.\n"


def other_section(results: Results) -> Iterator[str]:
    """All other figures with a target."""
    sections = (
        ("first result", "The first result of a process"),
        ("launch", "Launching"),
        ("scaling", "More threads"),
        ("tiles", "Tiles of a matmul"),
        ("after torch", "Right after a call of torch"),
        ("memory", "Memory"),
        ("interpreter", "Triton's interpreter"),
    )
    for group, title in sections:
        figures = [f for f in results.group(group) if group != "tiles" or f.bar is not None]
        if not figures:
            continue
        yield f"## {title}\n"
        if group in SECTIONS:
            yield SECTIONS[group] + "\n"
        yield from figure_table(figures)


def figure_table(figures: Iterable[Figure]) -> Iterator[str]:
    """A row for each figure."""
    yield from table(
        ("benchmark", "figure", "threads", "median (quartiles)", "target", ""),
        (
            (
                f.name,
                f.column,
                str(f.threads or ""),
                _marked(f) if f.low != f.high else f.text(),
                bar_text(f),
                verdict(f) + (f" ({f.note})" if f.note else ""),
            )
            for f in figures
        ),
    )


def other_kinds_sections(kinds: Mapping[str, Results]) -> Iterator[str]:
    """Of the kinds that the page is not about: kernels and what models do, and the gains of more than two threads."""
    name, _ = fullest(kinds.items())
    for other, results in kinds.items():
        many = max(_threads(results), default=0) > 2
        if other == name:
            continue
        about = results.about
        yield f"## {title_of(other)}\n"
        releases = ", ".join(
            f"{what} {release}" for what, release in about["versions"].items() if release and what in RELEASES
        )
        yield f"Measured by `{about['command']}` on {about['date']}, {releases}.\n"
        yield from _others(about)
        if about.get("note"):
            yield f"{about['note']}\n"
        yield from kernel_table(results)
        if many:
            yield 'Gains, as under "More threads":\n'
            yield from figure_table(results.group("scaling"))
        yield from workload_section(results, "### What models do there")


def plot_section(plots: Iterable[str], machine: str) -> Iterator[str]:
    """The plots, and on which machine they were drawn."""
    plots = sorted(plots)
    if not plots:
        return
    yield "## Over sizes\n"
    yield (
        "Drawn by `triton.testing.perf_report` (`python -m benchmarks.plots`), with one thread per processor. The\n"
        f"band shows the quartiles. {machine}\n"
    )
    for name in plots:
        yield f"![{Path(name).stem}](performance/{name})\n"


def kinds_section(kinds: Mapping[str, Results]) -> Iterator[str]:
    """Which kinds of CPU were measured, and the picture of all."""
    yield "## Kinds of CPU\n"
    yield (
        "Torch's time over ours, with the most threads that were measured; a dot at the edge is beyond the scale, an\n"
        "empty one misses its target. Kinds that are not in the table were not measured.\n"
    )
    yield f"![torch's time over ours, by kernel and kind of CPU](performance/{NAME})\n"
    yield from table(
        ("kind", "processor", "date", "targets met"),
        (
            (
                title_of(name),
                results.about["machine"]["cpu"],
                results.about["date"],
                _met(results),
            )
            for name, results in kinds.items()
        ),
    )
    name, _ = fullest(kinds.items())
    yield f"The rest of this page is about {title_of(name)}, which has the most figures.\n"


def _met(results: Results) -> str:
    with_bars = [figure for figure in results.figures if figure.met is not None]
    return f"{sum(bool(figure.met) for figure in with_bars)} of {len(with_bars)}"


def document(kinds: Mapping[str, Results], plots: Iterable[str], machine: str = "") -> str:
    """The whole page. `machine` says on what the plots were drawn."""
    _, results = fullest(kinds.items())
    parts: list[str] = [HEAD, *kinds_section(kinds), *machine_section(results)]
    parts += kernel_section(results, kinds.values())
    for section in (workload_section, limits_section, compile_section, other_section):
        parts += section(results)
    parts += other_kinds_sections(kinds)
    parts += plot_section(plots, machine)
    parts += [INNER_LOOPS, TAIL]
    return "\n".join(parts)


def pictures(folder: Path) -> list[str]:
    """Names of the plots in a folder."""
    return [path.name for path in folder.glob("*.png")]


def drawn_on(folder: Path) -> str:
    """On which machine `benchmarks.plots` drew what is in a folder; empty if it does not say."""
    path = folder / MACHINE
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def main(
    results: Annotated[
        Path, typer.Argument(help="The folder of results, one file for each kind of CPU.")
    ] = FOLDER,
    out: Annotated[Path, typer.Argument(help="The page to write.")] = DOCUMENT,
    plots: Annotated[Path, typer.Option(help="The folder of plots, beside the page.")] = PLOTS,
) -> None:
    """Write the page about performance from results."""
    try:
        found = read_kinds(results)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    if not found:
        typer.echo(
            f"{results} holds no results; write some with python -m benchmarks.run --out {results}", err=True
        )
        raise typer.Exit(2)
    (plots / NAME).write_text(picture(found), encoding="utf-8")
    out.write_text(document(found, pictures(plots), drawn_on(plots)), encoding="utf-8")
    typer.echo(f"wrote {out} and {plots / NAME}")


if __name__ == "__main__":
    typer.run(main)

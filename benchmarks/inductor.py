"""`python -m benchmarks.inductor`: `torch.compile` for the CPU by the kit's Triton backend and by Inductor's own C++.

One process for each number of threads compiles every program of `benchmarks.inductor_patterns` with both, checks the
results against float64, and samples the calls in turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .about import facts
from .environment import environment
from .figures import Figure, Results
from .inductor_columns import (
    COLD,
    COLD_RATIO,
    EAGER_RATIO,
    FASTEST_RATIO,
    GROUP,
    MEAN_BAR,
    OURS,
    RATIO,
    THEIRS,
    geometric_mean,
)
from .run import ROOT, default_threads, in_order

SUMMARY = "geometric mean"
ROW = "{:46}{:>8}{:>12}{:>12}{:>20}{:>10}{:>8}{:>12}{:>12}{:>8}"
HEADINGS = (
    "program", "threads", "ours", "C++", "ours / C++", "fastest", "eager /", "cold, ours", "cold, C++", "ratio",
)  # fmt: skip


def worker(threads: int, select: str, quick: bool, caches: Path) -> dict[str, Any]:
    """What a process with fresh caches has measured. Raises CalledProcessError where it fails."""
    out = caches / "figures.json"
    command = [sys.executable, "-m", "benchmarks.inductor_worker", "--threads", str(threads)]
    command += ["--select", select, "--out", str(out), *["--quick"] * quick]
    folders = {
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
    }
    backend = {"TRITON_DEFAULT_BACKEND": "cpu"}
    subprocess.run(command, env=environment(threads, False) | folders | backend, cwd=ROOT, check=True)
    data: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return data


def summary(figures: Iterable[Figure]) -> list[Figure]:
    """The geometric means of the ratios, for each number of threads; their low and high are the extremes."""
    ratios: dict[tuple[str, int], list[float]] = {}
    for figure in figures:
        if figure.column in (RATIO, FASTEST_RATIO, COLD_RATIO):
            ratios.setdefault((figure.column, figure.threads), []).append(figure.value)
    bars = {RATIO: MEAN_BAR, FASTEST_RATIO: MEAN_BAR}
    return [
        Figure(
            GROUP, SUMMARY, column, threads, "x", geometric_mean(values), min(values), max(values), True,
            bars.get(column),
        )
        for (column, threads), values in ratios.items()
    ]  # fmt: skip


def table(figures: Iterable[Figure]) -> list[str]:
    """The figures as lines of text, one for each program and number of threads."""
    rows: dict[tuple[str, int], dict[str, Figure]] = {}
    for figure in figures:
        rows.setdefault((figure.name, figure.threads), {})[figure.column] = figure
    lines = [ROW.format(*HEADINGS)]
    for (name, threads), row in rows.items():
        ratio = row[RATIO]
        spread = f"{ratio.text()} ({ratio.text(ratio.low)} … {ratio.text(ratio.high)})"
        columns = (FASTEST_RATIO, EAGER_RATIO, COLD[OURS], COLD[THEIRS], COLD_RATIO)
        texts = [row[column].text() if column in row else "" for column in (OURS, THEIRS)]
        rest = [row[column].text() if column in row else "" for column in columns]
        lines.append(ROW.format(name, threads, *texts, spread, *rest))
    return lines


def missed(figures: Iterable[Figure]) -> list[str]:
    """The figures that miss their targets, as lines of text."""
    return [
        f"missed: {f.name}, {f.threads} thread{'s' * (f.threads > 1)}: {f.column} {f.text()}, "
        f"the target is {'at most' if f.less else 'at least'} {f.text(f.bar)}"
        for f in figures
        if f.met is False
    ]


def parse_threads(text: str) -> list[int]:
    """``1,2`` as numbers. Raises typer.BadParameter."""
    try:
        counts = [int(part) for part in text.split(",")] if text else default_threads()
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise typer.BadParameter(f"{text!r} is no list of thread counts like 1,2", param_hint="--threads")
    return list(dict.fromkeys(counts))


def main(
    quick: Annotated[bool, typer.Option(help="A few programs, fewer runs.")] = False,
    select: Annotated[str, typer.Option(help="Only programs that match this regular expression.")] = "",
    threads: Annotated[str, typer.Option(help="Numbers of threads; by default 1,2.")] = "",
    out: Annotated[Path | None, typer.Option(help="Where to write the figures as JSON.")] = None,
) -> None:
    """Compile and time programs with both, and print a table.

    The exit status is 1 if a result is wrong, a program fails, or nothing matches. Targets that are missed are listed
    and do not change it.
    """
    figures: list[Figure] = []
    wrong: list[str] = []
    for count in parse_threads(threads):
        with tempfile.TemporaryDirectory() as caches:
            data = worker(count, select, quick, Path(caches))
        figures += [Figure.from_json(figure) for figure in data["figures"]]
        wrong += data["wrong"]
    figures = [*in_order(figures), *summary(figures)]
    typer.echo("\n".join([*table(figures), *missed(figures)]))
    if out is not None:
        Results(facts({"name": "cpu"}) | {"quick": quick}, tuple(figures)).write(out)
    for fault in wrong:
        typer.echo(f"WRONG: {fault}", err=True)
    if wrong or not figures:
        if not figures:
            typer.echo(f"nothing matches {select!r}", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

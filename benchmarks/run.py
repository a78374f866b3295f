"""`python -m benchmarks.run`: measure, print tables with the targets beside the figures, and write them to a file.

One process for each number of threads and each round, so that every library sizes its pool by its setting.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

if not __package__:  # run as a file: find the package that it is part of
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.about import cpu_name, facts
from benchmarks.environment import environment
from benchmarks.figures import Figure, Results, merge
from benchmarks.inductor_columns import geometric_mean
from benchmarks.kinds import Kind, file_of, host_kind
from benchmarks.report import print_results
from benchmarks.rows import BEST, MEAN, WORKLOAD_BAR, WORKLOADS_BAR, reduced_rows, rows
from benchmarks.scaling import scaling

ROOT = Path(__file__).resolve().parents[1]


def default_threads() -> list[int]:
    """One, and two where this process may use two."""
    return [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]


def worker(threads: int, only: str, quick: bool, reduced: bool) -> dict[str, Any]:
    """What a process of its own has measured. Raises CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks.worker", "--threads", str(threads), "--only", only]
        command += ["--out", str(out), *["--quick"] * quick, *["--reduced"] * reduced]
        subprocess.run(command, env=environment(threads, reduced), cwd=ROOT, check=True)
        data: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return data


def mean_of_workloads(figures: list[Figure]) -> list[Figure]:
    """The geometric mean of the workloads' ratios, for each number of threads; its low and high are the extremes."""
    ratios: dict[int, list[float]] = {}
    for figure in figures:
        if figure.group == "workloads" and figure.column == BEST and figure.name != MEAN:
            ratios.setdefault(figure.threads, []).append(figure.value)
    return [
        Figure(
            "workloads", MEAN, BEST, threads, "x", geometric_mean(values), min(values), max(values),
            False, WORKLOADS_BAR,
        )
        for threads, values in ratios.items()
    ]  # fmt: skip


def with_mean(results: Results) -> Results:
    """The results with the means of the workloads that they have."""
    means = mean_of_workloads(list(results.figures))
    known = {figure.key for figure in means}
    figures = [figure for figure in results.figures if figure.key not in known]
    return Results(results.about, tuple(in_order([*figures, *means])))


def opening(kind: Kind, cpu: str, only: str) -> Iterator[str]:
    """What the machine is, and the targets of the rows that are measured: torch's time over ours, by threads."""
    yield f"{kind.title}: {cpu}"
    for row in rows():
        for peer, bars in row.bars.items():
            if re.search(only, row.name):
                yield f"  {row.name}: {peer} ≥ {' / '.join(f'{bar:g}' for bar in bars.values())}"
    yield f"  workloads: each ≥ {WORKLOAD_BAR:g}, geometric mean ≥ {WORKLOADS_BAR:g}"


def command_line(quick: bool, threads: list[int], only: str, rounds: int) -> str:
    """The command that measures the same again."""
    words = ["python", "-m", "benchmarks.run", *["--quick"] * quick]
    if threads != [1, 2]:
        words += [word for count in threads for word in ("--threads", str(count))]
    words += ["--only", only] if only else []
    words += ["--rounds", str(rounds)] if rounds > 1 else []
    return shlex.join(words)


def in_order(figures: list[Figure]) -> list[Figure]:
    """What belongs to one name together, the names as they came."""
    places: dict[tuple[str, str], int] = {}
    for figure in figures:
        places.setdefault((figure.group, figure.name), len(places))
    return sorted(figures, key=lambda figure: places[figure.group, figure.name])


def measure_round(
    threads: list[int], only: str, quick: bool
) -> tuple[list[Figure], list[str], dict[str, Any]]:
    """All figures once, what was wrong, and the device."""
    figures: list[Figure] = []
    wrong: list[str] = []
    device: dict[str, Any] = {}
    reduces = host_kind().exceeds_avx2 and any(re.search(only, row.name) for row in reduced_rows())
    for count in threads:
        for reduced in (False, True):
            if reduced and (quick or not reduces):
                continue
            data = worker(count, only, quick, reduced)
            figures += [Figure.from_json(figure) for figure in data["figures"]]
            wrong += data["wrong"]
            device = data["device"]
    return figures + scaling(figures), wrong, device


def main(
    quick: Annotated[bool, typer.Option(help="Fewer rows, fewer runs, no torch.compile.")] = False,
    out: Annotated[
        Path, typer.Option(help="Where to write the results; in a folder, the kind of CPU names the file.")
    ] = Path("results.json"),
    threads: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Threads of everyone; by default 1, then 2. May be repeated."),
    ] = None,
    only: Annotated[str, typer.Option(help="Measure what matches this regular expression.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Separate runs, whose medians count.")] = 1,
    note: Annotated[str, typer.Option(help="What readers should know, such as what else ran.")] = "",
    others: Annotated[
        Path | None,
        typer.Option(help="Results that have the rest, such as what takes an hour of torch's time."),
    ] = None,
) -> None:
    """Measure the kernels of the active backend beside torch (NumPy, where there is no torch).

    `--only` is matched against the names of rows ("matmul fp32 1024"), and "machine", "tiles ...", "after torch ...",
    "launch ...", "compile ...", "first result", "autotune ...", "build launcher", "memory matmul",
    "interpreter matmul". The exit status is 1 where a result is beyond its tolerance or something failed, or where
    nothing matches; bars that are not met do not change it.
    """
    counts = list(dict.fromkeys(threads or default_threads()))
    kind = host_kind()
    for line in opening(kind, cpu_name(), only):
        typer.echo(line)
    out = out / f"{file_of(kind, max(counts))}.json" if out.is_dir() else out
    try:
        rest = None if others is None else Results.read(others)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--others") from error
    measured: list[list[Figure]] = []
    wrong: list[str] = []
    for number in range(1, rounds + 1):
        if rounds > 1:
            typer.echo(f"round {number} of {rounds}", err=True)
        figures, faults, device = measure_round(counts, only, quick)
        measured.append(figures)
        wrong += faults
        about = facts(device) | {
            "kind": kind.name,
            "command": command_line(quick, counts, only, number),
            "rounds": number,
            "note": note,
            "quick": quick,
        }
        results = Results(about, tuple(in_order(merge(measured))))
        if rest is not None:
            results = results.completed(rest)
        results = with_mean(results)
        results.write(out)  # after each round: one that is interrupted or fails loses no other
    print_results(results)
    typer.echo(f"wrote {out}")
    for fault in dict.fromkeys(wrong):
        typer.echo(f"WRONG: {fault}", err=True)
    if wrong or not results.figures:
        if not results.figures:
            typer.echo(f"nothing matches {only!r}", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

"""Everything that is measured with one number of threads, in one process; started by `benchmarks.run`.

The number of threads is in the environment before this starts: libraries size their pools when they are loaded.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from triton.runtime import driver

from .apart import apart_figures
from .compiling import compile_figures, launcher_build_figure
from .copies import Copies, copies_figures
from .figures import Figure, measured
from .first_result import first_result_figures
from .launching import launch_figures
from .matmul_figures import after_torch_figures, tile_figures
from .measure import WrongResult, has_torch, make_place, measure
from .probe import Roof
from .rows import reduced_rows, rows
from .tuning import tuning_figures

QUICK_RUNS, RUNS = 7, 25


def say(text: str) -> None:
    """Progress, for who waits."""
    print(text, file=sys.stderr, flush=True)


def machine_figures(roof: Roof, threads: int) -> Iterator[Figure]:
    """The roof itself."""
    for size, name in ((192 << 20, "memory"), (1 << 20, "1 MiB"), (32 << 10, "32 KiB")):
        yield measured(
            roof.bandwidth(size * threads),
            "machine",
            f"triad, {name}",
            "bandwidth",
            threads,
            unit="B/s",
            less=False,
        )
    for dtype in ("float32", "bfloat16", "int8"):
        if (peak := roof.peak(dtype)) is not None:
            yield measured(
                peak,
                "machine",
                f"multiply-add {dtype}",
                "peak",
                threads,
                unit="FLOP/s",
                less=False,
            )


def everything(
    threads: int, wanted: Callable[[str], Any], quick: bool, reduced: bool
) -> tuple[list[Figure], list[str]]:
    """The figures, and what was wrong or failed."""
    runs = QUICK_RUNS if quick else RUNS
    place, roof = make_place(driver.active.device), Roof(threads)
    figures: list[Figure] = []
    wrong: list[str] = []

    def attempt(what: str, make: Callable[[], Any]) -> None:
        say(f"{threads} thread{'s' * (threads > 1)}: {what}")
        try:
            figures.extend(make())
        except WrongResult as error:
            wrong.append(str(error))
        except Exception as error:  # one that fails leaves the others their figures
            wrong.append(f"{what}: {type(error).__name__}: {error}")

    # First, as a tuner's first launch is early in a process.
    if threads == 1 and not reduced:
        attempt("autotune", lambda: tuning_figures(place, wanted, quick))
    with Copies(threads, reduced) as copies:
        for row in reduced_rows() if reduced else rows():
            if not wanted(row.name) or (quick and not row.quick):
                continue
            attempt(row.name, partial(measure, row, place, roof, threads, runs, quick))
            if threads > 2 and row.flops and has_torch():
                attempt(f"{row.name}, copies", partial(copies_figures, row, place, copies))
    if reduced:
        return figures, wrong
    if has_torch():
        _workloads(attempt, wanted, roof, threads, runs, quick)
    if wanted("machine"):
        attempt("machine", lambda: machine_figures(roof, threads))
    attempt("tiles", lambda: tile_figures(place, threads, wanted, quick))
    if has_torch():
        attempt("after torch", lambda: after_torch_figures(place, threads, wanted, runs))
    attempt("launch", lambda: launch_figures(place, threads, wanted, runs))
    if threads == 1:
        attempt("compile", lambda: compile_figures(place, wanted, quick))
        attempt("first result", lambda: first_result_figures(wanted, quick))
        if wanted("build launcher"):
            attempt("build launcher", lambda: [launcher_build_figure(quick)])
    attempt("processes of their own", lambda: apart_figures(threads, wanted, quick))
    return figures, wrong


def _workloads(
    attempt: Callable[[str, Callable[[], Any]], None],
    wanted: Callable[[str], Any],
    roof: Roof,
    threads: int,
    runs: int,
    quick: bool,
) -> None:
    from .workloads.measure import measure as measure_workload
    from .workloads.table import workloads

    for workload in workloads():
        if wanted(workload.name) and (workload.quick or not quick):
            attempt(workload.name, partial(measure_workload, workload, roof, threads, runs, quick))


def main() -> None:
    """Measure and write figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if has_torch():
        import torch

        torch.set_num_threads(given.threads)
    figures, wrong = everything(given.threads, re.compile(given.only).search, given.quick, given.reduced)
    properties = driver.active.device.properties()
    data = {
        "device": {"name": properties.name, "arch": properties.arch},
        "figures": [figure.to_json() for figure in figures],
        "wrong": wrong,
    }
    given.out.write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.run`: measure, print a table, and write the samples to a file.

One process measures everything, so that kernels and peers meet the same machine in the same state.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

if not __package__:  # run as a file: find the package that it is part of
    sys.path[0] = str(Path(__file__).resolve().parents[1])

#: Every library that brings threads of its own reads one of these when it is loaded.
THREAD_VARIABLES = ("TPK_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
QUICK_RUNS, RUNS = 10, 25
COMPILE_RUNS = 10


def default_threads() -> int:
    """TPK_NUM_THREADS, or all processors that this process may use."""
    return int(os.environ.get("TPK_NUM_THREADS") or len(os.sched_getaffinity(0)))


def main(
    quick: Annotated[bool, typer.Option(help="Smaller shapes and fewer runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where to write the results.")] = Path("results.json"),
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of everyone; by default TPK_NUM_THREADS, or all.")
    ] = None,
    only: Annotated[str, typer.Option(help="Measure what matches this regular expression.")] = "",
) -> None:
    """Measure the kernels of the active backend beside NumPy and torch.

    `--only` is matched against the names of cases, "compile" followed by a name, "launch", and
    "build launcher". The exit status is 1 where a result is beyond its tolerance, or nothing matches.
    """
    threads = threads or default_threads()
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    # Imported only now: NumPy and torch size their thread pools when they are loaded.
    from rich.console import Console
    from triton.runtime import driver

    from benchmarks import cases, overhead, report
    from triton_porting_kit.kernels.places import DevicePlace

    set_torch_threads(threads)
    wanted = re.compile(only)
    runs = QUICK_RUNS if quick else RUNS
    device = driver.active.device
    place = DevicePlace(device)
    console = Console(width=None if os.isatty(1) else 140)

    measurements = []
    for case in cases.suite(quick):
        if wanted.search(case.id):
            console.print(f"measuring {case.id}", style="dim")
            measurements.append(cases.measure(case, place, runs))
    compile_times = {
        case.id: overhead.compile_time(case, kernels, place, COMPILE_RUNS)
        for case, kernels in overhead.COMPILED
        if wanted.search(f"compile {case.id}")
    }
    latency = overhead.launch_latency(place, runs) if wanted.search("launch") else None
    build = overhead.launcher_build_time(COMPILE_RUNS) if wanted.search("build launcher") else None
    if not (measurements or compile_times or latency or build):
        console.print(f"nothing matches {only!r}", markup=False)
        raise typer.Exit(1)

    report.print_tables(console, measurements, compile_times, latency, build)
    report.write_json(out, report.facts(device, threads), measurements, compile_times, latency, build)
    console.print(f"wrote {out}", markup=False)
    if not all(measurement.within_tolerance for measurement in measurements):
        raise typer.Exit(1)


def set_torch_threads(threads: int) -> None:
    """Give torch as many threads as everyone else, where there is torch."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)


if __name__ == "__main__":
    typer.run(main)

"""`tpk fuzz`: runs random programs up to a count or a time limit, and shrinks those that fail."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from triton_porting_kit.conformance.command.progress import plain
from triton_porting_kit.conformance.profile import find
from triton_porting_kit.conformance.stress.campaign import Campaign, Failure, seeds_of
from triton_porting_kit.conformance.stress.configuration import NoSuchConfiguration, configurations, families
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.program import Program, size_of

PROGRESS_SECONDS = 30.0
"""Seconds between progress lines if there is no terminal for a progress bar."""


@dataclass(frozen=True)
class FuzzRequest:
    """The options of the command."""

    backend: str = "cpu"
    count: int | None = 200
    """The number of programs; None: no limit."""
    minutes: float | None = None
    seed: int = 0
    replay: int | None = None
    """The seed of a single program to run."""
    shrink: bool = True
    out: Path = Path("fuzz-failures")
    seconds: float = 60.0
    """Time limit of one program."""
    profile: str = ""
    jobs: int = 1
    """The number of programs that run in parallel."""
    isa: str = ""
    """Instruction-set levels, or ``each``."""
    threads: str = ""
    """Numbers of threads, separated by commas."""
    about: str = ""
    """Families of programs, separated by commas; empty: all."""
    against: str = ""
    """Compiler options of a second run, ``NAME=VALUE`` separated by commas."""


def run_fuzz(request: FuzzRequest) -> int:
    """Run the command, and return the exit status: 0 if every program gave the expected results.

    Raises `WorkerFailed` and `NoSuchConfiguration`.
    """
    console = Console(highlight=False)
    about = families(request.about)
    seeds = [request.replay] if request.replay is not None else seeds_of(request.seed, request.count, about)
    total = 1 if request.replay is not None else request.count
    profile = request.profile or str(find(request.backend) or "")
    failures: list[Failure] = []
    ways = configurations(request.backend, request.isa, request.threads, request.against)
    with contextlib.ExitStack() as stack:
        workers = [Isolated(request.backend, profile, request.seconds) for _ in range(request.jobs)]
        with ThreadPoolExecutor(len(workers)) as pool:  # each takes seconds to import Triton
            for worker in workers:
                stack.callback(worker.stop)
            list(pool.map(Isolated.start, workers))
        if request.threads and not workers[0].forks:
            raise NoSuchConfiguration(
                f"the programs of backend {request.backend!r} share a process, which has a fixed number of threads: "
                "omit --threads"
            )
        bar = stack.enter_context(_bar(console))
        task = bar.add_task("programs", total=total, state="")

        def watch(tried: int, program: Program) -> None:
            bar.update(task, state=f"shrinking: {size_of(program)} statements after {tried} tries")

        campaign = Campaign(
            request.backend, workers, request.out, request.shrink, watch=watch, configurations=ways
        )
        begin = said = time.monotonic()
        try:
            for _, found in campaign.run(seeds, request.minutes and request.minutes * 60):
                failures += found
                for failure in found:
                    _show(console, failure)
                bar.update(task, advance=1, state=f"{len(failures)} failed")
                if bar.disable and time.monotonic() - said >= PROGRESS_SECONDS:
                    said = time.monotonic()
                    console.print(f"{said - begin:.0f} s: {campaign.ran} programs, {len(failures)} failures")
        except KeyboardInterrupt:
            console.print("Interrupted.")
            return 130
        seconds = time.monotonic() - begin
    _summary(console, request, campaign, failures, seconds)
    return 1 if failures else 0


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.completed} programs"),
        BarColumn(24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _show(console: Console, failure: Failure) -> None:
    way = f" ({failure.configuration})" if str(failure.configuration) else ""
    console.print(f"[bold red]seed {failure.seed}[/]{way}: {plain(failure.outcome)}")
    if failure.shrunk is not None:
        size = size_of(failure.shrunk.program)
        console.print(f"  {failure.statements} statements shrunk to {size} in {failure.shrunk.tried} tries")
        console.print(failure.shrunk.launch.source, markup=False, soft_wrap=True)
    if failure.path is not None:
        console.print(f"  script: {plain(str(failure.path))}")


def _summary(
    console: Console, request: FuzzRequest, campaign: Campaign, failures: list[Failure], seconds: float
) -> None:
    ways = len(campaign.configurations)
    ran = f"{campaign.ran} programs" + (f", each in {ways} configurations" if ways > 1 else "")
    if request.against:
        ran += f" and with {request.against}: equal results {campaign.same} times"
    speed = f"{campaign.ran * ways / max(seconds, 1e-3):.1f} a second"
    if not failures:
        console.print(f"{ran}, none failed ({speed}).")
        return
    again = f"tpk fuzz --backend {request.backend} --replay"
    seeds = {failure.seed for failure in failures}
    console.print(f"{ran}, {len(seeds)} failed ({speed}):")
    for failure in failures:
        way = failure.configuration
        options = f" --isa {way.isa}" * bool(way.isa) + f" --threads {way.threads}" * bool(way.threads)
        options += f" --against {request.against}" * bool(request.against)
        console.print(
            f"  {again} {failure.seed}{options}    {plain(str(failure.outcome)[:90])}", soft_wrap=True
        )

"""`tpk fuzz`: random programs until a count or a time is reached, shrunk where they fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from triton_porting_kit.conformance.profile import find
from triton_porting_kit.conformance.stress.campaign import Campaign, Failure, seeds_of
from triton_porting_kit.conformance.stress.isolation import Isolated
from triton_porting_kit.conformance.stress.program import Program, size_of


@dataclass(frozen=True)
class FuzzRequest:
    """The options of the command."""

    backend: str = "cpu"
    count: int | None = 200
    """None: as many as there is time for."""
    minutes: float | None = None
    seed: int = 0
    replay: int | None = None
    """The seed of one program, which is run alone."""
    shrink: bool = True
    out: Path = Path("fuzz-failures")
    seconds: float = 60.0
    """Of one program."""
    profile: str = ""


def run_fuzz(request: FuzzRequest) -> int:
    """The exit status: 0 where every program gave what was expected. Raises `WorkerFailed`."""
    console = Console(highlight=False)
    seeds = [request.replay] if request.replay is not None else seeds_of(request.seed, request.count)
    total = 1 if request.replay is not None else request.count
    profile = request.profile or str(find(request.backend) or "")
    failures: list[Failure] = []
    with Isolated(request.backend, profile, request.seconds) as worker, _bar(console) as bar:
        task = bar.add_task("programs", total=total, state="")

        def watch(tried: int, program: Program) -> None:
            bar.update(task, state=f"shrinking: {size_of(program)} statements after {tried} tries")

        campaign = Campaign(request.backend, worker, request.out, request.shrink, watch=watch)
        try:
            for _, failure in campaign.run(seeds, request.minutes and request.minutes * 60):
                if failure is not None:
                    failures.append(failure)
                    _show(console, failure)
                bar.update(task, advance=1, state=f"{len(failures)} failed")
        except KeyboardInterrupt:
            console.print("Interrupted.")
            return 130
    _summary(console, request, campaign.ran, failures)
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
    console.print(f"[bold red]seed {failure.seed}[/]: {escape(str(failure.outcome))}")
    if failure.shrunk is not None:
        size = size_of(failure.shrunk.program)
        console.print(f"  {failure.statements} statements shrunk to {size} in {failure.shrunk.tried} tries")
        console.print(failure.shrunk.launch.source, markup=False, soft_wrap=True)
    if failure.path is not None:
        console.print(f"  script: {escape(str(failure.path))}")


def _summary(console: Console, request: FuzzRequest, ran: int, failures: list[Failure]) -> None:
    if not failures:
        console.print(f"{ran} programs, none failed.")
        return
    again = f"tpk fuzz --backend {request.backend} --replay"
    console.print(f"{ran} programs, {len(failures)} failed:")
    for failure in failures:
        console.print(f"  {again} {failure.seed}    {escape(str(failure.outcome)[:90])}", soft_wrap=True)

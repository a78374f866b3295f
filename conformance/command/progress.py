"""What is shown while a run goes on: a line with counts by status and the time that is left."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import BAD, Status

STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.CRASH: "bold red",
    Status.TIMEOUT: "bold red",
    Status.HARNESS_ERROR: "bold magenta",
    Status.UNSUPPORTED: "dim",
    Status.EXPECTED_FAILURE: "yellow",
    Status.UNEXPECTED_PASS: "yellow",
    Status.WAIVED: "yellow",
}
_LINES_OUTSIDE = 20
"""Where nobody watches a terminal, a line is printed after each so-many-eth part of the run."""


def counted(counts: Counter[Status], *, styled: bool = True) -> str:
    """``12 pass, 1 fail``, with rich's markup."""
    parts = [
        f"[{STYLES[status]}]{counts[status]} {status}[/]" if styled else f"{counts[status]} {status}"
        for status in Status
        if counts[status]
    ]
    return ", ".join(parts) or "nothing yet"


class Watcher:
    """Shows how far a run is, and what fails as it fails. A context manager."""

    def __init__(self, console: Console, total: int, *, quiet: bool) -> None:
        self.counts: Counter[Status] = Counter()
        self._console, self._total, self._quiet = console, total, quiet
        self._live = not quiet and console.is_terminal
        self._progress = Progress(
            BarColumn(24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._progress.add_task("checks", total=total, counts=counted(self.counts))
        self._shown = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def saw(self, record: Record) -> None:
        """Count a check that is over."""
        self.counts[record.status] += 1
        done = self.counts.total()
        self._progress.update(self._task, advance=1, counts=counted(self.counts))
        if self._quiet:
            return
        if record.status in BAD:
            self._progress.console.print(
                f"[{STYLES[record.status]}]{record.status}[/] {record.name} [dim]{record.stage}[/]",
                highlight=False,
                soft_wrap=True,
            )
        if not self._live and done * _LINES_OUTSIDE // self._total > self._shown:
            self._shown = done * _LINES_OUTSIDE // self._total
            self._console.print(f"{done}/{self._total}: {counted(self.counts)}", highlight=False)

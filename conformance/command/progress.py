"""The progress display of a run: failures, and a line with counts by status and the remaining time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.failures import first_line
from triton_porting_kit.conformance.status import BAD, Status
from triton_porting_kit.untrusted import shown

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
_MESSAGE = 200
"""The number of characters of a failure's message that are shown."""
_LINES_OUTSIDE = 20
"""The number of progress lines of a run without a terminal."""


def plain(text: object) -> str:
    """Escape text of a check, a device or a profile, so that neither rich nor the terminal interprets it."""
    return escape(shown(text))


def counted(counts: Counter[Status], *, styled: bool = True) -> str:
    """Format counts as ``12 pass, 1 fail``, optionally with rich's markup."""
    parts = [
        f"[{STYLES[status]}]{counts[status]} {status}[/]" if styled else f"{counts[status]} {status}"
        for status in Status
        if counts[status]
    ]
    return ", ".join(parts) or "nothing yet"


class Watcher:
    """A context manager that shows the progress of a run, and failures as they occur.

    `records`: the file with the full messages.
    """

    def __init__(self, console: Console, total: int, records: Path, *, quiet: bool) -> None:
        self.counts: Counter[Status] = Counter()
        self._console, self._total, self._quiet = console, total, quiet
        self._records: Path | None = records
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
        """Count a finished check."""
        self.counts[record.status] += 1
        done = self.counts.total()
        self._progress.update(self._task, advance=1, counts=counted(self.counts))
        if self._quiet:
            return
        if record.status in BAD:
            self._tell(record)
        if not self._live and done * _LINES_OUTSIDE // self._total > self._shown:
            self._shown = done * _LINES_OUTSIDE // self._total
            self._console.print(f"{done}/{self._total}: {counted(self.counts)}", highlight=False)

    def _tell(self, record: Record) -> None:
        """Print a failure in two lines; after the first failure, also the path of the records."""
        line = shown(first_line(record), lines=False)
        message = line if len(line) <= _MESSAGE else f"{line[:_MESSAGE]} ..."
        text = Text.assemble(
            (str(record.status), STYLES[record.status]),
            f" {shown(record.name)} ",
            (shown(record.stage), "dim"),
        )
        text.append(f"\n    {message}")
        if self._records is not None:
            text.append(f"\n    full messages: {self._records}")
            self._records = None
        self._progress.console.print(text, highlight=False, soft_wrap=True)

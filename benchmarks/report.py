"""The results as tables in a terminal: each figure beside its target."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .figures import Figure, Results, unmet

TITLES = {
    "kernels": "Kernels: the peer's time over ours, above 1 is faster than the peer",
    "workloads": "What models do, beside the faster of torch eager and torch.compile",
    "machine": "The machine",
    "scaling": "More threads",
    "tiles": "How much the tile of a matmul matters",
    "after torch": "Right after a call of torch",
    "launch": "Launching",
    "compile": "Compiling",
    "first result": "From the start of a process to its first result",
    "memory": "Memory",
    "interpreter": "Triton's interpreter",
}


def verdict(figure: Figure) -> str:
    """Whether the target is met, in a word; empty without a target."""
    return {None: "", True: "met", False: "missed"}[figure.met]


def bar_text(figure: Figure) -> str:
    """The target with its direction."""
    if figure.bar is None:
        return ""
    return f"{'≤' if figure.less else '≥'} {figure.text(figure.bar)}"


def detailed(figures: Iterable[Figure]) -> list[Figure]:
    """The figures that a table shows: of tiles only the worst, of compilation no single stage."""
    return [
        figure
        for figure in figures
        if not (figure.group == "tiles" and figure.bar is None) and not figure.column.startswith("stage ")
    ]


def print_results(results: Results, console: Console | None = None) -> None:
    """Print every group as a table, then the figures that miss their targets."""
    console = console or Console(width=None if os.isatty(1) else 150)
    for group, title in TITLES.items():
        figures = detailed(results.group(group))
        if figures:
            console.print(_table(title, figures))
    with_bars = [figure for figure in results.figures if figure.met is not None]
    missed = unmet(with_bars)
    console.print(f"{len(with_bars) - len(missed)} of {len(with_bars)} targets are met")


def _table(title: str, figures: list[Figure]) -> Table:
    table = Table(title=title, box=SIMPLE, title_justify="left")
    for heading in ("what", "figure of it"):
        table.add_column(heading, no_wrap=True)
    for heading in ("threads", "median", "quartiles", "bar", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    last = ""
    for figure in figures:
        colour = {None: "", True: "green", False: "bold red"}[figure.met]
        table.add_row(
            escape(figure.name) if figure.name != last else "",
            escape(figure.column),
            str(figure.threads or ""),
            figure.text(),
            f"{figure.text(figure.low)} … {figure.text(figure.high)}" if figure.low != figure.high else "",
            bar_text(figure),
            f"[{colour}]{verdict(figure)}[/]" if colour else "",
            escape(figure.note),
        )
        last = figure.name
    return table

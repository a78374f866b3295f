"""`python -m benchmarks.compare OLD.json NEW.json`: which figures got worse beyond the noise.

A figure got worse where its median moved the wrong way by more than the tolerance, and its quartiles lie apart from
those of before. Times are compared as ratios to their peers where there are such, so that a machine that was slower
on the day is no news. The exit status is 1 where a figure got worse, 2 for files that cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .figures import Figure, Results
from .measure import OURS
from .report import verdict

TOLERANCE = 0.05
#: What is measured once has no quartiles: more is needed.
SINGLE_TOLERANCE = 0.15


@dataclass(frozen=True)
class Change:
    """The same figure in two results."""

    old: Figure
    new: Figure

    @property
    def relative(self) -> float:
        """How much better it became, as a part of the old value; negative is worse."""
        if self.old.value == self.new.value:
            return 0.0
        if not self.old.value or not self.new.value:
            return float("-inf") if (self.new.value > self.old.value) == self.new.less else float("inf")
        quotient = self.old.value / self.new.value if self.new.less else self.new.value / self.old.value
        return quotient - 1

    def apart(self) -> bool:
        """Whether the quartiles of one lie beyond those of the other."""
        return self.old.high < self.new.low or self.new.high < self.old.low

    def significant(self, tolerance: float) -> bool:
        """Whether this is more than noise."""
        if self.old.low == self.old.high and self.new.low == self.new.high:
            tolerance = max(tolerance, SINGLE_TOLERANCE)
        return abs(self.relative) > tolerance and self.apart()


def compared(results: Results) -> Iterator[Figure]:
    """The figures that say something about the kit: no peer's times, none of the machine, no extremes."""
    with_peer = {(f.group, f.name, f.threads) for f in results.figures if f.column.endswith(f"/ {OURS}")}
    for figure in results.figures:
        if figure.group in ("machine", "scaling") or figure.column.endswith("fastest runs"):
            continue
        if figure.group == "kernels":
            own = figure.column == OURS and (figure.group, figure.name, figure.threads) not in with_peer
            if not own and not figure.column.endswith(f"/ {OURS}"):
                continue
        yield figure


def changes(old: Results, new: Results) -> tuple[list[Change], list[Figure]]:
    """Figures of both results, and those of the old that the new lacks."""
    found = {figure.key: figure for figure in compared(new)}
    both = [Change(figure, found[figure.key]) for figure in compared(old) if figure.key in found]
    return both, [figure for figure in compared(old) if figure.key not in found]


def _line(change: Change) -> str:
    old, new = change.old, change.new
    threads = f", {new.threads} threads" if new.threads > 1 else ""
    bar = f"; the target is {verdict(new)}" if new.met is not None else ""
    spread = f"{new.text(new.low)} … {new.text(new.high)}"
    return (
        f"{new.group}: {new.name}: {new.column}{threads}: {old.text()} → {new.text()} ({spread}){bar} "
        f"[{change.relative:+.0%}]"
    )


def main(
    old: Annotated[Path, typer.Argument(help="Results from before.")],
    new: Annotated[Path, typer.Argument(help="Results of now.")],
    tolerance: Annotated[float, typer.Option(help="Changes up to this part are noise.")] = TOLERANCE,
) -> None:
    """Say which figures got worse, and which better, beyond the noise."""
    try:
        before, after = Results.read(old), Results.read(new)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    both, missing = changes(before, after)
    if not both:
        typer.echo(f"{old} and {new} have no figure in common", err=True)
        raise typer.Exit(2)
    for what in ("machine", "versions"):
        if _stable(before.about.get(what)) != _stable(after.about.get(what)):
            typer.echo(f"note: the {what} differ: {before.about.get(what)} and {after.about.get(what)}")
    moved = [change for change in both if change.significant(tolerance)]
    worse = [change for change in moved if change.relative < 0]
    for title, chosen in (("worse", worse), ("better", [c for c in moved if c.relative > 0])):
        typer.echo(f"{len(chosen)} figures got {title}")
        for change in sorted(chosen, key=lambda change: change.relative):
            typer.echo(f"  {_line(change)}")
    typer.echo(f"{len(both) - len(moved)} are as they were, {len(missing)} were not measured again")
    raise typer.Exit(1 if worse else 0)


def _stable(about: object) -> object:
    """Facts without those that change from minute to minute."""
    if isinstance(about, dict):
        return {name: value for name, value in about.items() if name != "load"}
    return about


if __name__ == "__main__":
    typer.run(main)

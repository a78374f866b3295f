"""Figures: what was measured, its spread and its target (`bar`); and files of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.untrusted import shown

from .timing import Samples, quartiles

FORMAT = 2
#: Decimal prefixes, the largest first.
_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s")),
    "B": ((2**20, "MiB"), (2**10, "KiB"), (1.0, "B")),
}


@dataclass(frozen=True)
class Figure:
    """One number of a result.

    `group` and `name` say what was measured and `column` what of it; `threads` is 0 where they do not matter.
    `value` is a median (of `rounds`, where there were several), `low` and `high` are quartiles. `unit` is ``s``,
    ``B``, ``B/s``, ``FLOP/s`` or ``x``; a target is met by values that are not below it, or, where `less` is better,
    not above it.
    """

    group: str
    name: str
    column: str
    threads: int
    unit: str
    value: float
    low: float
    high: float
    less: bool = True
    bar: float | None = None
    rounds: tuple[float, ...] = ()
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells this figure from the others of a result."""
        return self.group, self.name, self.column, self.threads

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.bar is None:
            return None
        return self.value <= self.bar if self.less else self.value >= self.bar

    def text(self, value: float | None = None) -> str:
        """The value, or another one, in the unit that suits it."""
        return show(self.value if value is None else value, self.unit)

    def to_json(self) -> dict[str, Any]:
        """Plain data; whether the target is met is included for readers."""
        return {**asdict(self), "met": self.met}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Figure:
        """The figure again. Raises TypeError, KeyError or AttributeError for other data."""
        fields = {name: value for name, value in data.items() if name != "met"}
        figure = Figure(**{**fields, "rounds": tuple(fields["rounds"])})
        texts = (figure.group, figure.name, figure.column, figure.unit, figure.note)
        numbers = (figure.threads, figure.value, figure.low, figure.high, figure.bar or 0, *figure.rounds)
        if not all(isinstance(t, str) for t in texts) or not all(isinstance(n, int | float) for n in numbers):
            raise TypeError(f"{data} is no figure")
        return figure


def show(value: float, unit: str) -> str:
    """A number with three significant digits or more, in the prefix that suits it."""
    if unit in _SCALES:
        scale, unit = next((s for s in _SCALES[unit] if abs(value) >= s[0]), _SCALES[unit][-1])
        value /= scale
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}" + ("" if unit == "x" else f" {unit}")


def measured(
    value: Samples | float,
    group: str,
    name: str,
    column: str,
    threads: int = 0,
    *,
    unit: str = "s",
    less: bool = True,
    bar: float | None = None,
    note: str = "",
) -> Figure:
    """A figure of many runs, their median and quartiles; or of one, without a spread."""
    samples = value if isinstance(value, Samples) else Samples((value,))
    low, high = samples.quartiles
    return Figure(group, name, column, threads, unit, samples.median, low, high, less, bar, note=note)


def ratio(
    other: Samples, ours: Samples, group: str, name: str, column: str, threads: int, bar: float | None
) -> Figure:
    """How often as fast as the other we are: the ratio of medians; quartiles of runs that were neighbours in time."""
    pairs = [theirs / mine for theirs, mine in zip(other.seconds, ours.seconds, strict=True)]
    low, high = quartiles(pairs)
    value = other.median / ours.median
    return Figure(group, name, column, threads, "x", value, low, high, less=False, bar=bar)


def merge(rounds: Sequence[Sequence[Figure]]) -> list[Figure]:
    """One figure of those that separate runs gave: the median of values, and of quartiles."""
    found: dict[tuple[str, str, str, int], list[Figure]] = {}
    for figures in rounds:
        for figure in figures:
            found.setdefault(figure.key, []).append(figure)
    if len(rounds) == 1:
        return list(rounds[0])
    return [
        replace(
            same[0],
            value=statistics.median(f.value for f in same),
            low=statistics.median(f.low for f in same),
            high=statistics.median(f.high for f in same),
            rounds=tuple(f.value for f in same),
            note="; ".join(dict.fromkeys(f.note for f in same if f.note)),
        )
        for same in found.values()
    ]


@dataclass(frozen=True)
class Results:
    """Figures and what they depend on: the machine, the releases installed, the command."""

    about: Mapping[str, Any]
    figures: tuple[Figure, ...]

    def find(self, group: str, name: str, column: str, threads: int) -> Figure | None:
        """The figure of that key, if there is one."""
        key = (group, name, column, threads)
        return next((figure for figure in self.figures if figure.key == key), None)

    def group(self, *groups: str) -> list[Figure]:
        """The figures of some groups, in their order."""
        return [figure for figure in self.figures if figure.group in groups]

    def completed(self, others: Results) -> Results:
        """With the figures that only `others` have, in their order, and how those were measured."""
        known = {figure.key for figure in self.figures}
        places = {figure.key: place for place, figure in enumerate(others.figures)}
        figures = [*self.figures, *(figure for figure in others.figures if figure.key not in known)]
        figures.sort(key=lambda figure: places.get(figure.key, len(places)))
        source = {name: others.about[name] for name in ("command", "date", "others") if name in others.about}
        return Results({**self.about, "others": source}, tuple(figures))

    def write(self, path: Path) -> None:
        """Write the results as JSON."""
        # A line for each figure, so that two files can be compared line by line.
        lines = ",\n".join(json.dumps(figure.to_json(), ensure_ascii=False) for figure in self.figures)
        about = json.dumps(dict(self.about), indent=1, ensure_ascii=False)
        text = f'{{"format": {FORMAT},\n"about": {about},\n"figures": [\n{lines}\n]}}\n'
        path.write_text(text, encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Results:
        """Read results. Raises ValueError for a file that does not hold any."""
        try:
            data = untrusted.read_json(path, untrusted.RESULTS, ValueError, follow=True)
            if data["format"] != FORMAT:
                raise ValueError(f"it has format {data['format']}, not {FORMAT}")
            return Results(dict(data["about"]), tuple(Figure.from_json(figure) for figure in data["figures"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path} is no file of results: {shown(error):.300}; write one with python -m benchmarks.run"
            ) from error


def unmet(figures: Iterable[Figure]) -> list[Figure]:
    """The figures that miss their targets."""
    return [figure for figure in figures if figure.met is False]


def ratio_of(
    above: Figure, below: Figure, group: str, name: str, column: str, threads: int, bar: float | None
) -> Figure:
    """One figure over another, more being better; its quartiles are the extremes of theirs."""
    return Figure(
        group,
        name,
        column,
        threads,
        "x",
        above.value / below.value,
        above.low / below.high,
        above.high / below.low,
        less=False,
        bar=bar,
    )

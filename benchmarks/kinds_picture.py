"""One picture of all kinds of CPU: how much faster than torch each kernel is on each, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

from .figures import Figure, Results
from .kinds import title_of
from .measure import OURS
from .rows import EAGER

NAME = "kinds.svg"
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#7f7f7f")
SCALE = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
LEFT, RIGHT, ROW, TOP = 310, 30, 18, 60
WIDTH = 900


def ratios(results: Results) -> dict[str, Figure]:
    """Torch's time over ours of each kernel, with as many threads as were measured most."""
    figures = [f for f in results.group("kernels") if f.column == f"{EAGER} / {OURS}"]
    return {figure.name: figure for figure in sorted(figures, key=lambda figure: figure.threads)}


def picture(kinds: Mapping[str, Results]) -> str:
    """The picture as SVG: a line for each kernel, and a dot for each kind that it was measured on.

    A dot at the edge stands for a ratio beyond the scale; an empty one misses its target.
    """
    found = {name: ratios(results) for name, results in kinds.items()}
    fullest_first = sorted(found.values(), key=len, reverse=True)
    kernels = list(dict.fromkeys(kernel for each in fullest_first for kernel in each))
    height = TOP + ROW * len(kernels) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        "<title>Torch's time over ours, by kernel and kind of CPU</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *_legend(list(found)),
        *_axis(height),
    ]
    for row, kernel in enumerate(kernels):
        y = TOP + ROW * row + ROW // 2
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(kernel)}</text>')
        for colour, each in zip(COLOURS, found.values(), strict=False):
            if kernel in each:
                lines.append(_dot(each[kernel], y, colour))
    return "\n".join([*lines, "</svg>", ""])


def _x(ratio: float) -> float:
    low, high = math.log(SCALE[0]), math.log(SCALE[-1])
    place = (math.log(min(max(ratio, SCALE[0]), SCALE[-1])) - low) / (high - low)
    return round(LEFT + place * (WIDTH - LEFT - RIGHT), 1)


def _legend(names: list[str]) -> Iterator[str]:
    lengths = [len(title_of(name)) for name in names]
    start = min(LEFT, WIDTH - sum(35 + 7 * length for length in lengths))
    for number, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        x = start + sum(35 + 7 * length for length in lengths[:number])
        yield f'<circle cx="{x}" cy="20" r="5" fill="{colour}"/>'
        yield f'<text x="{x + 10}" y="24">{escape(title_of(name))}</text>'


def _axis(height: int) -> Iterator[str]:
    for ratio in SCALE:
        x, colour = _x(ratio), "#000000" if ratio == 1 else "#dddddd"
        yield f'<line x1="{x}" y1="{TOP - 5}" x2="{x}" y2="{height - 25}" stroke="{colour}"/>'
        yield f'<text x="{x}" y="{TOP - 10}" text-anchor="middle">{ratio:g}</text>'


def _dot(figure: Figure, y: int, colour: str) -> str:
    fill = "white" if figure.met is False else colour
    return (
        f'<circle cx="{_x(figure.value)}" cy="{y}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2">'
        f"<title>{escape(figure.name)}: {figure.text()}</title></circle>"
    )

"""A launch as a picture: a row for each unit of each core, cycles to the right."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from triton_porting_kit.chips.perfetto import label
from triton_porting_kit.chips.trace import CORE, MATRIX, Launch, Trace

_WIDTH, _LEFT, _TOP, _ROW, _GAP = 900, 120, 56, 12, 8
_COLOURS = {CORE: "#3b6fb6", MATRIX: "#c2542d"}
_CHANNELS = ("#3d8b5f", "#7aa83b", "#2a8f96", "#9a7b24")
_MOST_INTERVALS = 20_000


def longest(trace: Trace) -> dict[str, Launch]:
    """The launch of each kernel that took longest, in the order of the launches."""
    found: dict[str, Launch] = {}
    for launch in trace.launches:
        if launch.kernel not in found or launch.cycles > found[launch.kernel].cycles:
            found[launch.kernel] = launch
    return found


def timeline(trace: Trace, launch: Launch) -> str:
    """A launch as an SVG document, with at most its first 20,000 commands. A bar says what it is when pointed at."""
    shown = sorted(launch.intervals, key=lambda each: each.start)[:_MOST_INTERVALS]
    units = sorted({each.unit for each in shown})
    cores = sorted({each.core for each in shown})
    height = _TOP + len(cores) * (len(units) * _ROW + _GAP) + 24
    scale = _WIDTH / max(launch.cycles, 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_LEFT + _WIDTH + 20}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="15">{escape(launch.kernel)} on {escape(trace.chip)}: '
        f"{launch.cycles:,.0f} cycles, {launch.cycles / trace.megahertz:,.2f} µs</text>",
        *_key(trace, units),
    ]
    for number, core in enumerate(cores):
        top = _TOP + number * (len(units) * _ROW + _GAP)
        lines.append(
            f'<text x="{_LEFT - 8}" y="{top + _ROW}" text-anchor="end" fill="#555">core {core}</text>'
        )
        lines.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{len(units) * _ROW}" fill="#f3f6fb"/>'
        )
    for each in shown:
        y = _TOP + cores.index(each.core) * (len(units) * _ROW + _GAP) + units.index(each.unit) * _ROW
        bar = (each.end - each.start) * scale
        width = max(0.4, bar - 0.4 if bar > 3 else bar)  # a gap between commands
        what = f"{label(trace, each)}{f', line {each.line}' if each.line else ''}: {each.end - each.start:.0f} cycles"
        lines.append(
            f'<rect x="{_LEFT + each.start * scale:.1f}" y="{y + 1}" width="{width:.1f}" height="{_ROW - 2}" '
            f'fill="{_colour(each.unit)}"><title>{escape(what)}</title></rect>'
        )
    end = f'<text x="{_LEFT + _WIDTH}" y="{height - 8}" text-anchor="end" fill="#555">'
    cut = "first commands only; " if launch.cut or len(shown) < len(launch.intervals) else ""
    lines.append(f"{end}{cut}cycle {launch.cycles:,.0f}</text>")
    return "\n".join([*lines, "</svg>"]) + "\n"


def _key(trace: Trace, units: list[int]) -> Iterator[str]:
    """What each colour is."""
    for number, unit in enumerate(units):
        x = _LEFT + number * 130
        yield f'<rect x="{x}" y="32" width="12" height="12" fill="{_colour(unit)}"/>'
        yield f'<text x="{x + 18}" y="43" fill="#555">{escape(trace.units[unit])}</text>'


def _colour(unit: int) -> str:
    return _COLOURS.get(unit) or _CHANNELS[(unit - MATRIX - 1) % len(_CHANNELS)]

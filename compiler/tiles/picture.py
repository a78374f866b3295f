"""Draws a plan: for each memory a panel with time to the right, in operations of the program, and addresses upwards."""

from __future__ import annotations

from html import escape

from triton_porting_kit.chips.description import ChipDescription

from .plan import Placed, Plan

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 220, 90, 40, 50
_COLOURS = {
    "load": "#7fb3d5", "store": "#f5b041", "operand": "#82c99d", "sums": "#c39bd3", "gather": "#76d7c4",
    "scatter": "#f0b27a", "offsets": "#d5d8dc", "mask": "#bfc9ca",
}  # fmt: skip
_OTHER = "#aab7b8"


def picture(plan: Plan, chip: ChipDescription) -> str:
    """The plan as an SVG document."""
    memories = [memory for memory in chip.local_memories if plan.used(memory.name)]
    last = max((placed.lifetime.last for placed in plan.buffers), default=0) + 1
    height = _TOP + len(memories) * (_HEIGHT + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{_LEFT}" y="20" font-size="15">{escape(plan.kernel)} on {escape(chip.name)}: '
        "buffers by time (right) and address (up)</text>",
    ]
    for number, memory in enumerate(memories):
        top = _TOP + number * (_HEIGHT + _GAP)
        used = plan.used(memory.name)
        lines += [
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#555"/>',
            f'<text x="{_LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(memory.name)}</text>',
            f'<text x="{_LEFT - 8}" y="{top + 28}" text-anchor="end">{used:,} B</text>',
            f'<text x="{_LEFT}" y="{top + _HEIGHT + 16}" fill="#555">{used:,} of {chip.local_bytes(memory):,} bytes; '
            f"at most {plan.live(memory.name):,} in use at one time</text>",
        ]
        mine = [placed for placed in plan.buffers if placed.lifetime.memory == memory.name]
        lines += [line for placed in mine for line in _drawn(placed, top, used, last)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _drawn(placed: Placed, top: int, used: int, last: int) -> list[str]:
    life = placed.lifetime
    x = _LEFT + _WIDTH * life.first / last
    width = max(1.0, _WIDTH * (life.last - life.first + 1) / last)
    height = _HEIGHT * life.bytes / used
    y = top + _HEIGHT * (1 - placed.end / used)
    where = "" if life.line is None else f", line {life.line}"
    what = f"{life.holds}{where}: {life.bytes:,} bytes at {placed.address:,}"
    colour = _COLOURS.get(life.holds, _OTHER)
    lines = [
        f'<rect class="buffer" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'stroke="#333" stroke-width="0.5"><title>{escape(what)}</title></rect>'
    ]
    if width > 60 and height > 14:
        label = f"{life.holds} {life.line or ''}".strip()
        lines.append(f'<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}">{escape(label)}</text>')
    return lines

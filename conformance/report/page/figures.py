"""Performance figures as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """Figures of one kind: a table, or single ones."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def parts(performance: Mapping[str, Any] | None) -> list[Part]:
    """Every list of rows as a table, every other group of figures as a list."""
    found: list[Part] = []
    alone: list[tuple[str, str]] = []
    for key, value in (performance or {}).items():
        title = _title(key)
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            columns = list(dict.fromkeys(name for row in value for name in row))
            ratios = [c for c in columns if c.startswith("seconds_") and c != "seconds_ours"]
            compared = ratios if "seconds_ours" in columns else []
            rows = [
                [figure(c, row.get(c)) for c in columns] + [_speed(row, other) for other in compared]
                for row in value
            ]
            heads = [_title(c) for c in columns] + [
                f"times {c.removeprefix('seconds_')}'s speed" for c in compared
            ]
            found.append(Part(title, columns=heads, rows=rows))
        elif isinstance(value, Mapping):
            found.append(Part(title, [(_title(name), figure(name, item)) for name, item in value.items()]))
        else:
            alone.append((title, figure(key, value)))
    return ([Part("Figures", alone)] if alone else []) + found


def figure(name: str, value: Any) -> str:
    """A figure for people, with the unit that its name tells."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    if "bytes_per_second" in name:
        return f"{value / 1e9:.3g} GB/s"
    if "seconds" in name:
        return seconds(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def seconds(value: float) -> str:
    """A time in a unit that suits it."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _speed(row: Mapping[str, Any], other: str) -> str:
    ours, theirs = row.get("seconds_ours"), row.get(other)
    return f"{theirs / ours:.2f}" if ours and theirs else "-"


def _title(key: str) -> str:
    text = (
        key.removeprefix("seconds_")
        .removesuffix("_bytes_per_second")
        .removesuffix("_seconds")
        .replace("_", " ")
    )
    return text[:1].upper() + text[1:]

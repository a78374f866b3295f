"""Performance figures as tables. `triton_porting_kit.conformance.performance.measure` defines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DIRECTIONS = {"htod": "host to device", "dtoh": "device to host", "dtod": "within the device"}
_PEERS = ("numpy", "torch")


@dataclass(frozen=True)
class Part:
    """Figures of one kind: a table, or single facts."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def parts(performance: Mapping[str, Any] | None) -> list[Part]:
    """The tables that are not empty."""
    found = performance or {}
    made = []
    if error := found.get("error"):
        made.append(Part("Not measured", [("reason", str(error))]))
    if launch := found.get("launch"):
        made.append(Part("Launches of an empty kernel", _launch(launch)))
    if copies := found.get("copies"):
        made.append(Part("Copies", columns=("", "size", "time", "rate"), rows=[_copy(row) for row in copies]))
    if kernels := found.get("kernels"):
        peers = [peer for peer in _PEERS if any(row.get(f"{peer}_seconds") for row in kernels)]
        columns = ["kernel", "shape", "type", "time", "between quartiles"]
        columns += [column for peer in peers for column in (f"{peer}'s time", f"times {peer}'s speed")]
        has_errors = any(row.get("error") for row in kernels)
        rows = [
            [*_kernel(row, peers), *([str(row.get("error") or "")] if has_errors else [])] for row in kernels
        ]
        made.append(Part("Kernels", columns=[*columns, *([""] if has_errors else [])], rows=rows))
    return made


def _launch(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = (("seconds", "per launch, without waiting"), ("round_trip_seconds", "launch and synchronize"))
    facts = [(title, seconds(figures[key])) for key, title in names if figures.get(key) is not None]
    if "arguments" in figures:
        facts.append(("arguments", str(figures["arguments"])))
    return facts


def _copy(row: Mapping[str, Any]) -> list[str]:
    rate = row.get("bytes_per_second")
    direction = str(row.get("direction", ""))
    return [
        _DIRECTIONS.get(direction, direction),
        size(row.get("bytes", 0)),
        seconds(row.get("seconds")),
        f"{rate / 1e9:.3g} GB/s" if rate else "-",
    ]


def _kernel(row: Mapping[str, Any], peers: Sequence[str]) -> list[str]:
    shape = row.get("shape", "")
    cells = [
        str(row.get("kernel", "")),
        " x ".join(map(str, shape)) if isinstance(shape, (list, tuple)) else str(shape),
        str(row.get("type", "")),
        seconds(row.get("seconds")),
        seconds(row.get("spread") or None),  # 0 means a single sample
    ]
    for peer in peers:
        ours, theirs = row.get("seconds"), row.get(f"{peer}_seconds")
        cells += [seconds(theirs), f"{theirs / ours:.2f}" if ours and theirs else "-"]
    return cells


def seconds(value: float | None) -> str:
    """A time with a suitable unit."""
    if value is None:
        return "-"
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def size(count: int) -> str:
    """A number of bytes with a suitable unit."""
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"

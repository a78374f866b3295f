"""What the CPU reference does not do yet: it is refused with a clear error, and docs/support.md says so."""

from __future__ import annotations

from triton_porting_kit.conformance.language.table import FP8, Case

MOVED = ("Memory", "Shapes", "Sorting and gathering", "Comparison and selection")
"""Sections that need no arithmetic."""


def is_missing(case: Case) -> bool:
    """Whether the CPU reference cannot do a case."""
    name, kind = case.op.name, case.kind
    if name in ("atomic_poll", "map_elementwise", "map_elementwise_packed"):
        return True
    if case.op.section in ("libdevice", "Matrix products with scales"):
        return True
    if name.startswith(("to_", "bitcast_")) and name.partition("_")[2] in FP8:
        return not (kind.name == "fp8e4b15" == name.removeprefix("to_"))
    if kind.name == "fp8e4b15" and case.op.section in MOVED:
        return False
    return kind.is_minifloat

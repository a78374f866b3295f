"""What the CPU reference does not do yet: it is refused with a clear error, and docs/support.md says so."""

from __future__ import annotations

from triton_porting_kit.conformance.language.table import Case


def is_missing(case: Case) -> bool:
    """Whether the CPU reference cannot do a case."""
    if case.op.name in ("atomic_poll", "map_elementwise", "map_elementwise_packed"):
        return True
    return case.op.section == "libdevice"

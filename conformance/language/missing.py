"""What the CPU reference does not do yet: named here, it is refused with a clear error, and left out of docs/support.md."""

from __future__ import annotations

from triton_porting_kit.conformance.language.table import FP8, Case


def is_missing(case: Case) -> bool:
    """Whether the CPU reference cannot do a case."""
    name = case.op.name
    if name.startswith("bitcast"):
        return case.kind.is_minifloat or name.removeprefix("bitcast_") in FP8
    if name.startswith("to_") and name.removeprefix("to_") in FP8:
        return not (case.kind.name == "fp8e4b15" == name.removeprefix("to_"))
    if name == "where" and case.kind.name == "fp8e4b15":
        return False
    return case.kind.is_minifloat

"""Backends that can do nothing. They must not pass in any level, whatever their profile declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.essential import ESSENTIAL
from triton_porting_kit.conformance.faults.fault import Fault, method, rewrite
from triton_porting_kit.conformance.faults.rewriting import Operation, each


def _refuses(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("this backend can do nothing")


def _no_device(*_: Any, **__: Any) -> Any:
    raise RuntimeError("there is no device")


def _stores_zero(operation: Operation) -> str:
    kind = operation.operand_types[1]
    zero = operation.fresh("zero")
    if "!tt.ptr" in kind:
        return str(operation)
    number = "0.0" if re.search(r"f\d+", kind) else "0"
    constant = f"dense<{number}> : {kind}" if kind.startswith("tensor<") else f"{number} : {kind}"
    line = f'{operation.indent}{zero} = "arith.constant"() <{{value = {constant}}}> : () -> {kind}'
    operation.operands[1] = zero
    return f"{line}\n{operation}"


ZEROS = rewrite("ttir", each(r"tt\.store", _stores_zero))

DEGENERATE = (
    Fault(
        "refuses-everything",
        "compiler",
        "the compiler refuses every kernel",
        method("backend", pipeline=_refuses),
        (),
    ),
    Fault("zeros", "compiler", "kernels write zeros", ZEROS, ()),
    Fault(
        "no-device",
        "driver",
        "there is no device",
        method("driver", make_device=_no_device),
        (),
    ),
)

PROFILES = {
    "none": "",
    "everything is declared unsupported": '[[unsupported]]\npattern = "*"\nreason = "the chip cannot do it"\n',
    "everything is waived": '[[waivers]]\npattern = "*"\nreason = "agreed"\n',
}
"""The profiles that degenerate backends are tried with."""

_SAMPLE = 4
"""The number of checks of a level in addition to the essential ones. One failure decides the verdict."""


def sample(checks: Sequence[Check]) -> list[Check]:
    """Select checks of a level: the essential ones, and others evenly spread."""
    essential = [check for check in checks if check.name in ESSENTIAL]
    others = [check for check in checks if check not in essential]
    return [*essential, *others[:: max(len(others) // _SAMPLE, 1)][:_SAMPLE]]


def write_profile(folder: Path, name: str) -> str:
    """Write one of `PROFILES` and return its path; empty for none."""
    if not PROFILES[name]:
        return ""
    path = folder / f"{list(PROFILES).index(name)}.toml"
    path.write_text(PROFILES[name])
    return str(path)

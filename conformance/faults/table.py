"""All faults, by name."""

from __future__ import annotations

from triton_porting_kit.conformance.faults import (
    binary_faults,
    compiler_host,
    compiler_memory,
    compiler_shapes,
    compiler_values,
    driver_faults,
    launcher_faults,
    process_faults,
)
from triton_porting_kit.conformance.faults.degenerate import DEGENERATE
from triton_porting_kit.conformance.faults.fault import CLEAN, Fault, nothing

CLEAN_FAULT = Fault(CLEAN, "compiler", "nothing is wrong", nothing, ())
CLEAN_BINARY = Fault(f"{CLEAN}-binary", "binary", "nothing is wrong", nothing, ())

FAULTS: tuple[Fault, ...] = (
    *compiler_values.TABLE,
    *compiler_memory.TABLE,
    *compiler_shapes.TABLE,
    *compiler_host.TABLE,
    *launcher_faults.TABLE,
    *driver_faults.TABLE,
    *process_faults.TABLE,
    *binary_faults.TABLE,
)


def find(name: str) -> Fault:
    """Find a fault by name. Raises ValueError if it does not exist."""
    for fault in (CLEAN_FAULT, CLEAN_BINARY, *FAULTS, *DEGENERATE):
        if fault.name == name:
            return fault
    raise ValueError(f"there is no fault {name!r}; there are {', '.join(fault.name for fault in FAULTS)}")

"""The kernel ABI: what an object file defines of its kernel. docs/architecture.md says what each symbol means."""

from __future__ import annotations

VERSION = 3
"""Of the kernel ABI; an object file holds it under `VERSION_SYMBOL`."""

VERSION_SYMBOL = "tpk_host_abi_version"

SCRATCH = "__scratch_bytes"
POINTERS = "__pointers"
ARGUMENT_BYTES = "__argument_bytes"
PROGRAM = "__program"
"""What stands behind the kernel's name in the names of its other symbols."""

PARAMETERS = (
    ("args", "const void *"),
    ("scratch", "void *"),
    ("begin", "std::int64_t"),
    ("end", "std::int64_t"),
    ("grid_x", "std::int32_t"),
    ("grid_y", "std::int32_t"),
    ("grid_z", "std::int32_t"),
)
"""Of the kernel's function, with their types in C++; it returns a `std::int32_t`, 0 or a failure code."""

FAIL, PRINT, CLOCK = "tpk_host_fail", "tpk_host_print", "tpk_host_nanoseconds"
ACCESS, REACHES = "tpk_host_access", "tpk_host_reaches"
"""Routines of the host that a kernel may call."""

MATHEMATICS = "tpk_math_"
"""What the names of the host's routines of mathematics begin with."""

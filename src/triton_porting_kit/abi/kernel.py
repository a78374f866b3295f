"""The kernel ABI: the symbols that an object file defines. docs/architecture.md defines each of them."""

from __future__ import annotations

VERSION = 3
"""The version of the kernel ABI. An object file exports it as `VERSION_SYMBOL`."""

VERSION_SYMBOL = "tpk_host_abi_version"

SCRATCH = "__scratch_bytes"
POINTERS = "__pointers"
ARGUMENT_BYTES = "__argument_bytes"
PROGRAM = "__program"
EXCLUSIVE = "__exclusive"
STRIPES = "__stripes"
WORK_GROUP = "__work_group"
"""The suffixes of the kernel's name in the names of its other symbols."""

LOCKS, LOCK_BYTES, STRIPE_BYTES = 256, 64, 1024
"""The locks of `STRIPES`: how many, their distance, and the bytes of memory that lie under one. All powers of two."""

PARAMETERS = (
    ("args", "const void *"),
    ("scratch", "void *"),
    ("begin", "std::int64_t"),
    ("end", "std::int64_t"),
    ("grid_x", "std::int32_t"),
    ("grid_y", "std::int32_t"),
    ("grid_z", "std::int32_t"),
)
"""The parameters of the kernel's function and their C++ types. It returns a `std::int32_t`: 0 or a failure code."""

FAIL, PRINT, CLOCK = "tpk_host_fail", "tpk_host_print", "tpk_host_nanoseconds"
ACCESS, REACHES = "tpk_host_access", "tpk_host_reaches"
"""Host routines that a kernel may call."""

MATHEMATICS = "tpk_math_"
"""The prefix of the names of the host's mathematical routines."""

WORK_ITEM, BARRIER = "tpk_work_item", "tpk_barrier"
"""Routines of OpenCL C's text: the number of the work-item in its work-group, and a barrier of the work-group."""
SUB_GROUP_ITEM, SUB_GROUP_BARRIER = "tpk_sub_group_item", "tpk_sub_group_barrier"
"""The same number, counted so that a sub-group has consecutive work-items, and a barrier of the sub-group."""

STATUS_WORDS, STATUS_TEXT = 1024, 32
"""The length of the status of a kernel in OpenCL C, in numbers of 32 bits, and where an assertion's text begins."""

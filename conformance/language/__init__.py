"""The operations of Triton's language as one table: the types and shapes each is tested on, and its oracle.

`OPS` holds the entries, and `cases()` makes their cases. `triton_porting_kit.conformance.language.running.run` runs
cases on a device. `python -m triton_porting_kit.conformance.language.support` writes docs/support.md from the table.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from triton_porting_kit.conformance.language.table import Case, Op, Release

SECTIONS = (
    "arithmetic",
    "bitwise",
    "comparison",
    "casts",
    "functions",
    "memory",
    "shaping",
    "reductions",
    "scans",
    "selecting",
    "atomics",
    "races",
    "dots",
    "scaled",
    "random",
    "descriptors",
    "control",
    "libdevice",
    "inline_ptx",
    "large",
)
"""The modules of entries, in the order of the support table."""

OPS: tuple[Op, ...] = tuple(
    op for name in SECTIONS for op in importlib.import_module(f"{__name__}.ops.{name}").OPS
)


def cases(release: Release) -> Iterator[Case]:
    """Every case of a release of Triton."""
    for op in OPS:
        if op.in_release(release):
            yield from op.cases()


def refusals(release: Release) -> Iterator[Case]:
    """Every case that Triton's front end refuses."""
    for op in OPS:
        if op.in_release(release):
            yield from op.refusals()


__all__ = ["OPS", "Case", "Op", "cases", "refusals"]

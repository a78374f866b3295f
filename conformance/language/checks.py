"""The level `language`: every case of the table of operations is a check."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language import cases, running
from triton_porting_kit.conformance.language.table import Case
from triton_porting_kit.conformance.language.work import Work
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.toolchain import compat

FEATURES_OF = {
    "atomics": "atomics",
    "races": "atomics",
    "dots": "dot",
    "scaled": "dot_scaled",
    "descriptors": "descriptors",
    "libdevice": "libdevice",
    "inline_ptx": "inline_ptx",
}
"""The device features that all operations of one module of the table need."""


@dataclass(frozen=True)
class CaseBody:
    """The body of a check: a case of the table."""

    case: Case

    def __call__(self, context: Context) -> None:
        work = self.case.work()
        judge(work, running.start(work, context.memory), context)


def judge(work: Work, arrays: list[GuardedArray], context: Context) -> None:
    """Compare the memory after a launch with the expected contents."""
    if not context.runs:
        return
    context.memory.synchronize()
    for what, comparison in running.comparisons(work, arrays):
        if comparison.elements:
            context.compare(what, comparison)
        else:
            context.expect(True, f"{what}: the kernel ended; none of its elements is defined")


def needs(case: Case) -> frozenset[str]:
    """The device capabilities that a case tests."""
    found = {f"type:{case.kind}"}
    module = case.op.build.__module__.rpartition(".")[2]
    if module in FEATURES_OF:
        found.add(f"feature:{FEATURES_OF[module]}")
    if module in ("atomics", "races"):
        found.add(f"atomic:{case.kind}")
    found |= {f"type:{name}" for name in case.op.name.split("_")[1:] if name in KINDS}
    return frozenset(found)


def _checks() -> Iterator[Check]:
    for case in cases(compat.release()):
        yield Check(
            f"language/{case.op.section.lower().replace(' ', '-')}/{case.id}",
            f"`{case.op.form}` on {case.kind}, {case.shape}: {case.op.tolerance.reason}",
            CaseBody(case),
            needs=needs(case),
            elements=math.prod(case.shape.block),
            batch=f"language/{case.batch}",
            compiles=True,
        )


CHECKS = tuple(_checks())

"""Every case of the table of operations on the CPU backend, and what the front end refuses.

A test is a batch: the cases of one operation on one type, which are compiled together (and each by itself should that
fail). `sample` marks a part of the table that shows every section. Each operation is tried on every fourth type, and on
the others under `make test-all`.
"""

from __future__ import annotations

import zlib

import pytest
import triton
from conformance_helpers import memory

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import Case, running
from triton_porting_kit.toolchain import compat

pytestmark = pytest.mark.table

BATCHES: dict[str, list[Case]] = {}
for _case in language.cases(compat.release()):
    BATCHES.setdefault(_case.batch, []).append(_case)

SAMPLE = 16
"""One batch of so many of a section is in the sample."""
KEPT = 4
"""Of each operation, one batch of so many is tried always."""


def sampled() -> set[str]:
    """One batch of so many, and at least one of each section."""
    by_section: dict[str, list[str]] = {}
    for batch, cases in BATCHES.items():
        by_section.setdefault(cases[0].op.section, []).append(batch)
    return {
        batch
        for batches in by_section.values()
        for batch in sorted(batches, key=lambda batch: zlib.crc32(batch.encode()))[::SAMPLE]
    }


def left_for_later() -> set[str]:
    """The other batches. Which ones these are changes from operation to operation, so that each type is tried."""
    by_operation: dict[str, list[str]] = {}
    for batch, cases in BATCHES.items():
        by_operation.setdefault(cases[0].op.name, []).append(batch)
    found: set[str] = set()
    for number, batches in enumerate(by_operation.values()):
        found |= set(batches) - set(batches[number % min(KEPT, len(batches)) :: KEPT])
    return found


def parameters() -> list[object]:
    sample, later = sampled(), left_for_later()
    found = []
    for batch in BATCHES:
        marks = []
        if batch in sample:
            marks.append(pytest.mark.sample)
        elif batch in later:
            marks.append(pytest.mark.slow)
        found.append(pytest.param(batch, id=batch, marks=marks))
    return found


@pytest.mark.parametrize("batch", parameters())
def test_operations(batch: str) -> None:
    outcomes = running.run(BATCHES[batch], memory())
    assert len(outcomes) == len(BATCHES[batch])
    if failed := [error for error in outcomes.values() if error is not None]:
        names = ", ".join(name for name, error in outcomes.items() if error is not None)
        raise ExceptionGroup(names, failed)


if compat.release() == compat.TRIED[-1]:  # older front ends refuse less, and other things

    @pytest.mark.parametrize("case", language.refusals(compat.TRIED[-1]), ids=lambda case: case.id)
    def test_front_end_refuses(case: Case) -> None:
        with pytest.raises(triton.compiler.errors.CompilationError):
            running.launch(case.refused_work(), memory())

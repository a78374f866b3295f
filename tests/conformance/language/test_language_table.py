"""Every case of the table of operations on the CPU backend, and what the front end refuses.

Cases of one operation on one type are compiled together (and each by itself should that fail), but reported one by
one. `sample` marks a part of the table that shows every section. Each operation is tried on every second type, and on
the others under `make test-all`.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable

import pytest
import triton
from conformance_helpers import memory

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import Case, running
from triton_porting_kit.toolchain import compat

pytestmark = pytest.mark.table

CASES = list(language.cases(compat.release()))
BATCHES: dict[str, list[Case]] = {}
for _case in CASES:
    BATCHES.setdefault(_case.batch, []).append(_case)

SAMPLE = 8
"""One batch of so many is in the sample."""


def in_sample(case: Case) -> bool:
    return zlib.crc32(case.batch.encode()) % SAMPLE == 0


@functools.cache
def left_for_later() -> set[str]:
    """Every second batch of an operation, from the second on or from the first; one that is alone is not."""
    by_operation: dict[str, list[str]] = {}
    for batch, cases in BATCHES.items():
        by_operation.setdefault(cases[0].op.name, []).append(batch)
    found: set[str] = set()
    for number, batches in enumerate(by_operation.values()):
        found.update(batches[(number + 1) % 2 :: 2] if len(batches) > 1 else ())
    return found


def parameters(cases: Iterable[Case]) -> list[object]:
    """The cases, of which a batch stays in one process."""
    found = []
    for case in cases:
        marks = [pytest.mark.xdist_group(case.batch)]
        if in_sample(case):
            marks.append(pytest.mark.sample)
        elif case.batch in left_for_later():
            marks.append(pytest.mark.slow)
        found.append(pytest.param(case, id=case.id, marks=marks))
    return found


@functools.cache
def outcomes(batch: str) -> dict[str, Exception | None]:
    return running.run(BATCHES[batch], memory())


@pytest.mark.parametrize("case", parameters(CASES))
def test_operation(case: Case) -> None:
    error = outcomes(case.batch)[case.id]
    if error is not None:
        raise error


if compat.release() == compat.TRIED[-1]:  # older front ends refuse less, and other things

    @pytest.mark.parametrize("case", language.refusals(compat.TRIED[-1]), ids=lambda case: case.id)
    def test_front_end_refuses(case: Case) -> None:
        with pytest.raises(triton.compiler.errors.CompilationError):
            running.launch(case.refused_work(), memory())

"""The table of operations by way of C++, and of C: some batches of each section always, the rest in the slow tests.

What C can say but OpenCL C cannot is refused by name: `NOT_IN_OPENCL`.
"""

from __future__ import annotations

import collections
import zlib
from pathlib import Path

import pytest
from opencl_clang import Seen, compile_opencl
from triton.runtime import driver

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import Case, running
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.toolchain import compat

BATCHES: dict[str, list[Case]] = {}
for _case in language.cases(compat.release()):
    if zlib.crc32(_case.batch.encode()) % 8 == 0:
        BATCHES.setdefault(_case.batch, []).append(_case)


def batches(always: int) -> list[object]:
    found, seen = [], collections.Counter[str]()
    for name, cases in BATCHES.items():
        section = cases[0].op.section
        seen[section] += 1
        marks = [pytest.mark.slow] if seen[section] > always else []
        found.append(pytest.param(name, id=name, marks=marks))
    return found


@pytest.mark.usefixtures("through_cpp")
@pytest.mark.parametrize("batch", batches(2))
def test_batch(batch: str) -> None:
    outcomes = running.run(BATCHES[batch], KitMemory(driver.active.device))
    assert outcomes
    for error in outcomes.values():
        if error is not None:
            raise error


NOT_IN_OPENCL = ("the type i128", "integers of 128 bits", "the routine tpk_")


@pytest.mark.parametrize("batch", batches(1))
def test_batch_in_c(batch: str, through_c: Seen, tmp_path: Path) -> None:
    through_c.clear()
    outcomes = running.run(BATCHES[batch], KitMemory(driver.active.device))
    assert outcomes
    for error in outcomes.values():
        if error is not None:
            raise error
    assert [
        error for error in through_c.refusals if not any(word in str(error) for word in NOT_IN_OPENCL)
    ] == []
    compile_opencl(through_c.texts, tmp_path)

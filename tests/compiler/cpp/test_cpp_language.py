"""The table of operations by way of C++: two batches of each section always, the rest of its sample in the slow tests."""

from __future__ import annotations

import collections
import zlib

import pytest
from triton.runtime import driver

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import Case, running
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.toolchain import compat

BATCHES: dict[str, list[Case]] = {}
for _case in language.cases(compat.release()):
    if zlib.crc32(_case.batch.encode()) % 8 == 0:
        BATCHES.setdefault(_case.batch, []).append(_case)


def batches() -> list[object]:
    found, seen = [], collections.Counter[str]()
    for name, cases in BATCHES.items():
        section = cases[0].op.section
        seen[section] += 1
        marks = [pytest.mark.slow] if seen[section] > 2 else []
        found.append(pytest.param(name, id=name, marks=marks))
    return found


@pytest.mark.usefixtures("through_cpp")
@pytest.mark.parametrize("batch", batches())
def test_batch(batch: str) -> None:
    outcomes = running.run(BATCHES[batch], KitMemory(driver.active.device))
    assert outcomes
    for error in outcomes.values():
        if error is not None:
            raise error

"""The form on the CPU, by upstream's passes alone: kernels and operations of the conformance suite."""

from __future__ import annotations

import collections
import re
import zlib

import pytest
from triton.runtime import driver

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import Case, running
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.places import DevicePlace
from triton_porting_kit.toolchain import compat

KERNELS = [
    cases.vector_add_case(1000, "float32"),
    cases.softmax_case(7, 781, "float32"),
    cases.matmul_case(70, 45, 83, "float16"),
    cases.matmul_case(70, 45, 83, "bfloat16"),
    cases.layer_norm_case(5, 300, "float32"),
    cases.layer_norm_backward_case(5, 300, "float32"),
    cases.giou_case(3, 40, "float32"),
    cases.dropout_case(1000, "float32"),
    cases.gelu_residual_case(1000, "bfloat16"),
    cases.cumulative_sum_case(4, 300, "float32"),
    cases.sort_rows_case(3, 100, "float32"),
    cases.attention_case(1, 128, 64, "float16"),
]

REFUSAL = re.compile("has no form in the convention triton-shared")
"""docs/linalg.md lists what is refused."""

BATCHES: dict[str, list[Case]] = {}
for _case in language.cases(compat.release()):
    if zlib.crc32(_case.batch.encode()) % 16 == 0:
        BATCHES.setdefault(_case.batch, []).append(_case)


CHOSEN = [
    "dot_scaled_e2m1-fp8e5", "atomic_cas-i32", "atomic_poll-i32",
    "atomic_add-bf16", "masked_off-bf16", "fma-bf16", "to_bf16-i32", "to_bf16-u64",
]  # fmt: skip
"""Operations that the form once refused, and what LLVM would round otherwise."""


def batches() -> list[object]:
    found, seen = [], collections.Counter[str]()
    for name, members in BATCHES.items():
        section = members[0].op.section
        seen[section] += 1
        found.append(pytest.param(name, id=name, marks=[pytest.mark.slow] if seen[section] > 1 else []))
    return found


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.id)
def test_kernels(case: cases.Case) -> None:
    for deviation in case.check(DevicePlace(driver.active.device)):
        assert deviation.ok, deviation


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("batch", batches())
def test_operations(batch: str) -> None:
    """Each gives its result, or a refusal that names its line."""
    outcomes = running.run(BATCHES[batch], KitMemory(driver.active.device))
    assert outcomes
    for error in outcomes.values():
        if error is not None and not (isinstance(error, CompilationError) and REFUSAL.search(str(error))):
            raise error


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("batch", CHOSEN)
def test_chosen_operations(batch: str) -> None:
    """Each gives its result."""
    members = [case for case in language.cases(compat.release()) if case.batch == batch]
    outcomes = running.run(members[:4], KitMemory(driver.active.device))
    assert outcomes
    assert {name: error for name, error in outcomes.items() if error is not None} == {}

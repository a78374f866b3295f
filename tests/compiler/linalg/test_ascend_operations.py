"""What the convention `ascend` writes in the place of operations that its compiler lacks: run by the form's executor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from triton.runtime import driver

from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.dialect.types import shape_of
from triton_porting_kit.compiler.linalg import arithmetic, ascend, lowering, regions
from triton_porting_kit.compiler.linalg.ascend_functions import FUNCTIONS
from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import running
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.toolchain import compat

OPERATIONS = [
    "libdevice_round-fp32", "libdevice_trunc-fp32", "libdevice_cbrt-fp32", "libdevice_ffs-i32", "libdevice_popc-i32",
    "libdevice_acos-fp32", "libdevice_asin-fp32", "libdevice_atan2-fp32", "libdevice_copysign-fp32",
    "to_u16-fp32", "to_u32-fp32", "to_u64-fp32", "lt-u32", "dot_scaled_bf16-fp16",
]  # fmt: skip
"""Operations of the language, with a type, that become others."""


def judge(batch: str, most: int | None = 4) -> None:
    members = [case for case in language.cases(compat.release()) if case.batch == batch]
    outcomes = running.run(members[:most], KitMemory(driver.active.device))
    assert outcomes
    assert {name: error for name, error in outcomes.items() if error is not None} == {}


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(arithmetic.EXPANDED, name, FUNCTIONS[name])
    judge(f"libdevice_{name}-fp32")


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("batch", OPERATIONS)
def test_operations(batch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    finish, written = lowering._finish, []

    def write_and_finish(kernel: Any, convention: Any) -> None:
        module = SimpleNamespace(operation=kernel.parent, body=kernel.parent.regions[0].blocks[0])
        written.append(ascend.write_otherwise(module))
        finish(kernel, convention)

    monkeypatch.setattr(lowering, "_finish", write_and_finish)
    judge(batch)
    assert any(written)


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize("batch", ["reduce_three-fp32", "argmin-fp32", "xor_sum-i32"])
def test_reductions_by_loops(batch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tensors of several dimensions, along each of them."""
    reduced: list[int] = []

    def by_loop(rewriting: Any, operation: Any) -> None:
        op: Reduce[Any] = Reduce(operation)
        shape = shape_of(op.inputs[0]) or ()
        reduced.append(len(shape))
        regions._end_reduce(rewriting, operation, shape, regions._reduced_by_loop(rewriting, operation))

    monkeypatch.setitem(lowering.EXPANSIONS, Reduce.OPERATION_NAME, by_loop)
    judge(batch, None)
    assert {2, 3, 4, 5} <= set(reduced)

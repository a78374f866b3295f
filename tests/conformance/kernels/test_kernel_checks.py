"""The level `kernels`: its checks pass on the CPU backend, and fail on kernels that are wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance_helpers import memory
from kernel_faults import FAULTS, Fault, kernel, planted

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.kernels.problem import Problem
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.trial import try_check

CHECKS = {check.name: check for check in catalogue.checks(["kernels"])}
REAL = 100_000
"""Elements of operands from which a problem is left to `make test-all`."""


def run(name: str) -> Record:
    return try_check(CHECKS[name], Session("cpu", memory()))


def groups() -> dict[tuple[str, str], list[Check]]:
    """Checks by group and type, in order: from the smallest shape to the real one."""
    found: dict[tuple[str, str], list[Check]] = {}
    for check in CHECKS.values():
        assert isinstance(check.body, Problem)
        found.setdefault((check.name.split("/")[1], check.body.kind), []).append(check)
    return found


def quick() -> Iterator[str]:
    """Of each group the second shape of the first and of the last type: an odd one."""
    kinds: dict[str, list[str]] = {}
    for group, kind in groups():
        kinds.setdefault(group, []).append(kind)
    for group, own in kinds.items():
        for kind in dict.fromkeys((own[0], own[-1])):
            checks = groups()[group, kind]
            yield checks[min(1, len(checks) - 1)].name


@pytest.mark.parametrize("name", list(quick()))
def test_check_passes(name: str) -> None:
    record = run(name)
    assert record.status is Status.PASS, record.message
    assert any(item["kind"] == "comparison" for item in record.evidence)


@pytest.mark.slow  # some 500 kernels to compile: two minutes
@pytest.mark.parametrize("name", sorted(CHECKS.keys() - set(quick())))
def test_every_check_passes(name: str) -> None:
    record = run(name)
    assert record.status is Status.PASS, record.message


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_fault_is_noticed(fault: Fault) -> None:
    with planted(fault):
        record = run(f"kernels/{fault.check}")
    assert record.status is Status.FAIL, record.evidence
    assert record.stage in ("wrong result", "out-of-bounds write"), record.message


def test_every_group_has_a_fault() -> None:
    assert {fault.check.partition("/")[0] for fault in FAULTS} == {group for group, _ in groups()}


def test_a_planted_fault_leaves_nothing_behind() -> None:
    fault = FAULTS[0]
    before = kernel(fault.kernel).src
    with planted(fault):
        pass
    assert kernel(fault.kernel).src == before
    assert run(f"kernels/{fault.check}").status is Status.PASS


def test_every_kernel_that_the_level_promises_is_there() -> None:
    promised = {
        "vector-add", "softmax", "layer-norm", "layer-norm-backward", "matmul", "batched-matmul", "grouped-matmul",
        "split-k-matmul", "attention", "attention-backward", "dropout", "cross-entropy", "rms-norm", "rotary", "swiglu",
        "convolution", "prefix-sum", "sort", "top-k", "histogram", "giou-loss", "persistent-matmul", "tuned-matmul",
        "triangle",
    }  # fmt: skip
    assert promised <= {group for group, _ in groups()}


def test_needs_name_the_types_of_all_operands() -> None:
    import numpy as np

    for check in CHECKS.values():
        assert isinstance(check.body, Problem)
        if np.prod([int(n) for n in check.body.shape.replace("-", "x").split("x") if n.isdigit()]) > REAL:
            continue
        kinds = {operand.kind.name for operand in check.body.operands(np.random.default_rng(0))}
        assert {f"type:{kind}" for kind in kinds - {"fp32", "i1", "i32"}} <= check.needs, check.name
        assert check.elements > 0
        assert check.compiles

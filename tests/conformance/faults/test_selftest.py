"""The self-test: a few faults of each part here, all of them in `make test-all`."""

from __future__ import annotations

import os

import pytest
import triton  # noqa: F401

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.essential import ESSENTIAL
from triton_porting_kit.conformance.faults.fault import Fault, nothing
from triton_porting_kit.conformance.faults.plugin import installed
from triton_porting_kit.conformance.faults.selftest import NoSuchFault, SelfTest, run_self_test
from triton_porting_kit.conformance.faults.table import find
from triton_porting_kit.conformance.faults.trying import Trial, run_checks
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status, Verdict

FEW = (
    "store-one-more",
    "htod-short",
    "segfault-in-load",
    "binary-argument-size",
)


def record(name: str, *, holds: bool, stage: str = "wrong result") -> Record:
    item = {"kind": "expectation", "what": "it", "holds": holds, "message": "no", "stage": stage}
    return Record(name, "language", "It holds.", 0.1, 0, [item])


def trial(stage: str = "wrong result", *, holds: bool = False, compiles: bool = True) -> Trial:
    fault = Fault("f", "compiler", "it is wrong", nothing, ("language/a",), compiles=compiles)
    return Trial(
        fault,
        {"language/a": record("language/a", holds=holds, stage=stage)},
        0.1,
        {"language/a": ("language/a",)},
    )


def test_a_fault_is_caught_by_a_check_that_fails() -> None:
    assert trial().caught
    assert not trial(holds=True).caught
    assert trial(holds=True).missed == ["language/a"]


def test_a_backend_that_cannot_compile_or_load_has_not_been_caught() -> None:
    assert not trial("compiled: structured").caught
    assert trial("compiled: structured", compiles=False).caught
    assert not trial("imported").caught


def test_every_pattern_has_to_notice() -> None:
    fault = Fault("f", "compiler", "it is wrong", nothing, ("a", "b"))
    found = Trial(fault, {"a": record("a", holds=False)}, 0.1, {"a": ("a",), "b": ("b",)})
    assert found.missed == ["b"]


def test_what_passes() -> None:
    key = ("none", "language/a")
    clean = {key: record("language/a", holds=True)}
    assert SelfTest([trial()], clean).passed
    assert not SelfTest([trial()], {}).passed
    assert not SelfTest([trial()], {key: record("language/a", holds=False)}).passed
    assert not SelfTest([trial(), trial(holds=True)], clean).passed
    assert not SelfTest([trial()], clean, {("zeros", "none", "kernels"): Verdict.CONDITIONAL}).passed
    assert not SelfTest().passed
    assert SelfTest(degenerate={("zeros", "none", "kernels"): Verdict.FAIL}).passed
    assert "1 of 1 faults are caught: 100.0%" in SelfTest([trial()], clean).summary()


def test_no_such_fault() -> None:
    with pytest.raises(NoSuchFault, match="no fault matches 'nonsense'"):
        run_self_test(("nonsense",))


def test_a_few_faults() -> None:
    found = run_self_test(FEW)
    assert found.passed, found.summary()


def test_zeros_pass_nothing_that_is_essential() -> None:
    essential = [check for check in catalogue.checks() if check.name in ESSENTIAL]
    with installed() as folder:
        records = run_checks(find("zeros"), essential, folder)
    assert {record.status for record in records.values()} == {Status.FAIL}
    assert len(records) == len(ESSENTIAL)


@pytest.mark.slow
def test_all_faults() -> None:
    """Ten minutes."""
    found = run_self_test(jobs=os.cpu_count() or 1)
    assert found.passed, found.summary()

"""The table of faults: enough of them, in every part, each with checks that exist."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
import triton  # noqa: F401

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.faults.degenerate import DEGENERATE
from triton_porting_kit.conformance.faults.fault import CLEAN, PARTS, Fault
from triton_porting_kit.conformance.faults.table import FAULTS, find
from triton_porting_kit.conformance.faults.trying import chosen

pytestmark = pytest.mark.xdist_group("faults-table")  # one process makes the catalogue, which takes seconds
MOST = 40
"""Checks of one pattern: a fault is tried on few."""


@functools.cache
def all_checks() -> list[Check]:
    return list(catalogue.checks())


def test_there_are_enough_faults_in_every_part() -> None:
    count = Counter(fault.part for fault in FAULTS)
    assert len(FAULTS) >= 80
    assert set(count) == set(PARTS)
    assert count["compiler"] >= 60
    assert count["launcher"] >= 20
    assert count["driver"] >= 40


def test_names_are_unique() -> None:
    names = [fault.name for fault in (*FAULTS, *DEGENERATE)]
    assert len(set(names)) == len(names)
    assert CLEAN not in names


def test_sentences_are_unique() -> None:
    repeated = [s for s, count in Counter((f.part, f.sentence) for f in FAULTS).items() if count > 1]
    assert not repeated


def test_a_fault_that_does_not_exist() -> None:
    assert find("sub-swapped").part == "compiler"
    with pytest.raises(ValueError, match="there is no fault 'nonsense'"):
        find("nonsense")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_names_checks(fault: Fault) -> None:
    assert fault.caught_by
    for pattern, names in chosen(fault.caught_by, all_checks()).items():
        assert 1 <= len(names) <= MOST, f"{pattern} matches {len(names)} checks"

"""Comparisons count what differs, by rules that are worked out by hand here."""

from __future__ import annotations

import numpy as np
import pytest

from triton_porting_kit.conformance.comparison import identical, within, within_ulp
from triton_porting_kit.conformance.status import holds
from triton_porting_kit.conformance.types import KINDS, Array

F32 = KINDS["fp32"]
ULP = float(np.spacing(np.float32(1.0)))


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_units_in_the_last_place() -> None:
    exact = np.array([1.0, 1.0, 1.0])
    actual = f32(1.0, 1.0 + ULP, 1.0 + 3 * ULP)
    found = within_ulp(actual, exact, F32, 2)
    assert (found.elements, found.differ, found.index, found.worst_ulp) == (3, 1, (2,), 3.0)
    assert "1 of 3 differ; element [2] is" in found.message
    assert within_ulp(actual, exact, F32, 3).differ == 0


@pytest.mark.parametrize(
    ("actual", "expected", "differ"),
    [
        (f32(np.nan), [np.nan], 0),
        (f32(np.nan), [1.0], 1),
        (f32(1.0), [np.nan], 1),
        (f32(np.inf), [np.inf], 0),
        (f32(np.inf), [-np.inf], 1),
        (f32(1.0), [1.25], 0),
        (f32(1.0), [1.26], 1),
    ],
)
def test_absolute_error(actual: Array, expected: list[float], differ: int) -> None:
    assert within(actual, np.array(expected), np.array([0.25]), "within 0.25").differ == differ


@pytest.mark.parametrize(
    ("actual", "expected", "differ"),
    [
        (f32(0.0), f32(-0.0), 1),
        (f32(np.nan), f32(np.nan), 0),
        (np.array([1, 2]), np.array([1, 3]), 1),
        (np.array([True]), np.array([True]), 0),
    ],
)
def test_identical(actual: Array, expected: Array, differ: int) -> None:
    assert identical(actual, expected).differ == differ


def test_another_shape_never_agrees() -> None:
    for found in (
        identical(np.zeros(3), np.zeros(4)),
        within_ulp(f32(1.0), np.zeros((1, 1)), F32, 1e9),
        within(f32(), np.zeros(1), np.full(1, np.inf), "anything"),
        identical(np.zeros(3), np.zeros(0)),
    ):
        assert found.differ > 0
        assert not holds(found.evidence("out"))


def test_nothing_to_compare_does_not_speak_for_anyone() -> None:
    assert not holds(identical(np.zeros(0), np.zeros(0)).evidence("out"))


@pytest.mark.parametrize("name", ["fp16", "fp32", "fp64"])
def test_infinity_follows_the_largest_number(name: str) -> None:
    kind = KINDS[name]
    largest = np.array([kind.largest])
    infinity = np.array([np.inf], kind.host)
    assert within_ulp(infinity, largest, kind, 0.5).differ == 1
    assert within_ulp(infinity, largest, kind, 1.0).worst_ulp == 1.0
    assert within_ulp(-infinity, largest, kind, 1e3).differ == 1
    assert within_ulp(infinity, np.array([1.0]), kind, 1.0).differ == 1

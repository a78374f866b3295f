"""Compares results with expected values, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.conformance.rounding import ulp_distance
from triton_porting_kit.conformance.types import Array, Kind


@dataclass(frozen=True)
class Comparison:
    """The comparison of an array with its expected values."""

    elements: int
    """The number of compared elements."""
    differ: int
    """The number of wrong elements."""
    rule: str
    """The tolerance as text."""
    worst_ulp: float | None = None
    """The largest error of any element, in units in the last place; None: not measured."""
    index: tuple[int, ...] = ()
    """The index of the first wrong element."""
    actual: str = ""
    expected: str = ""

    @property
    def message(self) -> str:
        """A sentence about the first wrong element; empty if all are right."""
        if not self.differ:
            return ""
        where = ", ".join(map(str, self.index))
        expected = f", not {self.expected}" if self.expected else ""
        return f"{self.differ} of {self.elements} differ; element [{where}] is {self.actual}{expected}"

    def evidence(self, what: str) -> dict[str, Any]:
        """The comparison as an item of evidence."""
        item: dict[str, Any] = {
            "kind": "comparison",
            "what": what,
            "elements": self.elements,
            "differ": self.differ,
            "rule": self.rule,
        }
        if self.worst_ulp is not None:
            item["worst_ulp"] = self.worst_ulp if np.isfinite(self.worst_ulp) else str(self.worst_ulp)
        if self.differ:
            item |= {
                "index": list(self.index),
                "actual": self.actual,
                "expected": self.expected,
                "message": self.message,
            }
        return item


def of_wrong(
    wrong: Array,
    actual: Array,
    expected: Array | None,
    rule: str,
    *,
    kind: Kind | None = None,
    considered: Array | None = None,
) -> Comparison:
    """A comparison from a mask of wrong elements.

    `kind`: the type in whose units in the last place errors are measured. `considered`: a mask of compared elements.
    """
    wrong = np.broadcast_to(wrong, actual.shape)
    count = wrong.size if considered is None else int(np.broadcast_to(considered, actual.shape).sum())
    worst = None
    if kind is not None and kind.is_float and expected is not None and actual.size:
        distance = ulp_distance(actual, expected, kind)
        if considered is not None:
            distance = np.where(considered, distance, 0)
        worst = float(np.max(distance, initial=0.0))
    if not wrong.any():
        return Comparison(count, 0, rule, worst)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    shown = "" if expected is None else repr(np.asarray(expected)[index])
    return Comparison(count, int(wrong.sum()), rule, worst, index, repr(actual[index]), shown)


def within_ulp(actual: Array, expected: Array, kind: Kind, ulp: float) -> Comparison:
    """Compare elements of `kind` with float64 values, allowing `ulp` units in the last place. NaN equals NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return _other_shape(actual, expected)
    wrong = ulp_distance(actual, expected, kind) > ulp
    return of_wrong(wrong, actual, expected, f"within {ulp:g} ulp", kind=kind)


def within(actual: Array, expected: Array, allowed: Array, rule: str) -> Comparison:
    """Compare elements with float64 values, allowing an absolute error per element. NaN equals NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return _other_shape(actual, expected)
    with np.errstate(invalid="ignore"):
        near = np.abs(actual.astype(np.float64) - expected) <= allowed
    both_nan = np.isnan(actual.astype(np.float64)) & np.isnan(np.asarray(expected, np.float64))
    return of_wrong(~(near | both_nan | (actual == expected)), actual, expected, rule)


def identical(actual: Array, expected: Array) -> Comparison:
    """Compare elements of any type: values and signs of zeros must be equal. All NaNs are equal."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return _other_shape(actual, expected)
    expected = expected.astype(actual.dtype)
    if actual.dtype.kind == "f":
        nan = np.isnan(expected)
        wrong = np.where(nan, ~np.isnan(actual), actual != expected)
        wrong = wrong | (~nan & (np.signbit(actual) != np.signbit(expected)))
    else:
        wrong = actual != expected
    return of_wrong(wrong, actual, expected, "identical")


def _other_shape(actual: Array, expected: Array) -> Comparison:
    return Comparison(
        max(expected.size, 1),
        max(expected.size, 1),
        "the same shape",
        actual=f"of shape {actual.shape}",
        expected=f"{expected.shape}",
    )

"""Comparing results with what an oracle says, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from triton_porting_kit.conformance.rounding import ulp_distance
from triton_porting_kit.conformance.types import Array, Kind


@dataclass(frozen=True)
class Comparison:
    """How an array compares with what it should be."""

    elements: int
    """That were compared."""
    differ: int
    """That are wrong."""
    rule: str
    """What is allowed, for people."""
    worst_ulp: float | None = None
    """Largest distance of an element that is right or wrong, in units in the last place; None: not measured."""
    index: tuple[int, ...] = ()
    """Of the first element that is wrong."""
    actual: str = ""
    expected: str = ""

    @property
    def message(self) -> str:
        """Empty where nothing differs, else a sentence about the first element that does."""
        if not self.differ:
            return ""
        where = ", ".join(map(str, self.index))
        expected = f", not {self.expected}" if self.expected else ""
        return f"{self.differ} of {self.elements} differ; element [{where}] is {self.actual}{expected}"

    def evidence(self, what: str) -> dict[str, Any]:
        """As an item of evidence."""
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
    """The comparison whose wrong elements are marked in `wrong`.

    `kind`: measure distances in units of its last place. `considered`: where there is something to compare.
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
    """Elements of `kind` against float64 results: at most `ulp` units in the last place off. NaN equals NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return _other_shape(actual, expected)
    wrong = ulp_distance(actual, expected, kind) > ulp
    return of_wrong(wrong, actual, expected, f"within {ulp:g} ulp", kind=kind)


def within(actual: Array, expected: Array, allowed: Array, rule: str) -> Comparison:
    """Elements against float64 results: off by at most `allowed`, an absolute error per element. NaN equals NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return _other_shape(actual, expected)
    with np.errstate(invalid="ignore"):
        near = np.abs(actual.astype(np.float64) - expected) <= allowed
    both_nan = np.isnan(actual.astype(np.float64)) & np.isnan(np.asarray(expected, np.float64))
    return of_wrong(~(near | both_nan | (actual == expected)), actual, expected, rule)


def identical(actual: Array, expected: Array) -> Comparison:
    """Elements of any type: the same values, zeros with the same sign; any NaN is as good as another."""
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

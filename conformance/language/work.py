"""What a case runs: a kernel's source, its arguments, and the expected memory contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.comparison import Comparison, of_wrong
from triton_porting_kit.conformance.rounding import ulp_distance
from triton_porting_kit.conformance.types import Array, Kind


@dataclass(frozen=True)
class Result:
    """One output: its expected contents and the tolerance.

    Without `ulp`, `allowed` and `accept`, the output must equal `values` bit for bit, except that any NaN equals any
    other.
    """

    kind: Kind
    values: Array
    """Expected elements: of the output's type, or float64 or longer if they are compared by distance."""
    defined: Array | None = None
    """Which elements have a defined result. The others may have any value."""
    initial: Array | None = None
    """The elements before the launch. The default is a pattern that is unlikely to be a right result."""
    ulp: float | Array = 0.0
    """Allowed error in units in the last place of `kind`: one number, or one per element."""
    allowed: Array | None = None
    """Allowed absolute error per element."""
    accept: Callable[[Array], Array] | None = None
    """Says for each element whether it is right. Only the shape of `values` is used then."""
    any_zero: bool = False
    """Whether a zero may have either sign."""

    def compare(self, actual: Array) -> Comparison:
        """Compare the actual contents with the expected ones."""
        if self.accept is not None:
            expected, wrong, rule = None, ~np.asarray(self.accept(actual)), "a property that is checked"
        elif np.any(self.ulp):
            expected, rule = self.values, f"within {float(np.max(self.ulp)):g} ulp"
            wrong = ulp_distance(actual, self.values, self.kind) > self.ulp
        elif self.allowed is not None:
            expected, rule = self.values, f"within {float(np.max(self.allowed)):.3g}"
            wrong = ~(np.abs(actual.astype(np.float64) - self.values) <= self.allowed)
        else:
            expected, rule = np.asarray(self.values).astype(actual.dtype), "identical"
            wrong = _different(actual, expected, self.any_zero)
        if self.defined is not None:
            wrong = wrong & self.defined
        kind = self.kind if np.any(self.ulp) or self.allowed is not None else None
        return of_wrong(wrong, actual, expected, rule, kind=kind, considered=self.defined)

    def mismatch(self, actual: Array) -> str:
        """Empty if `actual` is right; otherwise a sentence about the first wrong element."""
        return self.compare(actual).message


def _different(actual: Array, expected: Array, any_zero: bool) -> Array:
    if actual.dtype.kind != "f":
        return np.asarray(actual != expected)
    nan = np.isnan(expected)
    wrong = np.where(nan, ~np.isnan(actual), actual != expected)
    return wrong if any_zero else wrong | (~nan & (np.signbit(actual) != np.signbit(expected)))


@dataclass(frozen=True)
class Work:
    """A kernel and all that it needs to run. Its parameters are first the inputs, then the results."""

    source: str
    """One undecorated function, the kernel, preceded by the decorated functions that it calls."""
    inputs: tuple[tuple[Array, Kind], ...]
    results: tuple[Result, ...]
    grid: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

"""What one case comes down to: a kernel's source, its arguments, and what must be in memory afterwards."""

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
    """One output: what it holds afterwards, and how near is near enough.

    Without `ulp`, `allowed` and `accept`, `values` are what must be there, bit for bit (any NaN is as good as another).
    """

    kind: Kind
    values: Array
    """Expected elements, of the type or, where they are compared by distance, of float64 or longer."""
    defined: Array | None = None
    """Where there is a result to compare; elsewhere anything may be."""
    initial: Array | None = None
    """The elements before the launch; by default a pattern that is unlikely to be right."""
    ulp: float | Array = 0.0
    """Units in the last place of `kind` that the result may be off; one number, or one per element."""
    allowed: Array | None = None
    """Absolute error that is allowed, per element."""
    accept: Callable[[Array], Array] | None = None
    """Says per element whether a result is right; then `values` only has the shape."""
    any_zero: bool = False
    """Whether a zero may have either sign."""

    def compare(self, actual: Array) -> Comparison:
        """How what was found compares with what should be there."""
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
        """Empty where `actual` is right, else a sentence about the first element that is not."""
        return self.compare(actual).message


def _different(actual: Array, expected: Array, any_zero: bool) -> Array:
    if actual.dtype.kind != "f":
        return np.asarray(actual != expected)
    nan = np.isnan(expected)
    wrong = np.where(nan, ~np.isnan(actual), actual != expected)
    return wrong if any_zero else wrong | (~nan & (np.signbit(actual) != np.signbit(expected)))


@dataclass(frozen=True)
class Work:
    """A kernel and everything to run it with. Its parameters are the inputs, then the results."""

    source: str
    """One undecorated function, the kernel; functions that it calls are decorated ones in front of it."""
    inputs: tuple[tuple[Array, Kind], ...]
    results: tuple[Result, ...]
    grid: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

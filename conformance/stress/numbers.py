"""Values of the oracle: exact integers, and floating-point numbers with an error bound.

A floating-point value is a float64 that its type can represent, and an absolute error. An error of zero means that
every device computes exactly this number, in any order and with any fusion of operations. This holds if the type can
represent every intermediate result. Otherwise each rounding adds half a unit in the last place, and errors propagate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.stress.program import IllConditioned, Type
from triton_porting_kit.conformance.types import KINDS, Array, Kind


@dataclass(frozen=True)
class Datum:
    """The value of a variable in one program of the grid."""

    kind: Kind
    value: Array
    """float64 for floating-point types, otherwise the host type."""
    error: Array | None = None
    """For floating-point types, the largest absolute error that a device may have; None: the value is exact."""

    @property
    def type(self) -> Type:
        return Type(self.kind.name, tuple(self.value.shape))

    @property
    def errors(self) -> Array:
        return np.zeros(self.value.shape) if self.error is None else self.error

    def exact(self) -> Array:
        """The value, for discontinuous operations. Raises `IllConditioned` if it is not exact."""
        if self.error is not None:
            raise IllConditioned("a discontinuous operation on a number that is not known exactly")
        return self.value


@dataclass(frozen=True)
class Pointers(Datum):
    """Pointers: offsets in elements from the position of element 0 of a region, which need not exist."""

    region: Array = field(default_factory=lambda: np.asarray(-1))
    """The region number of each pointer."""


@dataclass(frozen=True)
class Block(Pointers):
    """A block of a tensor descriptor, as pointers to its elements."""

    inside: Array = field(default_factory=lambda: np.asarray(True))
    """Which elements the tensor has."""
    whole: bool = True
    """Whether its innermost dimension has a multiple of 16 bytes."""


@dataclass(frozen=True)
class Product(Datum):
    """A matrix product of floating-point numbers. A later addend may become the initial value of its accumulator.

    Triton's pass `triton-combine` rewrites ``dot(a, b) + c`` to a dot with accumulator c.
    """

    depth: int = 0
    """The number of terms of each sum."""
    total: Array | float = 0.0
    """The sum of the magnitudes of the terms."""
    grains: Array | float = np.inf
    """The grain of the terms, see `grain`."""


def whole(kind: Kind, value: Array | int | bool) -> Datum:
    """Integers or booleans; values out of range wrap around."""
    return Datum(kind, np.asarray(value).astype(kind.host))


def unit(kind: Kind, magnitude: Array) -> Array:
    """The distance between adjacent numbers of a type at a magnitude (one unit in the last place)."""
    _, power = np.frexp(magnitude)
    return np.asarray(np.ldexp(1.0, np.maximum(power - 1, kind.lowest_exponent) - kind.precision + 1))


def grain(values: Array) -> Array:
    """The largest power of two that each value is a multiple of; infinity for zero."""
    fraction, power = np.frexp(np.abs(values))
    digits = np.asarray(fraction * 2.0**53).astype(np.int64)
    lowest = (digits & -digits).astype(np.float64)
    return np.where(values == 0, np.inf, np.ldexp(lowest, power - 53))


def is_exact(kind: Kind, bound: Array, grains: Array) -> Array:
    """Whether a type can represent all multiples of `grains` up to `bound`."""
    smallest = 2.0 ** (kind.lowest_exponent - kind.precision + 1)
    with np.errstate(over="ignore"):
        return np.asarray((bound <= grains * 2.0**kind.precision) & ((grains >= smallest) | (bound == 0)))


def own_ulp(kind: Kind) -> float:
    """The error of the oracle itself in units in the last place: it computes in float64."""
    return 1.0 if kind.precision == 53 else 0.0


def settle(
    kind: Kind, value: Array, error: Array | None, exact: Array | bool, ulp: float | Array = 0.5
) -> Datum:
    """Round a float64 `value` with propagated `error` to a type, and add the rounding to the error.

    `exact`: where there is no rounding. `ulp`: error of the operation in units in the last place, if it is not
    correctly rounded. Raises `IllConditioned` if the result is out of range or its error is too large.
    """
    value = np.asarray(value, np.float64)
    if not np.isfinite(value).all():
        raise IllConditioned("a result that is not finite")
    if (np.abs(value) > kind.largest / 4).any():
        raise IllConditioned(f"a result that is near the end of the range of {kind}")
    near = from_float64(value, kind).astype(np.float64)
    tiny = 2.0**kind.lowest_exponent
    kept = np.asarray(exact) & (near == value)
    if error is None and kept.all() and not ((near != 0) & (np.abs(near) < tiny)).any():
        return Datum(kind, near)  # there is no error to add
    spread = np.zeros(value.shape) if error is None else np.asarray(error)
    exact = kept & (spread == 0)
    rounding = (np.maximum(ulp, 0.5) + own_ulp(kind)) * unit(kind, np.abs(value) + spread) + np.abs(
        near - value
    )
    spread = np.where(exact, 0.0, (spread + rounding) * (1 + 2.0**-20))
    # A device may flush subnormal numbers to zero.
    spread = np.where((near != 0) & (np.abs(near) - spread < tiny), spread + tiny, spread)
    if ((np.abs(near) + spread) > kind.largest / 4).any():
        raise IllConditioned(f"a result that is near the end of the range of {kind}")
    if (spread > np.maximum(1.0, np.abs(near)) * (2.0**-3 if kind.bits == 16 else 2.0**-8)).any():
        raise IllConditioned("a result of which too little is known")
    return Datum(kind, near, spread if spread.any() else None)


def add(a: Datum, b: Datum, sign: float = 1.0) -> Datum:
    """a + b, or a - b with a sign of -1."""
    grains, bound = np.minimum(grain(a.value), grain(b.value)), np.abs(a.value) + np.abs(b.value)
    spread = _sum(a, b)
    for product, other in ((a, b), (b, a)):
        if isinstance(product, Product):
            total = product.total + np.abs(other.value) + other.errors
            fits = is_exact(a.kind, total, np.minimum(product.grains, grain(other.value)))
            rounding = 2 * (product.depth + 2) * 2.0**-a.kind.precision * total
            spread = (0.0 if spread is None else spread) + np.where(fits, 0.0, rounding)
    exact = is_exact(a.kind, bound, grains)
    return settle(a.kind, a.value + sign * b.value, spread, exact)


def _sum(a: Datum, b: Datum) -> Array | None:
    return None if a.error is None and b.error is None else a.errors + b.errors


def multiply(a: Datum, b: Datum) -> Datum:
    grains = grain(a.value) * grain(b.value)
    exact = is_exact(a.kind, np.abs(a.value * b.value), np.where(np.isnan(grains), np.inf, grains))
    return settle(a.kind, a.value * b.value, _product(a, b), exact)


def _product(a: Datum, b: Datum) -> Array | None:
    if a.error is None and b.error is None:
        return None
    return np.asarray(np.abs(a.value) * b.errors + np.abs(b.value) * a.errors + a.errors * b.errors)


def divide(a: Datum, b: Datum, ulp: float) -> Datum:
    """a / b. The quotient counts as exact only if its significand is at most half as long as the type's."""
    least = np.abs(b.value) - b.errors
    if (least < 2.0**-6).any():
        raise IllConditioned("a divisor near zero")
    quotient = a.value / b.value
    exact = is_exact(a.kind, np.abs(quotient), grain(quotient)) & (quotient * b.value == a.value)
    exact = exact & (grain(quotient) >= np.abs(quotient) * 2.0 ** -(a.kind.precision // 2))
    # Devices divide differently. A short quotient is exact on every device whose division has full precision.
    error = (np.abs(a.value) * b.errors + np.abs(b.value) * a.errors) / (np.abs(b.value) * least)
    return settle(a.kind, quotient, error, exact & (ulp <= 0.5), ulp)


def sum_along(x: Datum, axis: int, running: bool = False) -> Datum:
    """A sum along an axis, in any order of additions; `running`: all partial sums."""
    count = x.value.shape[axis]
    total = np.abs(x.value).sum(axis, keepdims=True)
    grains = grain(x.value).min(axis, keepdims=True)
    spread = x.errors.sum(axis, keepdims=True)
    rounding = (1 + own_ulp(x.kind)) * count * 2.0**-x.kind.precision * (total + spread)
    exact = is_exact(x.kind, total, grains)
    error = np.where(exact & (spread == 0), 0.0, spread + rounding)
    if running:
        value = np.cumsum(x.value, axis)
        return settle(x.kind, value, np.broadcast_to(error, value.shape), exact)
    squeezed = x.value.sum(axis)
    return settle(x.kind, squeezed, error.reshape(squeezed.shape), exact.reshape(squeezed.shape))


def product_of(a: Datum, b: Datum, c: Datum | None, kind: Kind) -> Datum:
    """A matrix product of operands of any type, accumulated in `kind`."""
    x, y = a.value.astype(np.float64), b.value.astype(np.float64)
    if not kind.is_float:
        return whole(
            kind, a.value.astype(np.int64) @ b.value.astype(np.int64) + (0 if c is None else c.value)
        )
    value, total = x @ y, np.abs(x) @ np.abs(y)
    grains = grain(x).min(-1, keepdims=True) * grain(y).min(-2, keepdims=True)
    grains = np.where(np.isnan(grains), np.inf, grains)
    spread = np.abs(x) @ b.errors + a.errors @ np.abs(y) + a.errors @ b.errors
    if c is not None:
        value, total, spread = value + c.value, total + np.abs(c.value), spread + c.errors
        grains = np.minimum(grains, grain(c.value))
    # Matrix units may truncate instead of rounding, which doubles the error.
    rounding = 2 * (x.shape[-1] + 2) * 2.0**-kind.precision * (total + spread)
    exact = is_exact(kind, total, grains)
    found = settle(kind, value, np.where(exact & (spread == 0), 0.0, spread + rounding), exact)
    return Product(found.kind, found.value, found.error, x.shape[-1], total, grains)


def convert(x: Datum, kind: Kind) -> Datum:
    """A cast. Raises `IllConditioned` for a cast to integers of numbers that are out of range or not exact."""
    if not kind.is_float:
        if x.kind.is_float:
            value = np.trunc(x.exact())
            if ((value < float(kind.lowest)) | (value >= float(kind.highest + 1))).any():
                raise IllConditioned("a number that the integer type does not have")
            return Datum(kind, value.astype(kind.host))
        return whole(kind, x.value != 0 if kind.bits == 1 else x.value)
    if not x.kind.is_float:
        wide = x.value.astype(np.float64)
        back = np.abs(wide) < 2.0**53
        return settle(kind, wide, None, back & (from_float64(wide, kind) == wide))
    near = settle(kind, x.value, x.error, True)
    if x.error is None and (np.abs(near.value) >= 2.0**kind.lowest_exponent)[near.value != 0].all():
        return Datum(kind, near.value)  # a single correct rounding, which no fusion can change
    return near


def chosen(condition: Array, a: Datum, b: Datum) -> Datum:
    """Elements of `a` where a condition holds, otherwise elements of `b`."""
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        both = np.where(condition, a.value, b.value)
        return Pointers(a.kind, both, region=np.where(condition, a.region, b.region))
    error = None
    if a.error is not None or b.error is not None:
        error = np.where(condition, a.errors, b.errors)
        error = error if error.any() else None
    return Datum(a.kind, np.where(condition, a.value, b.value), error)


def moved(x: Datum, move: Callable[[Array], Array]) -> Datum:
    """Apply a rearrangement to values and errors, or to pointers."""
    if isinstance(x, Pointers):
        return Pointers(x.kind, move(x.value), region=move(x.region))
    return Datum(x.kind, move(x.value), None if x.error is None else move(x.error))


def together(a: Datum, b: Datum, join: Callable[[Array, Array], Array]) -> Datum:
    """Join two tiles into one."""
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        return Pointers(a.kind, join(a.value, b.value), region=join(a.region, b.region))
    error = None if a.error is None and b.error is None else join(a.errors, b.errors)
    return Datum(a.kind, join(a.value, b.value), error)


def extreme(a: Datum, b: Datum, largest: bool) -> Datum:
    """The elementwise maximum or minimum."""
    function = np.maximum if largest else np.minimum
    error = None if a.error is None and b.error is None else np.maximum(a.errors, b.errors)
    return Datum(a.kind, function(a.value, b.value), error)


def as_number(kind_name: str, values: Array) -> Datum:
    """Exact values of the host type as a datum."""
    kind = KINDS[kind_name]
    return Datum(kind, np.asarray(values).astype(np.float64 if kind.is_float else kind.host))

"""Classes of values that a backend may handle wrongly on their own, tiles that contain them, and the classes that a
check covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.types import Array, Kind


@dataclass(frozen=True)
class ValueClass:
    """A class of values, for some types."""

    name: str
    types: Callable[[Kind], bool]
    """Whether a type has values of the class."""
    holds: Callable[[Array, Kind], Array]
    """Which elements of an array belong to the class. The elements are of the type, or exact numbers."""


def _is_float(kind: Kind) -> bool:
    return kind.is_float


def _is_whole_float(kind: Kind) -> bool:
    return kind.is_float and not kind.is_minifloat


def _is_integer(kind: Kind) -> bool:
    return kind.is_integer


def _is_signed(kind: Kind) -> bool:
    return kind.is_integer and kind.is_signed


def _is_power(values: Array, kind: Kind) -> Array:
    magnitude = np.abs(values.astype(np.float64))
    return np.asarray((magnitude > 2) & (np.frexp(magnitude)[0] == 0.5))


CLASSES = (
    ValueClass("0", lambda kind: kind.bits > 1, lambda v, k: (v == 0) & ~np.signbit(v.astype(np.float64))),
    ValueClass("-0", _is_whole_float, lambda v, k: (v == 0) & np.signbit(v.astype(np.float64))),
    ValueClass("denormal", _is_float, lambda v, k: (v != 0) & (np.abs(v) < 2.0**k.lowest_exponent)),
    ValueClass("infinity", _is_whole_float, lambda v, k: v == np.inf),
    ValueClass("-infinity", _is_whole_float, lambda v, k: v == -np.inf),
    ValueClass("NaN", _is_whole_float, lambda v, k: v != v),
    ValueClass("the largest number", _is_float, lambda v, k: v == k.largest),
    ValueClass("the lowest number", _is_float, lambda v, k: v == -k.largest),
    ValueClass("the largest integer", _is_integer, lambda v, k: v == k.highest),
    ValueClass("the lowest integer", _is_signed, lambda v, k: v == k.lowest),
    ValueClass("-1", _is_signed, lambda v, k: v == -1),
    ValueClass("a power of two", _is_integer, _is_power),
    ValueClass("a power of two + 1", _is_integer, lambda v, k: _is_power(v.astype(object) - 1, k)),
    ValueClass("a power of two - 1", _is_integer, lambda v, k: _is_power(v.astype(object) + 1, k)),
)
"""Classes of single elements. The lowest integer of a type also counts as a power of two."""


def classes_in(values: Array, kind: Kind) -> frozenset[str]:
    """The classes that occur in an array."""
    with np.errstate(all="ignore"):
        return frozenset(c.name for c in CLASSES if c.types(kind) and np.any(c.holds(values, kind)))


# --- tiles ---------------------------------------------------------------------------------------

_ROWS, _COLUMNS = 16, 32
BY_CLASS = tuple(
    Shape(f"classes_axis{axis}", (_ROWS, _COLUMNS) if axis else (_COLUMNS, _ROWS), {"axis": axis})
    for axis in (0, 1)
)
"""Shapes for operations along an axis. Each line along the axis holds one class of values, one class with an exception
at an end, or two alternating ones."""
SCANNED_BY_CLASS = tuple(
    replace(shape, params={**shape.params, "reverse": not shape.params["axis"]}) for shape in BY_CLASS
)
ROWS_BY_CLASS = Shape("classes", (_ROWS, _COLUMNS))
"""The shape for operations along the last axis."""


BY_CLASS_NAMES = frozenset(shape.name for shape in (*BY_CLASS, ROWS_BY_CLASS))
"""Names of the shapes whose operands come from `by_class` instead of from the operation."""


def by_class(kinds: tuple[Kind, ...], shape: Shape) -> tuple[Array, ...]:
    """Operands for `BY_CLASS` and `ROWS_BY_CLASS`. Every sum of finite numbers is exact or out of range."""
    found = []
    for kind in kinds:
        lines = [np.broadcast_to(np.asarray(line, kind.host), _COLUMNS) for line in _lines(kind)]
        rows = np.stack(lines)[np.arange(_ROWS) % len(lines)]
        found.append(np.ascontiguousarray(rows if shape.extents[1] == _COLUMNS else rows.T))
    return tuple(found)


def _lines(kind: Kind) -> Iterator[object]:
    last, first = np.arange(_COLUMNS) == _COLUMNS - 1, np.arange(_COLUMNS) == 0
    turns = np.arange(_COLUMNS) % 2 == 0
    if kind.bits == 1:
        yield from (True, False, first, last, turns)
        return
    plain = np.arange(_COLUMNS) % 5 - (0 if not (kind.is_signed or kind.is_float) else 2)
    yield plain
    if kind.is_float:
        tiny = 2.0 ** (kind.lowest_exponent - kind.precision + 1)
        yield from (np.nan, np.where(first, np.nan, plain), np.where(last, np.nan, plain))
        yield from (np.inf, -np.inf, np.where(turns, np.inf, -np.inf), np.where(last, np.inf, plain))
        yield from (kind.largest, -kind.largest, -0.0, np.where(turns, 0.0, -0.0))
        yield from (tiny, np.where(last, -tiny, 0.0), 2.0 ** -(np.arange(_COLUMNS) % 4), -1.0)
        return
    low, high, half = (np.array(v, kind.host) for v in (kind.lowest, kind.highest, 1 << kind.bits // 2))
    one = np.array(1, kind.host)
    yield from (high, low, np.where(turns, high, low), np.where(first, high, low), np.where(last, low, high))
    yield from (np.where(last, high, high - one), np.where(first, low, low + one))
    yield from (half, half - one, half + one, np.where(turns, half, half - one), 0, 1, high // 2 + one)
    yield from (-1 if kind.is_signed else high // 3, high - np.arange(_COLUMNS).astype(kind.host))

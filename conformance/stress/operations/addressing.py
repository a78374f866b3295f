"""Operations on addresses: pointer arithmetic, unguarded divisions and remainders, comparisons with literals.

The table never proposes them. `conformance.stress.addresses` adds them where they form meaningful addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.stress.numbers import Datum, Pointers, as_number, whole
from triton_porting_kit.conformance.stress.operations.base import (
    INTEGERS,
    NUMBERS,
    Operation,
    Place,
    Scope,
    Types,
    Words,
    elementwise,
    joint,
    need,
    template,
)
from triton_porting_kit.conformance.stress.operations.elementwise import truncated
from triton_porting_kit.conformance.stress.program import Attrs, IllConditioned, Type
from triton_porting_kit.conformance.types import KINDS, Array

INDICES = ("i32", "i64", "u8", "u16", "u32", "i16")
"""Integer types that may be added to pointers. Unsigned ones are zero-extended."""


def _none(scope: Scope) -> None:
    return None


# --- pointers: attrs region, kind, second (argument) ---------------------------------------------


def _address_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].kind_name in INDICES)
    return (Type(f"*{attrs['kind']}", types[0].shape),)


def _address_text(words: Words) -> str:
    return f"{'B' if words.attrs['second'] else 'A'}{words.attrs['region']} + {words.args[0]}"


def _address(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    kind = Type(f"*{attrs['kind']}").kind
    at = data[0].value.astype(np.int64)
    return Pointers(kind, at, region=np.full(at.shape, attrs["region"]))


def _advance_types(types: Types, attrs: Attrs) -> Types:
    pointer, index = types
    need(pointer.is_pointer and index.kind_name in INDICES)
    return (Type(pointer.kind_name, joint(types)),)


def _advance(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    pointers, by = data
    assert isinstance(pointers, Pointers)
    at = np.asarray(pointers.value + by.value.astype(np.int64))
    return Pointers(pointers.kind, at, region=np.broadcast_to(pointers.region, at.shape))


def _step_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].is_pointer)
    return (types[0],)


def _step_text(words: Words) -> str:
    step = words.attrs["step"]
    return f"{words.args[0]} {'-' if step < 0 else '+'} {abs(step)}"


def _step(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    (pointers,) = data
    assert isinstance(pointers, Pointers)
    return Pointers(pointers.kind, pointers.value + attrs["step"], region=pointers.region)


# --- numbers -------------------------------------------------------------------------------------


def _unguarded(function: Callable[[Array, Array], Array]) -> Callable[[Sequence[Datum], Attrs, Place], Datum]:
    """Integer division without a guard. Raises `IllConditioned` if it is undefined."""

    def compute(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
        a, b = np.broadcast_arrays(data[0].value, data[1].value)
        kind = data[0].kind
        if (b == 0).any() or (kind.is_signed and ((b == -1) & (a == kind.lowest)).any()):
            raise IllConditioned("a division that is not defined")
        return whole(kind, function(a, b))

    return compute


def _rest(a: Array, b: Array) -> Array:
    return np.asarray(a - truncated(a, b) * b)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


def _limit_types(types: Types, attrs: Attrs) -> Types:
    kind = types[0].kind
    need(types[0].kind_name in NUMBERS and (kind.is_float or kind.lowest <= attrs["literal"] <= kind.highest))
    return (types[0].with_kind("i1"),)


def _limit(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    other = as_number(data[0].kind.name, np.full((), attrs["literal"]))
    return whole(KINDS["i1"], _COMPARISONS[attrs["symbol"]](data[0].exact(), other.value))


OPERATIONS: tuple[Operation, ...] = (
    Operation("address", _address_types, _address_text, _address, _none, weight=0,
        tags=lambda types, attrs: (f"address of {types[0].kind_name}", *(["second argument"] if attrs["second"] else []))),
    Operation("advance", _advance_types, template("{0} + {1}"), _advance, _none, weight=0),
    Operation("step", _step_types, _step_text, _step, _none, weight=0,
        tags=lambda types, attrs: ("step back" if attrs["step"] < 0 else "step forward",)),
    Operation("plain //", elementwise(INTEGERS), template("{0} // {1}"), _unguarded(truncated), _none, weight=0),
    Operation("plain %", elementwise(INTEGERS), template("{0} % {1}"), _unguarded(_rest), _none, weight=0),
    Operation("limit", _limit_types, template("{0} {symbol} {literal}"), _limit, _none, weight=0,
        tags=lambda types, attrs: (f"limit {attrs['symbol']}",)),
)  # fmt: skip
"""Weights are 0: the table never proposes these operations."""

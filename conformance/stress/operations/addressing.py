"""Operations on addresses: pointer arithmetic, unguarded divisions and remainders, comparisons with literals.

The table never proposes them. `conformance.stress.addresses` adds them where they form meaningful addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.stress.numbers import Block, Datum, Pointers, as_number, whole
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
    need(pointer.is_pointer and not pointer.is_block and index.kind_name in INDICES)
    return (Type(pointer.kind_name, joint(types)),)


def _advance(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    pointers, by = data
    assert isinstance(pointers, Pointers)
    at = np.asarray(pointers.value + by.value.astype(np.int64))
    return Pointers(pointers.kind, at, region=np.broadcast_to(pointers.region, at.shape))


def _step_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].is_pointer and not types[0].is_block)
    return (types[0],)


def _step_text(words: Words) -> str:
    step = words.attrs["step"]
    return f"{words.args[0]} {'-' if step < 0 else '+'} {abs(step)}"


def _step(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    (pointers,) = data
    assert isinstance(pointers, Pointers)
    return Pointers(pointers.kind, pointers.value + attrs["step"], region=pointers.region)


# --- tensor descriptors: attrs shape, strides ----------------------------------------------------


def _descriptor_types(types: Types, attrs: Attrs) -> Types:
    """The operands are a pointer, the sizes of the tensor, and the indices of the first element of a block."""
    base, shape = types[0], attrs["shape"]
    size = KINDS[base.pointee].bits // 8
    need(base.is_pointer and not base.is_block and base.rank == 0)
    need(types[1:] == (Type("i32"),) * (2 * len(shape)) and len(attrs["strides"]) == len(shape) > 0)
    need(attrs["strides"][-1] == 1 and shape[-1] * size >= _ALIGNMENT)
    need(all(stride * size % _ALIGNMENT == 0 for stride in attrs["strides"][:-1]))
    return (Type(f"@{base.pointee}", shape),)


_ALIGNMENT = 16
"""Bytes: rows of a tensor, and what a descriptor begins at, are aligned to them."""


def _descriptor_text(words: Words) -> str:
    shape = words.attrs["shape"]
    sizes = ", ".join(words.args[1 : 1 + len(shape)])
    return f"tl.make_tensor_descriptor({words.args[0]}, [{sizes}], {[*words.attrs['strides']]}, {[*shape]})"


def _descriptor(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    base, shape = data[0], attrs["shape"]
    assert isinstance(base, Pointers)
    sizes, first = data[1 : 1 + len(shape)], data[1 + len(shape) :]
    at, inside = np.full(shape, base.value), np.ones(shape, bool)
    for d, (size, start, stride) in enumerate(zip(sizes, first, attrs["strides"], strict=True)):
        index = np.arange(shape[d]).reshape([-1 if i == d else 1 for i in range(len(shape))])
        index = index + start.value.astype(np.int64)
        at, inside = at + index * stride, inside & (index >= 0) & (index < size.value)
    kind = Type(f"@{base.kind.name[1:]}").kind
    whole = int(sizes[-1].value) * KINDS[base.kind.name[1:]].bits // 8 % _ALIGNMENT == 0
    return Block(kind, at, region=np.broadcast_to(base.region, shape), inside=inside, whole=whole)


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
    Operation("tl.make_tensor_descriptor", _descriptor_types, _descriptor_text, _descriptor, _none, weight=0),
    Operation("step", _step_types, _step_text, _step, _none, weight=0,
        tags=lambda types, attrs: ("step back" if attrs["step"] < 0 else "step forward",)),
    Operation("plain //", elementwise(INTEGERS), template("{0} // {1}"), _unguarded(truncated), _none, weight=0),
    Operation("plain %", elementwise(INTEGERS), template("{0} % {1}"), _unguarded(_rest), _none, weight=0),
    Operation("limit", _limit_types, template("{0} {symbol} {literal}"), _limit, _none, weight=0,
        tags=lambda types, attrs: (f"limit {attrs['symbol']}",)),
)  # fmt: skip
"""Weights are 0: the table never proposes these operations."""

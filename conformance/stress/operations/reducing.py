"""Reductions, scans and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.stress import numbers
from triton_porting_kit.conformance.stress.numbers import Datum, moved, whole
from triton_porting_kit.conformance.stress.operations.base import (
    INTEGERS,
    NUMBERS,
    Operation,
    Place,
    Proposal,
    Scope,
    Types,
    Words,
    need,
)
from triton_porting_kit.conformance.stress.program import Attrs, Type
from triton_porting_kit.conformance.types import KINDS, Array

PRODUCT = """@triton.jit
def product(a, b):
    return a * b

"""
LARGER = """@triton.jit
def larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)

"""
AFFINE = """@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d

"""

# --- reductions: attrs axis (None: all), keep_dims -----------------------------------------------


def _reduced_shape(t: Type, attrs: Attrs) -> tuple[int, ...]:
    need(t.rank > 0)
    axis = attrs["axis"]
    if axis is None:
        return (1,) * t.rank if attrs["keep_dims"] else ()
    need(axis < t.rank)
    return t.shape[:axis] + ((1,) if attrs["keep_dims"] else ()) + t.shape[axis + 1 :]


def _reduce_types(kinds: Sequence[str], results: Sequence[str] = ("",)) -> Callable[[Types, Attrs], Types]:
    def infer(types: Types, attrs: Attrs) -> Types:
        need(types[0].kind_name in kinds and all(t.shape == types[0].shape for t in types))
        shape = _reduced_shape(types[0], attrs)
        return tuple(Type(name or types[0].kind_name, shape) for name in results)

    return infer


def _reduce_text(form: str) -> Callable[[Words], str]:
    def text(words: Words) -> str:
        keep = ", keep_dims=True" if words.attrs["keep_dims"] else ""
        return form.format(*words.args, axis=words.attrs["axis"], keep=keep)

    return text


Along = Callable[[Datum, int], Datum]


def _reduce(along: Along) -> Callable[[Sequence[Datum], Attrs, Place], Datum]:
    def compute(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
        (x,), axis = data, attrs["axis"]
        flat, axis = (moved(x, np.ravel), 0) if axis is None else (x, axis)
        return _keeping(along(flat, axis), x, attrs)

    return compute


def _keeping(result: Datum, x: Datum, attrs: Attrs) -> Datum:
    shape = _reduced_shape(x.type, attrs)
    return moved(result, lambda v: v.reshape(shape))


def _sum(x: Datum, axis: int) -> Datum:
    if x.kind.is_float:
        return numbers.sum_along(x, axis)
    return whole(x.kind, x.value.sum(axis, dtype=np.uint64 if x.kind.name == "u64" else np.int64))


def _extreme(function: Any) -> Along:
    def along(x: Datum, axis: int) -> Datum:
        error = None if x.error is None else np.asarray(x.error.max(axis))
        return Datum(x.kind, np.asarray(function(x.value, axis)), error)

    return along


def _by(function: Any) -> Along:
    return lambda x, axis: whole(x.kind, function(x.value, axis))


def _index(function: Any) -> Along:
    return lambda x, axis: whole(KINDS["i32"], function(x.exact(), axis))


def _fold(x: Array, axis: int) -> Array:
    return np.asarray(np.multiply.reduce(x, axis, dtype=x.dtype))


def _propose_reduce(kinds: Sequence[str], exact: bool = False, whole_tile: bool = True) -> Any:
    def propose(scope: Scope) -> Proposal | None:
        value = scope.any(lambda t: t.rank > 0 and t.kind_name in kinds)
        if value is None or (exact and not scope.is_exact(value)):
            return None
        draws, rank = scope.draws, scope.type_of(value).rank
        axis = None if whole_tile and draws.chance(0.25) else draws.below(rank)
        return (value,), {"axis": axis, "keep_dims": axis is not None and draws.chance(0.25)}

    return propose


def _max_and_index(data: Sequence[Datum], attrs: Attrs, place: Place) -> tuple[Datum, ...]:
    x, axis = data[0], attrs["axis"]
    return tuple(
        _keeping(d, x, attrs)
        for d in (Datum(x.kind, x.exact().max(axis)), whole(KINDS["i32"], np.asarray(x.value.argmax(axis))))
    )


def _larger_pair(data: Sequence[Datum], attrs: Attrs, place: Place) -> tuple[Datum, ...]:
    x, i, axis = data[0], data[1], attrs["axis"]
    most = x.exact().max(axis, keepdims=True)
    beside = np.where(x.value == most, i.value, i.kind.highest).min(axis)
    return (
        _keeping(Datum(x.kind, most.squeeze(axis)), x, attrs),
        _keeping(whole(i.kind, beside), x, attrs),
    )


def _propose_pair(scope: Scope) -> Proposal | None:
    found = _propose_reduce(NUMBERS, exact=True, whole_tile=False)(scope)
    if found is None:
        return None
    (value,), attrs = found
    index = scope.any(lambda t: t == Type("i32", scope.type_of(value).shape))
    return None if index is None else ((value, index), attrs)


# --- scans: attrs axis, reverse ------------------------------------------------------------------


def _scan_types(kinds: Sequence[str], count: int = 1) -> Callable[[Types, Attrs], Types]:
    def infer(types: Types, attrs: Attrs) -> Types:
        need(types[0].kind_name in kinds and attrs["axis"] < types[0].rank and len(set(types)) == 1)
        return (types[0],) * count

    return infer


def _scan_text(form: str) -> Callable[[Words], str]:
    def text(words: Words) -> str:
        return form.format(*words.args, axis=words.attrs["axis"], reverse=words.attrs["reverse"])

    return text


def _scan(along: Along) -> Callable[[Sequence[Datum], Attrs, Place], Datum]:
    def compute(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
        (x,), axis = data, attrs["axis"]
        if not attrs["reverse"]:
            return along(x, axis)
        return moved(along(moved(x, lambda v: np.flip(v, axis)), axis), lambda v: np.flip(v, axis))

    return compute


def _running_sum(x: Datum, axis: int) -> Datum:
    if x.kind.is_float:
        return numbers.sum_along(x, axis, running=True)
    return whole(x.kind, np.cumsum(x.value, axis, dtype=np.uint64 if x.kind.name == "u64" else np.int64))


def _affine(data: Sequence[Datum], attrs: Attrs, place: Place) -> tuple[Datum, ...]:
    axis = attrs["axis"]
    a, b = (np.moveaxis(d.value, axis, 0) for d in data)
    if attrs["reverse"]:
        a, b = a[::-1], b[::-1]
    a, b = a.copy(), b.copy()
    for k in range(1, len(a)):
        b[k] = b[k - 1] * a[k] + b[k]
        a[k] = a[k - 1] * a[k]
    if attrs["reverse"]:
        a, b = a[::-1], b[::-1]
    return tuple(whole(data[0].kind, np.moveaxis(v, 0, axis)) for v in (a, b))


def _propose_scan(kinds: Sequence[str], count: int = 1) -> Any:
    def propose(scope: Scope) -> Proposal | None:
        value = scope.any(lambda t: t.rank > 0 and t.kind_name in kinds)
        if value is None:
            return None
        t = scope.type_of(value)
        args = (value, *(scope.any(lambda u: u == t) or value for _ in range(count - 1)))
        return args, {"axis": scope.draws.below(t.rank), "reverse": scope.draws.chance(0.4)}

    return propose


def _scan_tags(types: Types, attrs: Attrs) -> Sequence[str]:
    return ["scan in reverse"] if attrs["reverse"] else []


# --- matrix products -----------------------------------------------------------------------------

ACCUMULATORS = {"i8": "i32", "fp16": "fp32", "bf16": "fp32", "fp32": "fp32"}


def _dot_types(types: Types, attrs: Attrs) -> Types:
    a, b = types[:2]
    need(a.kind_name == b.kind_name and a.kind_name in ACCUMULATORS and a.rank == b.rank and a.rank in (2, 3))
    need(a.shape[-1] == b.shape[-2] and a.shape[:-2] == b.shape[:-2])
    need(min(*a.shape[-2:], b.shape[-1]) >= 16 and (a.kind_name != "i8" or a.shape[-1] >= 32))
    result = Type(ACCUMULATORS[a.kind_name], (*a.shape[:-1], b.shape[-1]))
    need(types[2:] in ((), (result,)))
    return (result,)


def _dot_text(words: Words) -> str:
    more = f", acc={words.args[2]}" if words.args[2:] else ""
    more += ', input_precision="ieee"' if words.types[0].kind_name == "fp32" else ""
    more += ", out_dtype=tl.int32" if words.types[0].kind_name == "i8" else ""
    return f"tl.dot({words.args[0]}, {words.args[1]}{more})"


def _dot(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    a, b = data[:2]
    c = data[2] if data[2:] else None
    return numbers.product_of(a, b, c, KINDS[ACCUMULATORS[a.kind.name]])


def _propose_dot(scope: Scope) -> Proposal | None:
    def fits(t: Type) -> bool:
        return t.kind_name in ACCUMULATORS and t.rank in (2, 3) and min(t.shape[-2:]) >= 16

    a = scope.any(fits)
    if a is None:
        return None
    t = scope.type_of(a)
    b = scope.any(
        lambda u: fits(u) and u.kind_name == t.kind_name and u.shape[:-1] == (*t.shape[:-2], t.shape[-1])
    )
    if b is None:
        return None
    result = Type(ACCUMULATORS[t.kind_name], (*t.shape[:-1], scope.type_of(b).shape[-1]))
    c = scope.any(lambda u: u == result) if scope.draws.chance(0.5) else None
    return ((a, b) if c is None else (a, b, c)), {}


def _reduction(name: str, form: str, kinds: Sequence[str], along: Along, result: str = "", exact: bool = False,
    helpers: tuple[str, ...] = (), whole_tile: bool = True) -> Operation:  # fmt: skip
    return Operation(
        name, _reduce_types(kinds, (result,)), _reduce_text(form), _reduce(along),
        _propose_reduce(kinds, exact, whole_tile), casts=True, helpers=helpers,
        tags=lambda types, attrs: ["reduction of all"] if attrs["axis"] is None else [],
    )  # fmt: skip


OPERATIONS: tuple[Operation, ...] = (
    _reduction("tl.sum", "tl.sum({0}, {axis}{keep})", NUMBERS, _sum),
    _reduction("tl.max", "tl.max({0}, {axis}{keep})", NUMBERS, _extreme(np.max)),
    _reduction("tl.min", "tl.min({0}, {axis}{keep})", NUMBERS, _extreme(np.min)),
    _reduction("tl.xor_sum", "tl.xor_sum({0}, {axis}{keep})", ("i1", *INTEGERS), _by(np.bitwise_xor.reduce)),
    _reduction("tl.reduce_or", "tl.reduce_or({0}, {axis}{keep})", ("i1", *INTEGERS), _by(np.bitwise_or.reduce)),
    _reduction("tl.argmax", "tl.argmax({0}, {axis}{keep})", NUMBERS, _index(np.argmax), "i32", True, whole_tile=False),
    _reduction("tl.argmin", "tl.argmin({0}, {axis}{keep})", NUMBERS, _index(np.argmin), "i32", True, whole_tile=False),
    _reduction("tl.reduce", "tl.reduce({0}, {axis}, product{keep})", INTEGERS, _by(_fold), helpers=(PRODUCT,)),
    Operation("tl.max with index", _reduce_types(NUMBERS, ("", "i32")),
        _reduce_text("tl.max({0}, {axis}, return_indices=True{keep})"), _max_and_index,
        _propose_reduce(NUMBERS, exact=True, whole_tile=False), weight=0.6, casts=True),
    Operation("tl.reduce of two", _reduce_types(NUMBERS, ("", "i32")),
        _reduce_text("tl.reduce(({0}, {1}), {axis}, larger{keep})"), _larger_pair, _propose_pair, weight=0.6,
        helpers=(LARGER,)),
    Operation("tl.cumsum", _scan_types(NUMBERS), _scan_text("tl.cumsum({0}, {axis}, reverse={reverse})"),
        _scan(_running_sum), _propose_scan(NUMBERS), casts=True, tags=_scan_tags),
    Operation("tl.cumprod", _scan_types(INTEGERS), _scan_text("tl.cumprod({0}, {axis}, reverse={reverse})"),
        _scan(lambda x, axis: whole(x.kind, np.cumprod(x.value, axis, dtype=x.kind.host))),
        _propose_scan(INTEGERS), casts=True, tags=_scan_tags, weight=0.5),
    Operation("tl.associative_scan", _scan_types(INTEGERS),
        _scan_text("tl.associative_scan({0}, {axis}, product, reverse={reverse})"),
        _scan(lambda x, axis: whole(x.kind, np.multiply.accumulate(x.value, axis, dtype=x.kind.host))),
        _propose_scan(INTEGERS), helpers=(PRODUCT,), tags=_scan_tags, weight=0.5),
    Operation("tl.associative_scan of two", _scan_types(INTEGERS, 2),
        _scan_text("tl.associative_scan(({0}, {1}), {axis}, affine, reverse={reverse})"), _affine,
        _propose_scan(INTEGERS, 2), helpers=(AFFINE,), tags=_scan_tags, weight=0.7),
    Operation("tl.dot", _dot_types, _dot_text, _dot, _propose_dot, weight=2,
        tags=lambda types, attrs: (f"dot of {types[0].kind_name}", f"dot of rank {types[0].rank}",
            *(["dot with an accumulator"] if types[2:] else []))),
)  # fmt: skip

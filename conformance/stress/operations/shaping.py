"""Operations that rearrange elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance.stress.numbers import Datum, moved, together, whole
from triton_porting_kit.conformance.stress.operations.base import (
    INTEGERS,
    NUMBERS,
    SHAPES,
    Operation,
    Place,
    Proposal,
    Scope,
    Types,
    Words,
    need,
    template,
)
from triton_porting_kit.conformance.stress.program import Attrs, Type
from triton_porting_kit.conformance.types import KINDS, Array


def _moving(move: Callable[..., Array]) -> Callable[[Sequence[Datum], Attrs, Place], Datum]:
    return lambda data, attrs, place: moved(data[0], lambda v: np.asarray(move(v, **attrs)))


def _tile(scope: Scope, fits: Callable[[Type], bool] = lambda t: True) -> int | None:
    return scope.any(lambda t: t.rank > 0 and fits(t))


def _proposing(
    fits: Callable[[Type], bool], attrs: Callable[[Scope, Type], dict[str, Any] | None]
) -> Callable[[Scope], Proposal | None]:
    def propose(scope: Scope) -> Proposal | None:
        value = _tile(scope, fits)
        if value is None:
            return None
        found = attrs(scope, scope.type_of(value))
        return None if found is None else ((value,), found)

    return propose


def _reshape_types(types: Types, attrs: Attrs) -> Types:
    need(math.prod(attrs["shape"]) == types[0].count and types[0].rank > 0)
    return (types[0].with_shape(*attrs["shape"]),)


def _new_shape(scope: Scope, t: Type) -> dict[str, Any] | None:
    fitting = [shape for shape in SHAPES if math.prod(shape) == t.count and shape != t.shape]
    return {"shape": scope.draws.choose(fitting)} if fitting else None


def _permute_types(types: Types, attrs: Attrs) -> Types:
    need(sorted(attrs["order"]) == list(range(types[0].rank)))
    return (types[0].with_shape(*(types[0].shape[d] for d in attrs["order"])),)


def _transpose_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].rank == 2)
    return (types[0].with_shape(*reversed(types[0].shape)),)


def _expand_types(types: Types, attrs: Attrs) -> Types:
    shape, axis = types[0].shape, attrs["axis"]
    need(0 < len(shape) < 4 and axis <= len(shape))
    return (types[0].with_shape(*shape[:axis], 1, *shape[axis:]),)


def _index_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].rank == 1)
    return (types[0].with_shape(*((1, types[0].count) if attrs["axis"] == 0 else (types[0].count, 1))),)


def _broadcast_types(types: Types, attrs: Attrs) -> Types:
    shape = attrs["shape"]
    need(types[0].rank in (0, len(shape)))
    need(all(own in (1, to) for own, to in zip(types[0].shape, shape, strict=False)))
    return (types[0].with_shape(*shape),)


def _wider(scope: Scope) -> Proposal | None:
    value = scope.any(lambda t: t.rank == 0 or 1 in t.shape)
    if value is None:
        return None
    own = scope.type_of(value).shape
    shapes = [s for s in SHAPES if not own or (len(s) == len(own) and s != own)]
    shapes = [s for s in shapes if all(a in (1, b) for a, b in zip(own, s, strict=False))]
    return ((value,), {"shape": scope.draws.choose(shapes)}) if shapes else None


def _join_types(types: Types, attrs: Attrs) -> Types:
    need(types[0] == types[1] and 0 < types[0].rank < 4)
    return (types[0].with_shape(*types[0].shape, 2),)


def _interleave_types(types: Types, attrs: Attrs) -> Types:
    need(types[0] == types[1] and types[0].rank > 0)
    return (types[0].with_shape(*types[0].shape[:-1], 2 * types[0].shape[-1]),)


def _pair(scope: Scope) -> Proposal | None:
    first = _tile(scope, lambda t: t.rank < 3)
    if first is None:
        return None
    second = scope.any(lambda t: t == scope.type_of(first))
    return None if second is None else ((first, second), {})


def _together(join: Callable[[Array, Array], Array]) -> Callable[[Sequence[Datum], Attrs, Place], Datum]:
    return lambda data, attrs, place: together(data[0], data[1], join)


def _split_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].rank > 1 and types[0].shape[-1] == 2)
    return (types[0].with_shape(*types[0].shape[:-1]),) * 2


def _split(data: Sequence[Datum], attrs: Attrs, place: Place) -> tuple[Datum, ...]:
    return tuple(moved(data[0], lambda v, k=k: v[..., k]) for k in range(2))  # type: ignore[misc]


def _flip_types(types: Types, attrs: Attrs) -> Types:
    need(attrs["axis"] < types[0].rank and types[0].shape[attrs["axis"]] > 1)
    return (types[0],)


def _axis_of_many(scope: Scope, t: Type) -> dict[str, Any] | None:
    axes = [d for d, size in enumerate(t.shape) if size > 1]
    return {"axis": scope.draws.choose(axes)} if axes else None


# --- gather and sort -----------------------------------------------------------------------------


def _gather_types(types: Types, attrs: Attrs) -> Types:
    source, index = types
    need(0 < source.rank == index.rank and index.kind_name in INTEGERS and attrs["axis"] < source.rank)
    need(
        all(
            m == n
            for d, (m, n) in enumerate(zip(source.shape, index.shape, strict=True))
            if d != attrs["axis"]
        )
    )
    return (source.with_shape(*index.shape),)


def _gather_text(words: Words) -> str:
    size = words.types[0].shape[words.attrs["axis"]]
    return f"tl.gather({words.args[0]}, {words.args[1]}.to(tl.int32) & {size - 1}, {words.attrs['axis']})"


def _gather(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    source, axis = data[0], attrs["axis"]
    index = data[1].value.astype(np.int64) & (source.value.shape[axis] - 1)
    return moved(source, lambda v: np.take_along_axis(v, index, axis))


def _propose_gather(scope: Scope) -> Proposal | None:
    source = _tile(scope)
    if source is None:
        return None
    shape = scope.type_of(source).shape
    axis = scope.draws.below(len(shape))

    def fits(t: Type) -> bool:
        others = [d for d in range(len(shape)) if d != axis]
        return (
            t.kind_name in INTEGERS and t.rank == len(shape) and all(t.shape[d] == shape[d] for d in others)
        )

    index = scope.any(fits)
    return None if index is None else ((source, index), {"axis": axis})


def _sort_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].rank > 0 and types[0].shape[-1] > 1 and types[0].kind_name in NUMBERS)
    return (types[0],)


def _propose_sort(scope: Scope) -> Proposal | None:
    value = _tile(scope, lambda t: t.kind_name in NUMBERS and 1 < t.shape[-1] <= 64)
    if value is None or not scope.is_exact(value):
        return None
    return (value,), {"descending": scope.draws.chance(0.5)}


def _sort(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    ordered = np.sort(data[0].exact(), -1)
    return Datum(data[0].kind, ordered[..., ::-1] if attrs["descending"] else ordered)


def _histogram_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].rank == 1 and types[0].kind_name in INTEGERS)
    return (Type("i32", (attrs["bins"],)),)


def _histogram(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    index = data[0].value.astype(np.int64) & (attrs["bins"] - 1)
    return whole(KINDS["i32"], np.bincount(index, minlength=attrs["bins"]))


OPERATIONS: tuple[Operation, ...] = (
    Operation("tl.reshape", _reshape_types, template("tl.reshape({0}, {shape})"),
        _moving(lambda v, shape: v.reshape(shape)), _proposing(lambda t: True, _new_shape)),
    Operation("tl.permute", _permute_types, template("tl.permute({0}, {order})"),
        _moving(lambda v, order: v.transpose(order)),
        _proposing(lambda t: t.rank > 1, lambda scope, t: {"order": scope.draws.permutation(t.rank)})),
    Operation("tl.trans", _transpose_types, template("tl.trans({0})"), _moving(lambda v: v.T),
        _proposing(lambda t: t.rank == 2, lambda scope, t: {})),
    Operation("tl.expand_dims", _expand_types, template("tl.expand_dims({0}, {axis})"),
        _moving(lambda v, axis: np.expand_dims(v, axis)),
        _proposing(lambda t: t.rank < 3, lambda scope, t: {"axis": scope.draws.below(t.rank + 1)})),
    Operation("[:, None]", _index_types, lambda w: w.args[0] + ("[None, :]" if w.attrs["axis"] == 0 else "[:, None]"),
        _moving(lambda v, axis: np.expand_dims(v, axis)),
        _proposing(lambda t: t.rank == 1, lambda scope, t: {"axis": scope.draws.below(2)})),
    Operation("tl.broadcast_to", _broadcast_types, template("tl.broadcast_to({0}, {shape})"),
        _moving(lambda v, shape: np.broadcast_to(v, shape).copy()), _wider, weight=2),
    Operation("tl.join", _join_types, template("tl.join({0}, {1})"), _together(lambda a, b: np.stack([a, b], -1)), _pair),
    Operation("tl.interleave", _interleave_types, template("tl.interleave({0}, {1})"),
        _together(lambda a, b: np.stack([a, b], -1).reshape(*a.shape[:-1], -1)), _pair, weight=0.5),
    Operation("tl.split", _split_types, template("tl.split({0})"), _split,
        _proposing(lambda t: t.rank > 1 and t.shape[-1] == 2, lambda scope, t: {}), weight=2),
    Operation("tl.flip", _flip_types, template("tl.flip({0}, {axis})"), _moving(lambda v, axis: np.flip(v, axis)),
        _proposing(lambda t: True, _axis_of_many), weight=0.5),
    Operation("tl.ravel", lambda types, attrs: (types[0].with_shape(types[0].count),), template("tl.ravel({0})"),
        _moving(np.ravel), _proposing(lambda t: t.rank > 1, lambda scope, t: {}), weight=0.3),
    Operation("tl.gather", _gather_types, _gather_text, _gather, _propose_gather),
    Operation("tl.sort", _sort_types, template("tl.sort({0}, descending={descending})"), _sort, _propose_sort, weight=0.3),
    Operation("tl.histogram", _histogram_types,
        lambda w: f"tl.histogram({w.args[0]}.to(tl.int32) & {w.attrs['bins'] - 1}, {w.attrs['bins']})", _histogram,
        _proposing(lambda t: t.rank == 1 and t.kind_name in INTEGERS,
            lambda scope, t: {"bins": 1 << scope.draws.between(1, 6)}), weight=0.6),
)  # fmt: skip

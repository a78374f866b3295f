"""Operations that create values: loads, arguments, the position in the grid, and constant tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triton_porting_kit.conformance.stress.draws import Draws, content
from triton_porting_kit.conformance.stress.numbers import Datum, as_number, convert, whole
from triton_porting_kit.conformance.stress.operations.base import (
    INTEGERS,
    Operation,
    Parameter,
    Place,
    Proposal,
    Scope,
    Types,
    Words,
    need,
    some_kind,
    some_shape,
)
from triton_porting_kit.conformance.stress.program import Attrs, Type
from triton_porting_kit.conformance.types import KINDS


def index_text(shape: Sequence[int], axis: int) -> str:
    """``tl.arange`` along an axis of a tile."""
    along = f"tl.arange(0, {shape[axis]})"
    if len(shape) == 1:
        return along
    return f"{along}[{', '.join(':' if d == axis else 'None' for d in range(len(shape)))}]"


# --- tiles of arrays -----------------------------------------------------------------------------
# attrs: kind, tile, extents (of the array), strides (in elements), axes (of the grid, or None, by dimension),
# flavour, seed, other.


def _starts(attrs: Attrs, place: Place) -> list[int]:
    return [
        0 if axis is None else place.position[axis] * size
        for axis, size in zip(attrs["axes"], attrs["tile"], strict=True)
    ]


def _base(attrs: Attrs) -> int:
    """The offset of the element with all indices 0, which is not 0 if strides are negative."""
    return sum(-s * (e - 1) for s, e in zip(attrs["strides"], attrs["extents"], strict=True) if s < 0)


def _tile_parameter(name: str, attrs: Attrs) -> Parameter:
    span = sum(abs(s) * (e - 1) for s, e in zip(attrs["strides"], attrs["extents"], strict=True)) + 1
    return Parameter(name, attrs["kind"], span, attrs["flavour"], attrs["seed"])


def _tile_text(words: Words) -> str:
    attrs, shape = words.attrs, words.attrs["tile"]
    indices = []
    for d, axis in enumerate(attrs["axes"]):
        along = index_text(shape, d)
        indices.append(along if axis is None else f"(tl.program_id({axis}) * {shape[d]} + {along})")
    offsets = [
        i if s == 1 else f"{i} * {s}" if s >= 0 else f"{i} * ({s})"
        for i, s in zip(indices, attrs["strides"], strict=True)
    ]
    base = _base(attrs)
    masks = [f"({i} < {e})" for i, e in zip(indices, attrs["extents"], strict=True)]
    needed = [
        m
        for m, e, size, axis in zip(masks, attrs["extents"], shape, attrs["axes"], strict=True)
        if e < size or axis is not None
    ]
    masks = [*needed, *words.args]
    text = f"tl.load({words.parameter} + {f'{base} + ' if base else ''}{' + '.join(offsets)}"
    return text + (f", mask={' & '.join(masks)}, other={attrs['other']})" if masks else ")")


def _load_tile(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    parameter = _tile_parameter("", attrs)
    kind, tile = KINDS[attrs["kind"]], attrs["tile"]
    array = content(kind, parameter.size, attrs["flavour"], attrs["seed"])
    offsets = np.full(tile, _base(attrs))
    inside = np.ones(tile, bool)
    for d, start in enumerate(_starts(attrs, place)):
        index = (start + np.arange(tile[d])).reshape([-1 if i == d else 1 for i in range(len(tile))])
        offsets = offsets + index * attrs["strides"][d]
        inside = inside & (index < attrs["extents"][d])
    if data:
        inside = inside & data[0].value
    values = np.where(
        inside, array[np.where(inside, offsets, 0)], np.asarray(attrs["other"]).astype(kind.host)
    )
    return as_number(kind.name, values)


def _tile_types(types: Types, attrs: Attrs) -> Types:
    result = Type(attrs["kind"], tuple(attrs["tile"]))
    need(all(t == result.with_kind("i1") for t in types))
    return (result,)


def _propose_tile(scope: Scope) -> Proposal:
    draws = scope.draws
    shape = some_shape(scope)
    free = list(range(len(scope.grid)))
    axes: list[int | None] = []
    extents = []
    for size in shape:
        axis = free.pop(draws.below(len(free))) if free and draws.chance(0.4) else None
        axes.append(axis)
        whole_size = size * (1 if axis is None else scope.grid[axis])
        extents.append(
            draws.between(max(whole_size - size, 1), whole_size) if draws.chance(0.6) else whole_size
        )
    kind = some_kind(scope)
    attrs = {
        "kind": kind, "tile": shape, "extents": tuple(extents), "strides": strides(draws, extents),
        "axes": tuple(axes), "flavour": flavour(draws, kind), "seed": draws.below(1 << 30),
        "other": draws.choose((0, 1, 3)) if kind != "i1" else draws.below(2),
    }  # fmt: skip
    mask = scope.any(lambda t: t == Type("i1", shape)) if draws.chance(0.3) else None
    return (() if mask is None else (mask,)), attrs


def flavour(draws: Draws, kind: str) -> str:
    if KINDS[kind].is_float:
        return draws.weighted((("small", 4.0), ("whole", 3.0), ("full", 2.0)))
    return draws.choose(("edges", "full", "small"))


def strides(draws: Draws, extents: Sequence[int]) -> tuple[int, ...]:
    """Draw the strides of a layout: any order of dimensions, gaps, and strides that are zero or negative."""
    found = [0] * len(extents)
    step = draws.weighted(((1, 8.0), (2, 1.0), (3, 1.0)))
    order = draws.permutation(len(extents)) if draws.chance(0.3) else tuple(reversed(range(len(extents))))
    for d in order:
        found[d] = step
        step *= extents[d] + (draws.between(1, 3) if draws.chance(0.2) else 0)
        if draws.chance(0.08):
            found[d] = 0
        elif draws.chance(0.08):
            found[d] = -found[d]
    return tuple(found)


def _tile_tags(types: Types, attrs: Attrs) -> Sequence[str]:
    tags = [f"load of rank {len(attrs['tile'])}", f"load of {attrs['kind']}"]
    if types:
        tags.append("load with a mask of values")
    if any(e % t for e, t in zip(attrs["extents"], attrs["tile"], strict=True)):
        tags.append("load of odd extents")
    steps = [s for s, e in zip(attrs["strides"], attrs["extents"], strict=True) if e > 1]
    tags += ["load that repeats"] if 0 in steps else []
    tags += ["load backwards"] if any(s < 0 for s in steps) else []
    tags += ["load with gaps"] if steps and min(map(abs, steps)) > 1 else []
    tags += ["load transposed"] if len(steps) > 1 and abs(steps[0]) < abs(steps[-1]) else []
    return tags


# --- gathers, scalars ----------------------------------------------------------------------------
# attrs: kind, size, flavour, seed; operands: an integer index of any type, taken modulo `size`; a mask.


def _gather_types(types: Types, attrs: Attrs) -> Types:
    need(types[0].kind_name in INTEGERS and all(t == types[0].with_kind("i1") for t in types[1:]))
    return (types[0].with_kind(attrs["kind"]),)


def modulo_text(index: str, size: int) -> str:
    """An integer of any type modulo a size, as i32."""
    return f"({index}.to(tl.uint32) % {size}).to(tl.int32)"


def modulo(index: Datum, size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    value: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    value = (convert(index, KINDS["u32"]).value.astype(np.int64)) % size
    return value


def _gather_text(words: Words) -> str:
    text = f"tl.load({words.parameter} + {modulo_text(words.args[0], words.attrs['size'])}"
    return text + (f", mask={words.args[1]}, other={words.attrs['other']})" if words.args[1:] else ")")


def _load_gather(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    array = content(KINDS[attrs["kind"]], attrs["size"], attrs["flavour"], attrs["seed"])
    values = array[modulo(data[0], attrs["size"])]
    if data[1:]:
        values = np.where(data[1].value, values, np.asarray(attrs["other"]).astype(array.dtype))
    return as_number(attrs["kind"], values)


def _array_parameter(name: str, attrs: Attrs) -> Parameter:
    return Parameter(name, attrs["kind"], attrs["size"], attrs["flavour"], attrs["seed"])


def _propose_gather(scope: Scope) -> Proposal | None:
    index = scope.any(lambda t: t.kind_name in INTEGERS)
    if index is None:
        return None
    draws, kind = scope.draws, some_kind(scope)
    attrs = {
        "kind": kind, "size": draws.between(1, 100), "flavour": flavour(draws, kind),
        "seed": draws.below(1 << 30), "other": draws.choose((0, 1)),
    }  # fmt: skip
    wanted = scope.type_of(index).with_kind("i1")
    mask = scope.any(lambda t: t == wanted) if draws.chance(0.4) else None
    return ((index,) if mask is None else (index, mask)), attrs


def _gather_tags(types: Types, attrs: Attrs) -> Sequence[str]:
    form = "load of a scalar" if not types[0].rank else "load gathered"
    return [form, *(["load gathered with a mask"] if types[0].rank and types[1:] else [])]


# --- numbers -------------------------------------------------------------------------------------


def _propose_argument(scope: Scope) -> Proposal:
    kind = scope.draws.choose([k for k in ("i32", "i64", "fp32") if k in scope.vocabulary])
    number: int | float = scope.draws.between(-16, 16)
    if kind == "i64":
        number = scope.draws.between(1, 1 << 20) << 20
    elif kind == "i32" and scope.draws.chance(0.5):
        number = scope.draws.choose((1, 16, 2**31 - 1, -(2**31), 100))
    return (), {"kind": kind, "value": number / 4 if kind == "fp32" else number}


def _argument_text(words: Words) -> str:
    zero = "0.0" if words.outs[0].kind.is_float else "0"  # Triton specializes an argument of 1 to a constant
    return f"tl.full((), {zero}, {words.outs[0].kind.language}) + {words.parameter}"


def _range_types(types: Types, attrs: Attrs) -> Types:
    return (Type("i32", (attrs["size"],)),)


def _program_types(types: Types, attrs: Attrs) -> Types:
    return (Type("i32"),)


def _full_text(words: Words) -> str:
    return f"tl.full({words.outs[0].shape}, {words.attrs['value']}, {words.outs[0].kind.language})"


def _full(data: Sequence[Datum], attrs: Attrs, place: Place) -> Datum:
    kind = KINDS[attrs["kind"]]
    return as_number(kind.name, np.full(attrs["shape"], attrs["value"]).astype(kind.host))


def _propose_full(scope: Scope) -> Proposal:
    kind = some_kind(scope)
    number = scope.draws.between(0, 40)
    shape = () if scope.draws.chance(0.3) else some_shape(scope)
    return (), {
        "kind": kind,
        "shape": shape,
        "value": number / 4 if KINDS[kind].is_float else number if kind != "i1" else number % 2,
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation("load", _tile_types, _tile_text, _load_tile, _propose_tile, weight=4, parameter=_tile_parameter,
        tags=_tile_tags),
    Operation("gathered load", _gather_types, _gather_text, _load_gather, _propose_gather, weight=2,
        parameter=_array_parameter, tags=_gather_tags),
    Operation("argument", lambda types, attrs: (Type(attrs["kind"]),), _argument_text,
        lambda data, attrs, place: as_number(attrs["kind"], np.asarray(attrs["value"])), _propose_argument, weight=0.5,
        parameter=lambda name, attrs: Parameter(name, attrs["kind"], value=attrs["value"])),
    Operation("tl.arange", _range_types, lambda w: f"tl.arange({w.attrs['start']}, {w.attrs['start'] + w.attrs['size']})",
        lambda data, attrs, place: whole(KINDS["i32"], attrs["start"] + np.arange(attrs["size"])),
        lambda scope: ((), {"start": scope.draws.choose((0, 0, 5)), "size": 1 << scope.draws.between(0, 8)})),
    Operation("tl.program_id", _program_types, lambda w: f"tl.program_id({w.attrs['axis']})",
        lambda data, attrs, place: whole(KINDS["i32"], place.position[attrs["axis"]]),
        lambda scope: ((), {"axis": scope.draws.below(3)}), weight=0.7),
    Operation("tl.num_programs", _program_types, lambda w: f"tl.num_programs({w.attrs['axis']})",
        lambda data, attrs, place: whole(KINDS["i32"], place.grid[attrs["axis"]]),
        lambda scope: ((), {"axis": scope.draws.below(3)}), weight=0.3),
    Operation("tl.full", lambda types, attrs: (Type(attrs["kind"], tuple(attrs["shape"])),), _full_text, _full,
        _propose_full, weight=0.5),
)  # fmt: skip

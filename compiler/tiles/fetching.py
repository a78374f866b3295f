"""Moves a tile from global memory into a buffer, by a transfer where a descriptor can say what to move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import Engine
from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    MOVE,
    NpuElementLoad,
    NpuGather,
)
from triton_porting_kit.compiler.dialect.operations import Load, Store
from triton_porting_kit.compiler.structured.affine import Shape
from triton_porting_kit.toolchain.mlir import ir

from . import addresses, rows
from .editing import SLE, Editor, byte_size, element_of, number_of, shape_of
from .wrapping import Part, in_parts


@dataclass(frozen=True)
class Elements:
    """Elements at explicit offsets from a base: those of the mask, if there is one; `other` for the rest of a load."""

    base: Any
    offsets: Any
    mask: Any | None
    other: Any | None = None
    in_bytes: bool = False

    @property
    def attributes(self) -> dict[str, Any]:
        return {"byte_offsets": ir.UnitAttr.get()} if self.in_bytes else {}


@dataclass(frozen=True)
class Geometry:
    """What a descriptor says of the global side: the tile's sizes, its strides, and its bounds by name. `kept`: the
    dimensions, in order.
    """

    kept: list[int]
    shape: Shape
    strides: list[Any]
    bounds: dict[str, list[Any]]

    def part(self, editor: Editor, part: Part) -> dict[str, Any]:
        """Of a part of the tile, the bounds, and whether the rest of a buffer stays as it is, by name."""
        if not part.first:
            return self.bounds
        low = list(self.bounds.get("low", ())) or [editor.constant(0)] * len(self.kept)
        high = list(self.bounds.get("high", ())) or [editor.constant(size) for size in self.shape]
        keeps = None
        for place, d in enumerate(self.kept):
            if d in part.first:
                first, end = part.first[d], part.end[d]
                whole = (number_of(low[place]), number_of(high[place])) == (0, self.shape[place])
                low[place] = first if whole else editor.i64("arith.maxsi", low[place], first)
                high[place] = end if whole else editor.i64("arith.minsi", high[place], end)
                keeps = first if keeps is None else editor.add(keeps, first)
        return {"low": low, "high": high, "keeps": keeps}


def geometry(editor: Editor, view: Load[Any] | Store[Any], order: Sequence[int], engine: Engine) -> Geometry:
    """The geometry of an access for the transfers of an engine, with the dimensions in `order`."""
    shape = shape_of(view.tile) or ()
    kept = _kept(shape, order, engine)
    bounds: dict[str, list[Any]] = {}
    if view.low:
        low, high = [view.low[d] for d in kept], [view.high[d] for d in kept]
        for d in range(len(shape)):
            if d not in kept:  # an empty bound of a dimension that is left out empties the tile
                empty = editor.compare(SLE, view.high[d], view.low[d])
                high[0] = editor.value("arith.select", [empty, low[0], high[0]], editor.types.i64)
        bounds = {"low": low, "high": high}
    return Geometry(kept, tuple(shape[d] for d in kept), [view.strides[d] for d in kept], bounds)


def _kept(shape: Shape, order: Sequence[int], engine: Engine) -> list[int]:
    """The dimensions of a tile in `order`. If they are more than a transfer has, those of size 1 are left out."""
    if len(shape) <= engine.dimensions:
        return list(order)
    return [d for d in order if shape[d] > 1] or [0]


def mover(
    editor: Editor,
    view: Load[Any] | Store[Any],
    source: str,
    target: str,
    order: Sequence[int] | None = None,
) -> str | None:
    """The channel whose transfers move an access, at least in some launches, with its dimensions in `order`. None: its
    elements are gathered or scattered.
    """
    shape, element = shape_of(view.tile) or (), element_of(view.tile)
    unit = editor.unit(source, target, element)
    if unit is None or (view.mask is not None and addresses.exemption(view) is None):
        return None
    engine = editor.engine(unit)
    kept = _kept(shape, range(len(shape)) if order is None else order, engine)
    channel = editor.unit(source, target, element, gather=True)
    gathering = None if channel is None else editor.engine(channel)
    return unit if rows.pays(tuple(shape[d] for d in kept), element, engine, gathering) else None


def positions(editor: Editor, view: Load[Any] | Store[Any]) -> tuple[Any, Any]:
    """Offsets and mask of a structured access."""
    shape = shape_of(view.tile)
    if shape is None:
        return view.offset, view.mask
    return addresses.offsets(editor, view, shape), addresses.wanted(editor, view, shape)


def fetched(
    editor: Editor, view: Load[Any], memory: str, holds: str = "load", order: Sequence[int] | None = None
) -> Any:
    """A buffer with the tile of a load, its dimensions in `order`. The core has waited for it.

    Elements that are not loaded are `other` if that is one scalar, and 0 if it is not (see `remainder`).
    """
    shape, element = shape_of(view.result) or (), element_of(view.result)
    order = range(len(shape)) if order is None else order
    target = editor.buffer(tuple(shape[d] for d in order), element, holds, memory)
    unit = mover(editor, view, editor.everywhere, memory, order)
    exempt = addresses.exemption(view)
    fill, _ = filling(editor, view.other)

    def transferred(unit: str) -> list[Any]:
        engine = editor.engine(unit)
        found = geometry(editor, view, order, engine)

        def start(part: Part) -> Any:
            first = editor.advanced(view.base, part.offset, element)

            def move(row: rows.Rows) -> Any:
                return editor.dma(
                    unit, LOAD, row.shape, element,
                    target=editor.advanced(target, row.here, element),
                    source=editor.advanced(first, row.there, element), source_strides=row.strides,
                    fill=fill if view.low else None, **row.bounds,
                )  # fmt: skip

            whole = rows.Rows(found.shape, found.strides, found.part(editor, part))
            return rows.in_rows(editor, whole, engine, move)

        return [in_parts(editor, view, shape, start)]

    def gathered() -> list[Any]:
        offsets, mask = (
            value if value is None else turned(editor, value, order) for value in positions(editor, view)
        )
        found = Elements(view.base, offsets, mask, None if fill is None else view.other)
        # Not beyond this: the lists of offsets are written again for the next tile.
        started = gather_into(editor, target, memory, element, found)
        if started is not None:
            editor.wait(*started)
        return [editor.constant(0)]

    if unit is None:
        gathered()
        return target
    if exempt is not None:
        (token,) = editor.if_else(exempt, [editor.types.i64], lambda: transferred(unit), gathered)
    else:
        (token,) = transferred(unit)
    editor.wait(token, unit)
    return target


def turned(editor: Editor, value: Any, order: Sequence[int]) -> Any:
    """A tensor with its dimensions in `order`."""
    if list(order) == list(range(len(order))):
        return value
    return editor.transpose(value, tuple(value.type.shape[d] for d in order), list(order))


def filling(editor: Editor, other: Any | None) -> tuple[Any | None, Any | None]:
    """What elements that are not loaded get: a scalar, or a tensor of different ones."""
    if other is None or shape_of(other) is None:
        return other, None
    owner = other.owner
    name = getattr(owner, "name", "")
    if name == "tensor.splat":
        return owner.operands[0], None
    if name == "arith.constant" and owner.attributes["value"].is_splat:
        literal = owner.attributes["value"].get_splat_value()
        return editor.constant_attribute(literal, other.type.element_type), None
    return None, other


def gather_into(
    editor: Editor, target: Any, memory: str, element: str, found: Elements
) -> tuple[Any, str] | None:
    """Start to fill a buffer by explicit offsets. Returns the token and its unit; None if it is filled already."""
    unit = editor.unit(editor.everywhere, memory, element, gather=True)
    shape = tuple(found.offsets.type.shape)
    fill, _ = filling(editor, found.other)
    if unit is None:
        kind = editor.types.tensor(shape, editor.types.parse(element))
        value = by_element(editor, kind, found, found.attributes)
        return moved(editor, value, target, memory)
    lists = offsets_and_mask(editor, found)
    attributes = indexed(editor, shape, element, found)
    token = editor.start(NpuGather, unit, attributes, buffer=target, base=found.base, fill=fill, **lists)
    return token, unit


def moved(editor: Editor, value: Any, target: Any, memory: str) -> tuple[Any, str] | None:
    """Start to move a tensor that vector code computes into a buffer. Returns the token and its unit; None if it is
    there already.
    """
    if memory == editor.vector:
        editor.write(target, value)
        return None
    source = editor.written(value, "operand")
    return carried(editor, source, tuple(value.type.shape), element_of(value), target, memory)


def carried(
    editor: Editor,
    source: Any,
    shape: Shape,
    element: str,
    target: Any,
    memory: str,
    strides: Sequence[int] = (),
) -> tuple[Any, str]:
    """Start to move a tile from a buffer in the vector memory, of which it may be a part, to a buffer in `memory`,
    through others where there is no direct route. Returns the token of the last transfer and its unit.
    """
    way = editor.way(editor.vector, memory, element)
    assert way
    here, by = editor.vector, ""
    whole = (math.prod(shape),)
    sizes, places = merged(shape, strides) if strides else (whole, (1,))
    steps = [editor.constant(place) for place in places]
    for number, there in enumerate(way):
        last = number == len(way) - 1
        to = target if last else editor.buffer(shape, element, "operand", there)
        unit = editor.unit(here, there, element)
        assert unit is not None
        token = _moved_on(editor, unit, rows.Rows(sizes, steps, {}), element, source, to)
        if not last:
            editor.wait(token, unit)
        here, source, sizes, steps, by = there, to, whole, [], unit
    return token, by


def _moved_on(editor: Editor, unit: str, whole: rows.Rows, element: str, source: Any, target: Any) -> Any:
    """Start to move a tile between local memories; its target is contiguous. Returns the last token."""

    def move(row: rows.Rows) -> Any:
        return editor.dma(
            unit, MOVE, row.shape, element,
            target=editor.advanced(target, row.here, element),
            source=editor.advanced(source, row.there, element), source_strides=row.strides,
        )  # fmt: skip

    return rows.in_rows(editor, whole, editor.engine(unit), move)


def merged(shape: Shape, strides: Sequence[int]) -> tuple[Shape, Shape]:
    """The sizes and strides of a tile's elements, in their order, by the fewest dimensions."""
    sizes, steps = [1], [1]
    for size, step in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if sizes[-1] == 1 or steps[-1] == size * step:
            sizes[-1], steps[-1] = sizes[-1] * size, step
        else:
            sizes.append(size)
            steps.append(step)
    return tuple(sizes), tuple(steps)


def offsets_and_mask(editor: Editor, found: Elements) -> dict[str, Any]:
    """Offsets and mask in buffers."""
    mask = None if found.mask is None else editor.written(found.mask, "mask")
    return {"offsets": editor.written(found.offsets, "offsets"), "mask": mask}


def indexed(editor: Editor, shape: Shape, element: str, found: Elements) -> dict[str, Any]:
    """The attributes of a gather or scatter."""
    return {
        "count": editor.integer(math.prod(shape)),
        "element": ir.StringAttr.get(element),
        "offset_bytes": editor.integer(byte_size(element_of(found.offsets))),
        **found.attributes,
    }


def by_element(editor: Editor, kind: Any, found: Elements, attributes: Any) -> Any:
    """Elements that the core loads itself."""
    return editor.create(
        NpuElementLoad,
        [kind],
        dict(attributes),
        base=found.base,
        offsets=found.offsets,
        mask=found.mask,
        other=found.other,
    ).results[0]

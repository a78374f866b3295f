"""Turns accesses to global memory into transfers between it and buffers.

| access | becomes |
|---|---|
| tile, with bounds | one transfer, which clips to the bounds |
| tile that may wrap around, or whose mask is rarely needed | one transfer where the launch allows it, else as below |
| tile with a mask; explicit offsets | offsets and mask in buffers, and the engine's gather or scatter |
| scalar, volatile, atomic; explicit offsets where no engine gathers | the element path of the core |

A masked element may lie outside of any array, so a mask is never replaced by reading everything and selecting later.
Behind each transfer the core waits for it; `overlap` moves the waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    MOST_DIMENSIONS,
    STORE,
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuElementLoad,
    NpuElementStore,
    NpuGather,
    NpuScatter,
)
from triton_porting_kit.compiler.dialect.operations import (
    AtomicCas,
    AtomicPoll,
    AtomicRmw,
    Gather,
    Load,
    Scatter,
    Store,
)
from triton_porting_kit.compiler.structured.affine import Shape
from triton_porting_kit.toolchain.mlir import ir

from . import addresses
from .editing import SLE, Editor, byte_size, functions, nested


def transfer(module: Any, chip: ChipDescription) -> None:
    """Rewrite all accesses of a structured module, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            for operation in list(nested(function.regions[0].blocks[0])):
                handler = _HANDLERS.get(operation.name)
                if handler is not None:
                    handler(editor.before(operation), operation)


@dataclass(frozen=True)
class _Elements:
    """Elements at explicit offsets from a base: those of the mask, if there is one; `other` for the rest of a load."""

    base: Any
    offsets: Any
    mask: Any | None
    other: Any | None = None
    in_bytes: bool = False

    @property
    def attributes(self) -> dict[str, Any]:
        return {"byte_offsets": ir.UnitAttr.get()} if self.in_bytes else {}


def _shape(value: Any) -> Shape | None:
    kind = value.type
    return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else None


def _element(value: Any) -> str:
    return str(getattr(value.type, "element_type", value.type))


def _finish(operation: Any, value: Any | None = None) -> None:
    if value is not None:
        operation.results[0].replace_all_uses_with(value)
    operation.erase()


# --- loads -------------------------------------------------------------------------------------------


def _load(editor: Editor, operation: Any) -> None:
    view = Load(operation)
    shape = _shape(view.result)
    kind = view.result.type
    if shape is None or shape == () or view.volatile:
        found = _Elements(view.base, *_positions(editor, view, shape), view.other)
        given = {name: value for name, value in Load.attributes_in(operation).items() if name != "wrap_dims"}
        return _finish(operation, _by_element(editor, kind, found, given))
    exempt = addresses.exemption(view)
    conditions = addresses.unbroken(editor, view, shape)
    if exempt is not None:
        conditions.append(exempt)

    def gathered() -> list[Any]:
        return [_gathered(editor, kind, _Elements(view.base, *_positions(editor, view, shape), view.other))]

    if _squeezed(shape) > MOST_DIMENSIONS or (view.mask is not None and exempt is None):
        (value,) = gathered()
    elif conditions:
        condition = editor.both(conditions)
        (value,) = editor.if_else(condition, [kind], lambda: [_transferred(editor, view, shape)], gathered)
    else:
        value = _transferred(editor, view, shape)
    _finish(operation, value)


def _positions(editor: Editor, view: Load[Any] | Store[Any], shape: Shape | None) -> tuple[Any, Any]:
    """Offsets and mask of a structured access."""
    if shape is None:
        return view.offset, view.mask
    return addresses.offsets(editor, view, shape), addresses.wanted(editor, view, shape)


def _squeezed(shape: Shape) -> int:
    return sum(size > 1 for size in shape)


def _geometry(editor: Editor, view: Any, shape: Shape) -> tuple[Shape, list[Any], dict[str, Any]]:
    """Shape, strides and bounds of a transfer; dimensions of size 1 are left out if there are too many."""
    kept = list(range(len(shape)))
    if len(shape) > MOST_DIMENSIONS:
        kept = [d for d in kept if shape[d] > 1] or [0]
    bounds: dict[str, Any] = {}
    if view.low:
        low, high = [view.low[d] for d in kept], [view.high[d] for d in kept]
        for d in range(len(shape)):
            if d not in kept:  # an empty bound of a dimension that is left out empties the tile
                empty = editor.compare(SLE, view.high[d], view.low[d])
                high[0] = editor.value("arith.select", [empty, low[0], high[0]], editor.types.i64)
        bounds = {"low": low, "high": high}
    return tuple(shape[d] for d in kept), [view.strides[d] for d in kept], bounds


def _transferred(editor: Editor, view: Load[Any], shape: Shape) -> Any:
    """A tile by one transfer."""
    element = _element(view.result)
    unit = editor.unit(editor.everywhere, editor.vector)
    assert unit is not None
    sizes, strides, bounds = _geometry(editor, view, shape)
    fill, rest = _fill(editor, view.other if view.low else None)
    buffer = editor.buffer(shape, element, "load")
    source = editor.advanced(view.base, addresses.first_offset(editor, view), element)
    token = editor.dma(
        unit, LOAD, sizes, element, target=buffer, source=source, source_strides=strides, fill=fill, **bounds
    )
    editor.wait(token, unit)
    value = editor.read(buffer, view.result.type)
    if rest is None:
        return value
    inside = addresses.inside(editor, view, shape)
    return editor.value("arith.select", [inside, value, rest], value.type)


def _fill(editor: Editor, other: Any | None) -> tuple[Any | None, Any | None]:
    """What elements that are not loaded get: a scalar, or a tensor of different ones."""
    if other is None or _shape(other) is None:
        return other, None
    owner = other.owner
    name = getattr(owner, "name", "")
    if name == "tensor.splat":
        return owner.operands[0], None
    if name == "arith.constant" and owner.attributes["value"].is_splat:
        return editor.constant_attribute(
            owner.attributes["value"].get_splat_value(), other.type.element_type
        ), None
    return None, other


def _gathered(editor: Editor, kind: Any, found: _Elements) -> Any:
    """A tile by explicit offsets: by the engine's gather, or else by the element path."""
    shape, element = tuple(kind.shape), str(kind.element_type)
    unit = editor.unit(editor.everywhere, editor.vector, gather=True)
    if unit is None:
        return _by_element(editor, kind, found, found.attributes)
    fill, rest = _fill(editor, found.other)
    lists = _lists(editor, found)
    buffer = editor.buffer(shape, element, "gather")
    attributes = _indexed(editor, shape, element, found)
    token = editor.start(NpuGather, unit, attributes, buffer=buffer, base=found.base, fill=fill, **lists)
    editor.wait(token, unit)
    value = editor.read(buffer, kind)
    if rest is None or found.mask is None:
        return value
    return editor.value("arith.select", [found.mask, value, rest], kind)


def _lists(editor: Editor, found: _Elements) -> dict[str, Any]:
    """Offsets and mask in buffers."""
    mask = None if found.mask is None else editor.written(found.mask, "mask")
    return {"offsets": editor.written(found.offsets, "offsets"), "mask": mask}


def _indexed(editor: Editor, shape: Shape, element: str, found: _Elements) -> dict[str, Any]:
    return {
        "count": editor.integer(math.prod(shape)),
        "element": ir.StringAttr.get(element),
        "offset_bytes": editor.integer(byte_size(_element(found.offsets))),
        **found.attributes,
    }


def _by_element(editor: Editor, kind: Any, found: _Elements, attributes: Mapping[str, Any]) -> Any:
    return editor.create(
        NpuElementLoad,
        [kind],
        dict(attributes),
        base=found.base,
        offsets=found.offsets,
        mask=found.mask,
        other=found.other,
    ).results[0]


def _gather(editor: Editor, operation: Any) -> None:
    view = Gather(operation)
    kind = view.result.type
    found = _Elements(view.base, view.offsets, view.mask, view.other, view.byte_offsets)
    if _shape(view.result) in (None, ()) or view.volatile:
        value = _by_element(editor, kind, found, Gather.attributes_in(operation))
    else:
        value = _gathered(editor, kind, found)
    _finish(operation, value)


# --- stores ------------------------------------------------------------------------------------------


def _store(editor: Editor, operation: Any) -> None:
    view = Store(operation)
    shape = _shape(view.value)
    if shape is None or shape == () or view.volatile:
        found = _Elements(view.base, *_positions(editor, view, shape))
        given = {name: value for name, value in Store.attributes_in(operation).items() if name != "wrap_dims"}
        _put_by_element(editor, view.value, found, given)
        return _finish(operation)
    exempt = addresses.exemption(view)
    conditions = addresses.unbroken(editor, view, shape)
    if exempt is not None:
        conditions.append(exempt)

    def scattered() -> list[Any]:
        _scattered(editor, view.value, _Elements(view.base, *_positions(editor, view, shape)))
        return []

    def transferred() -> list[Any]:
        _sent(editor, view, shape)
        return []

    if _squeezed(shape) > MOST_DIMENSIONS or (view.mask is not None and exempt is None):
        scattered()
    elif conditions:
        editor.if_else(editor.both(conditions), [], transferred, scattered)
    else:
        transferred()
    _finish(operation)


def _sent(editor: Editor, view: Store[Any], shape: Shape) -> None:
    """A tile into global memory by one transfer."""
    element = _element(view.value)
    unit = editor.unit(editor.vector, editor.everywhere)
    assert unit is not None
    sizes, strides, bounds = _geometry(editor, view, shape)
    buffer = editor.written(view.value, "store")
    target = editor.advanced(view.base, addresses.first_offset(editor, view), element)
    token = editor.dma(
        unit, STORE, sizes, element, target=target, source=buffer, target_strides=strides, **bounds
    )
    editor.wait(token, unit)


def _scattered(editor: Editor, value: Any, found: _Elements) -> None:
    """A tile to explicit offsets: by the engine's scatter, or else by the element path."""
    shape, element = tuple(value.type.shape), _element(value)
    unit = editor.unit(editor.vector, editor.everywhere, gather=True)
    if unit is None:
        return _put_by_element(editor, value, found, found.attributes)
    lists = _lists(editor, found)
    buffer = editor.written(value, "scatter")
    attributes = _indexed(editor, shape, element, found)
    token = editor.start(NpuScatter, unit, attributes, buffer=buffer, base=found.base, **lists)
    editor.wait(token, unit)


def _put_by_element(editor: Editor, value: Any, found: _Elements, attributes: Mapping[str, Any]) -> None:
    editor.create(
        NpuElementStore,
        [],
        dict(attributes),
        base=found.base,
        offsets=found.offsets,
        mask=found.mask,
        value=value,
    )


def _scatter(editor: Editor, operation: Any) -> None:
    view = Scatter(operation)
    found = _Elements(view.base, view.offsets, view.mask, in_bytes=view.byte_offsets)
    if _shape(view.value) in (None, ()) or view.volatile:
        _put_by_element(editor, view.value, found, Scatter.attributes_in(operation))
    else:
        _scattered(editor, view.value, found)
    _finish(operation)


# --- atomic operations -------------------------------------------------------------------------------


def _renamed(old: type[Op[Any]], new: type[Op[Any]]) -> Callable[[Editor, Any], None]:
    def rewrite(editor: Editor, operation: Any) -> None:
        kinds = [result.type for result in operation.results]
        made = editor.create(new, kinds, old.attributes_in(operation), **old(operation).by_name())
        _finish(operation, made.results[0])

    return rewrite


_HANDLERS: dict[str, Callable[[Editor, Any], None]] = {
    Load.OPERATION_NAME: _load,
    Store.OPERATION_NAME: _store,
    Gather.OPERATION_NAME: _gather,
    Scatter.OPERATION_NAME: _scatter,
    AtomicRmw.OPERATION_NAME: _renamed(AtomicRmw, NpuAtomicRmw),
    AtomicCas.OPERATION_NAME: _renamed(AtomicCas, NpuAtomicCas),
    AtomicPoll.OPERATION_NAME: _renamed(AtomicPoll, NpuAtomicPoll),
}

"""Turns accesses to global memory into transfers between it and buffers.

| access | becomes |
|---|---|
| tile, with bounds | one transfer, which clips to the bounds |
| tile of more dimensions than a transfer has | one transfer for each row |
| tile that may wrap around | one transfer for each part that does not |
| tile whose mask is rarely needed | one transfer where the launch allows it, else as below |
| tile with a mask; explicit offsets | offsets and mask in buffers, and the engine's gather or scatter |
| scalar, volatile, atomic; what no engine transfers or gathers | the element path of the core |

A masked element may lie outside of any array, so a mask is never replaced by reading everything and selecting later.
Behind each transfer the core waits for it; `overlap` moves the waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    STORE,
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuElementStore,
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
from triton_porting_kit.compiler.structured.types import element_bits
from triton_porting_kit.toolchain.mlir import ir

from . import addresses, rows
from .editing import Editor, byte_size, element_of, functions, nested, shape_of
from .fetching import (
    Elements,
    by_element,
    fetched,
    filling,
    gather_into,
    geometry,
    indexed,
    mover,
    offsets_and_mask,
    positions,
)
from .wrapping import Part, in_parts


def transfer(module: Any, chip: ChipDescription) -> None:
    """Rewrite all accesses of a structured module, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            for operation in list(nested(function.regions[0].blocks[0])):
                handler = _HANDLERS.get(operation.name)
                if handler is not None:
                    handler(editor.before(operation), operation)


def _finish(operation: Any, value: Any | None = None) -> None:
    if value is not None:
        operation.results[0].replace_all_uses_with(value)
    operation.erase()


# --- loads -------------------------------------------------------------------------------------------


def _load(editor: Editor, operation: Any) -> None:
    view = Load(operation)
    kind = view.result.type
    if shape_of(view.result) in (None, ()) and _is_moved(editor, operation):
        return _finish(operation, _scalar(editor, view, kind))
    if shape_of(view.result) in (None, ()) or view.volatile:
        found = Elements(view.base, *positions(editor, view), view.other)
        given = {name: value for name, value in Load.attributes_in(operation).items() if name != "wrap_dims"}
        return _finish(operation, by_element(editor, kind, found, given))
    value = editor.read(fetched(editor, view, editor.vector), kind)
    _, rest = filling(editor, view.other)
    touched = None if rest is None else addresses.wanted(editor, view, tuple(kind.shape))
    if touched is not None:
        value = editor.value("arith.select", [touched, value, rest], kind)
    _finish(operation, value)


def _is_moved(editor: Editor, operation: Any) -> bool:
    """Whether a scalar is transferred, so that a loop can move it ahead: the core would wait for memory."""
    view = Load(operation)
    bits = element_bits(element_of(view.result))
    looped = operation.parent is not None and operation.parent.name == "scf.for"
    plain = looped and not view.volatile and view.mask is None and bits >= 8
    return plain and bool(_routed(editor, element_of(view.result)))


def _routed(editor: Editor, element: str) -> tuple[int, ...]:
    """The channels that load elements of a type."""
    return editor.chip.routed(editor.everywhere, editor.vector, element_bytes=byte_size(element))


def _scalar(editor: Editor, view: Load[Any], kind: Any) -> Any:
    """A scalar, by a transfer of one element."""
    element = element_of(view.result)
    target = editor.buffer((1,), element, "load")
    channels = _routed(editor, element)
    unit = f"dma{channels[-1]}"  # so that tiles do not wait until it has started
    source = editor.advanced(view.base, view.offset, element)
    token = editor.dma(
        unit, LOAD, (1,), element, target=target, source=source, source_strides=[editor.constant(1)]
    )
    editor.wait(token, unit)
    return editor.read(target, kind)


def _gather(editor: Editor, operation: Any) -> None:
    view = Gather(operation)
    kind = view.result.type
    found = Elements(view.base, view.offsets, view.mask, view.other, view.byte_offsets)
    element = element_of(view.result)
    by_core = editor.unit(editor.everywhere, editor.vector, element, gather=True) is None
    if by_core or shape_of(view.result) in (None, ()) or view.volatile:
        return _finish(operation, by_element(editor, kind, found, Gather.attributes_in(operation)))
    target = editor.buffer(tuple(kind.shape), element, "gather")
    started = gather_into(editor, target, editor.vector, element, found)
    assert started is not None
    editor.wait(*started)
    value = editor.read(target, kind)
    _, rest = filling(editor, view.other)
    if rest is not None and view.mask is not None:
        value = editor.value("arith.select", [view.mask, value, rest], kind)
    _finish(operation, value)


# --- stores ------------------------------------------------------------------------------------------


def _store(editor: Editor, operation: Any) -> None:
    view = Store(operation)
    if shape_of(view.value) in (None, ()) or view.volatile:
        found = Elements(view.base, *positions(editor, view))
        given = {name: value for name, value in Store.attributes_in(operation).items() if name != "wrap_dims"}
        _put_by_element(editor, view.value, found, given)
        return _finish(operation)
    unit = mover(editor, view, editor.vector, editor.everywhere)
    exempt = addresses.exemption(view)

    def scattered() -> list[Any]:
        _scattered(editor, view.value, Elements(view.base, *positions(editor, view)))
        return []

    def transferred(unit: str) -> list[Any]:
        _sent(editor, view, unit)
        return []

    if unit is None:
        scattered()
    elif exempt is not None:
        editor.if_else(exempt, [], lambda: transferred(unit), scattered)
    else:
        transferred(unit)
    _finish(operation)


def _sent(editor: Editor, view: Store[Any], unit: str) -> None:
    """A tile into global memory, by one transfer if it does not wrap around and the engine takes its dimensions."""
    shape, element = shape_of(view.value) or (), element_of(view.value)
    engine = editor.engine(unit)
    found = geometry(editor, view, range(len(shape)), engine)
    buffer = editor.written(view.value, "store")

    def start(part: Part) -> Any:
        first = editor.advanced(view.base, part.offset, element)

        def move(row: rows.Rows) -> Any:
            return editor.dma(
                unit, STORE, row.shape, element,
                target=editor.advanced(first, row.there, element),
                source=editor.advanced(buffer, row.here, element), target_strides=row.strides, **row.bounds,
            )  # fmt: skip

        bounds = {**found.part(editor, part), "keeps": None}
        return rows.in_rows(editor, rows.Rows(found.shape, found.strides, bounds), engine, move)

    editor.wait(in_parts(editor, view, shape, start), unit)


def _scattered(editor: Editor, value: Any, found: Elements) -> None:
    """A tile to explicit offsets: by the engine's scatter, or else by the element path."""
    shape, element = tuple(value.type.shape), element_of(value)
    unit = editor.unit(editor.vector, editor.everywhere, element, gather=True)
    if unit is None:
        return _put_by_element(editor, value, found, found.attributes)
    lists = offsets_and_mask(editor, found)
    buffer = editor.written(value, "scatter")
    attributes = indexed(editor, shape, element, found)
    token = editor.start(NpuScatter, unit, attributes, buffer=buffer, base=found.base, **lists)
    editor.wait(token, unit)


def _put_by_element(editor: Editor, value: Any, found: Elements, attributes: Mapping[str, Any]) -> None:
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
    found = Elements(view.base, view.offsets, view.mask, in_bytes=view.byte_offsets)
    if shape_of(view.value) in (None, ()) or view.volatile:
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

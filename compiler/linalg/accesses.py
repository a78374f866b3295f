"""Loads and stores: blocks of memory as views that are copied, other elements one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Gather, Load, Scatter, Store
from triton_porting_kit.compiler.dialect.types import element_of, shape_of

from .blocks import load_memory, load_tensor
from .expansion import Text, memref_type, nest, tensor_type
from .rewriting import Rewriting
from .tile import UNKNOWN, Tile, kind_of, one_element, zero


def load(rewriting: Rewriting, operation: Any) -> None:
    """A tile from memory. A block becomes an allocation into which what is in bounds is copied."""
    op = Load(operation)
    body = Text()
    tile = Tile(rewriting, op, body)
    if shape_of(op.result) is None:
        _load_scalar(rewriting, tile)
        return
    result = str(op.result.type)
    kind = memref_type(tile.shape, tile.element)
    if not tile.is_block or not tile.shape:
        returned = _load_elements(rewriting, tile, result)
    else:
        returned = (load_tensor if rewriting.convention.executable else load_memory)(tile, kind, result)
    rewriting.replace(operation, "load", body, [returned])


def _load_scalar(rewriting: Rewriting, tile: Tile) -> None:
    body = tile.body
    returned = _guarded_load(body, tile, tile.mask, tile.offset, tile.last)
    rewriting.replace(tile.op.operation, "load", body, [returned])


def _guarded_load(body: Text, tile: Tile, condition: str | None, position: str, other: str | None) -> str:
    if condition is None:
        view, kind = tile.one(position)
        return body.let(f"memref.load {view}[{body.constant(0)}] : {kind}")
    result = body.name()
    body.do(f"{result} = scf.if {condition} -> ({tile.element}) {{")
    view, kind = tile.one(position)
    value = body.let(f"memref.load {view}[{body.constant(0)}] : {kind}")
    body.do(f"scf.yield {value} : {tile.element}")
    body.do("} else {")
    body.do(f"scf.yield {other or zero(body, tile.element)} : {tile.element}")
    body.do("}")
    return result


def mask_reader(
    rewriting: Rewriting, body: Text, name: str | None, value: Any
) -> Callable[[str], str | None]:
    """A function that reads a mask at indices such as ``[%i, %j]``: a scalar as it is, an element of a tensor, or None
    without a mask. Call this before the loops in which it reads.

    Beside products, AscendNPU-IR refuses loops that extract booleans from a tensor ("operation's operand is unlinked").
    So they are numbers there.
    """
    if name is None or shape_of(value) is None:
        return lambda at: name
    kind = str(value.type)
    if not rewriting.numbers_as_masks:
        return lambda at: body.let(f"tensor.extract {name}{at} : {kind}")
    wide = tensor_type(shape_of(value) or (), "i32")
    numbers, zero_ = body.let(f"arith.extui {name} : {kind} to {wide}"), body.constant(0, "i32")

    def read(at: str) -> str:
        number = body.let(f"tensor.extract {numbers}{at} : {wide}")
        return body.let(f"arith.cmpi ne, {number}, {zero_} : i32")

    return read


def _load_elements(rewriting: Rewriting, tile: Tile, result: str) -> str:
    """A tile whose elements are tested one at a time."""
    body, op = tile.body, tile.op
    other = tile.last
    operand = op.operation.operands[-1] if other else None
    mask_at = mask_reader(rewriting, body, tile.mask, op.mask)

    def element(indices: list[str]) -> str:
        at = f"[{', '.join(indices)}]"
        mask = mask_at(at)
        fallback = other
        if operand is not None and shape_of(operand) is not None:
            fallback = body.let(f"tensor.extract {other}{at} : {operand.type}")
        return _guarded_load(body, tile, tile.is_accessed(indices, mask), tile.address(indices), fallback)

    return filled(body, tile.shape, result, element)


def generic(
    body: Text, shape: Sequence[int], inputs: Sequence[tuple[str, str]], element: str
) -> tuple[str, list[str]]:
    """Begin a parallel `linalg.generic` over tensors of `shape`, which the caller ends by a yield and ``} -> type``.

    Returns the name of its result, and of its region's arguments.
    """
    result = tensor_type(shape, element)
    empty = body.let(f"tensor.empty() : {result}")
    made = body.name()
    dims = ", ".join(f"d{d}" for d in range(len(shape)))
    identity = f"affine_map<({dims}) -> ({dims})>"
    maps = ", ".join([identity] * (len(inputs) + 1))
    kinds = ", ".join('"parallel"' for _ in shape)
    taken = ""
    if inputs:
        taken = f"ins({', '.join(name for name, _ in inputs)} : {', '.join(kind for _, kind in inputs)}) "
    body.do(
        f"{made} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"{taken}outs({empty} : {result}) {{"
    )
    names = [body.name() for _ in inputs]
    elements = [kind.rsplit("x", 1)[-1].rstrip(">") if "x" in kind else kind[7:-1] for _, kind in inputs]
    arguments = [f"{name}: {kind}" for name, kind in zip(names, elements, strict=True)]
    body.do(f"^bb0({', '.join([*arguments, f'{body.name()}: {element}'])}):")
    return made, names


def filled(body: Text, shape: Sequence[int], kind: str, element: Callable[[list[str]], str]) -> str:
    """A tensor of type `kind` whose elements loops compute in order, because they access memory."""
    carried = body.let(f"tensor.empty() : {kind}")
    low, step = body.constant(0), body.constant(1)
    indices, results = [], []
    for size in shape:
        index, result, inner = body.name(), body.name(), body.name()
        high = body.constant(size)
        body.do(
            f"{result} = scf.for {index} = {low} to {high} step {step} iter_args({inner} = {carried}) -> ({kind}) {{"
        )
        indices.append(index)
        results.append(result)
        carried = inner
    carried = body.let(f"tensor.insert {element(indices)} into {carried}[{', '.join(indices)}] : {kind}")
    for result in reversed(results):
        body.do(f"scf.yield {carried} : {kind}")
        body.do("}")
        carried = result
    return carried


def store(rewriting: Rewriting, operation: Any) -> None:
    """A tile into memory. What is in bounds of a block is copied; other elements are stored in loops."""
    op = Store(operation)
    body = Text()
    tile = Tile(rewriting, op, body)
    value, kind = str(tile.last), str(op.value.type)
    if shape_of(op.value) is None or not tile.shape:
        element = value
        if shape_of(op.value) is not None:
            element = body.let(f"tensor.extract {value}[] : {kind}")
        mask = tile.mask
        if mask is not None and shape_of(op.mask) is not None:
            mask = body.let(f"tensor.extract {mask}[] : {kind_of(op.mask)}")
        _guarded_store(tile, mask, tile.offset, element)
    elif tile.is_block:
        view, view_kind = tile.view()
        if tile.low:
            low, counts = tile.bounds()
            ones = ", ".join("1" for _ in tile.shape)
            part_kind = tensor_type([UNKNOWN for _ in tile.shape], tile.element)
            where = f"[{', '.join(low)}] [{', '.join(counts)}] [{ones}]"
            value = body.let(f"tensor.extract_slice {value}{where} : {kind} to {part_kind}")
            view, view_kind = tile.part(view, view_kind, low, counts, tile.layout)
            kind = part_kind
        body.do(
            f"bufferization.materialize_in_destination {value} in writable {view} : ({kind}, {view_kind}) -> ()"
        )
    else:
        mask_at = mask_reader(rewriting, body, tile.mask, op.mask)
        for indices in nest(body, tile.shape):
            at = f"[{', '.join(indices)}]"
            condition = tile.is_accessed(indices, mask_at(at))
            body.do(f"scf.if {condition} {{")
            element = body.let(f"tensor.extract {value}{at} : {kind}")
            view, view_kind = tile.one(tile.address(indices))
            body.do(f"memref.store {element}, {view}[{body.constant(0)}] : {view_kind}")
            body.do("}")
    rewriting.replace(operation, "store", body, [])


def _guarded_store(tile: Tile, condition: str | None, position: str, element: str) -> None:
    body = tile.body
    if condition is not None:
        body.do(f"scf.if {condition} {{")
    view, kind = tile.one(position)
    body.do(f"memref.store {element}, {view}[{body.constant(0)}] : {kind}")
    if condition is not None:
        body.do("}")


def _explicit(rewriting: Rewriting, op: Gather[Any] | Scatter[Any]) -> str:
    """The element type of an access with explicit offsets."""
    rewriting.point_to(op, element_of(op.tile))
    return element_of(op.tile)


def gather(rewriting: Rewriting, operation: Any) -> None:
    """Elements at explicit offsets, in loops that load them."""
    op = Gather(operation)
    element = _explicit(rewriting, op)
    body = Text()
    names = rewriting.names(op)
    shape = shape_of(op.result)
    mask_at = mask_reader(rewriting, body, next(iter(names["mask"]), None), op.mask)

    def at(group: str, value: Any, where: str) -> str | None:
        if not names[group]:
            return None
        name = names[group][0]
        return name if shape_of(value) is None else body.let(f"tensor.extract {name}{where} : {value.type}")

    def one(indices: list[str]) -> str:
        where = f"[{', '.join(indices)}]"
        offset, other = (
            at(group, value, where) for group, value in (("offsets", op.offsets), ("other", op.other))
        )
        mask = mask_at(where)
        result = ""
        if mask is not None:
            result = body.name()
            body.do(f"{result} = scf.if {mask} -> ({element}) {{")
        position = rewriting.shifted(body, op, body.index(str(offset), element_of(op.offsets)))
        view, kind = one_element(body, names["base"][0], str(op.base.type), element, position)
        value = body.let(f"memref.load {view}[{body.constant(0)}] : {kind}")
        if mask is None:
            return value
        body.do(f"scf.yield {value} : {element}")
        body.do("} else {")
        body.do(f"scf.yield {other or zero(body, element)} : {element}")
        body.do("}")
        return result

    made = one([]) if shape is None else filled(body, shape, str(op.result.type), one)
    rewriting.replace(operation, "gather", body, [made])


def scatter(rewriting: Rewriting, operation: Any) -> None:
    """Elements to explicit offsets, in loops: the last of several at one place stays."""
    op = Scatter(operation)
    element = _explicit(rewriting, op)
    body = Text()
    groups = rewriting.names(op)
    base, offsets, value = (groups[name][0] for name in ("base", "offsets", "value"))
    mask_at = mask_reader(rewriting, body, next(iter(groups["mask"]), None), op.mask)
    for indices in nest(body, shape_of(op.value) or ()):
        at = f"[{', '.join(indices)}]"
        mask = mask_at(at)
        if mask is not None:
            body.do(f"scf.if {mask} {{")
        offset = body.let(f"tensor.extract {offsets}{at} : {op.offsets.type}")
        position = rewriting.shifted(body, op, body.index(offset, element_of(op.offsets)))
        one = body.let(f"tensor.extract {value}{at} : {op.value.type}")
        view, kind = one_element(body, base, str(op.base.type), element, position)
        body.do(f"memref.store {one}, {view}[{body.constant(0)}] : {kind}")
        if mask is not None:
            body.do("}")
    rewriting.replace(operation, "scatter", body, [])

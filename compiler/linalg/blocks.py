"""Loads of blocks of memory: into memory of their own, or as tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from triton_porting_kit.compiler.dialect.types import shape_of

from .expansion import tensor_type
from .nests import constant
from .tile import Tile, sizes_of, zero


def load_memory(tile: Tile, kind: str, result: str) -> str:
    """A block in memory of its own, into which what is in bounds is copied."""
    body = tile.body
    view, view_kind = tile.view()
    memory = body.let(f"memref.alloc() : {kind}")
    if not tile.low:
        body.do(f"memref.copy {view}, {memory} : {view_kind} to {kind}")
    else:
        _fill(tile, memory, kind)
        low, counts = tile.bounds()
        source, source_kind = tile.part(view, view_kind, low, counts, tile.layout)
        offset = "" if set(low) == {"0"} else ", offset: ?"
        dense = f"strided<[{', '.join(map(str, _dense(tile.shape)))}]{offset}>"
        target, target_kind = tile.part(memory, kind, low, counts, dense)
        body.do(f"memref.copy {source}, {target} : {source_kind} to {target_kind}")
    return body.let(f"bufferization.to_tensor {memory} restrict writable : {kind} to {result}")


def load_tensor(tile: Tile, kind: str, result: str) -> str:
    """A block as a tensor, into which what is in bounds is inserted: where it is, the compiler decides."""
    body = tile.body
    view, view_kind = tile.view()
    empty = body.let(f"tensor.empty() : {result}")
    if not tile.low:
        found = body.let(f"bufferization.to_tensor {view} restrict : {view_kind} to {result}")
        return body.let(f"linalg.copy ins({found} : {result}) outs({empty} : {result}) -> {result}")
    given = tile.op.operation.operands[-1] if tile.last else None
    filled_ = str(tile.last)
    if given is None or shape_of(given) is None:
        value = tile.last or zero(body, tile.element)
        filled_ = body.let(f"linalg.fill ins({value} : {tile.element}) outs({empty} : {result}) -> {result}")
    # IREE allocates what has a known size that the type does not tell, for which it has no heap.
    low, counts = tile.bounds()
    counts = tile.static(counts)
    source, source_kind = tile.part(view, view_kind, low, counts, tile.layout)
    part = tensor_type(sizes_of(counts), tile.element)
    found = body.let(f"bufferization.to_tensor {source} restrict : {source_kind} to {part}")
    ones = ", ".join("1" for _ in tile.shape)
    where = f"[{', '.join(low)}] [{', '.join(counts)}] [{ones}]"
    return body.let(f"tensor.insert_slice {found} into {filled_}{where} : {part} into {result}")


def _dense(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides[len(strides) - len(shape) :]


def _fill(tile: Tile, memory: str, kind: str) -> None:
    """Give the elements that are out of bounds their value, by filling all of them where any is."""
    body, other = tile.body, tile.last
    operand = tile.op.operation.operands[-1] if other else None
    if operand is not None and shape_of(operand) is not None:
        body.do(
            f"bufferization.materialize_in_destination {other} in restrict writable {memory} : "
            f"({operand.type}, {kind}) -> ()"
        )
        return
    value = other or zero(body, tile.element)
    outside = []
    for low, high, size, first in zip(tile.low, tile.high, tile.shape, tile.op.low, strict=True):
        if constant(first) != 0:
            outside.append(body.let(f"arith.cmpi ne, {low}, {body.constant(0, 'i64')} : i64"))
        outside.append(body.let(f"arith.cmpi ne, {high}, {body.constant(size, 'i64')} : i64"))
    partial = functools.reduce(lambda one, other: body.let(f"arith.ori {one}, {other} : i1"), outside)
    body.do(f"scf.if {partial} {{")
    body.do(f"linalg.fill ins({value} : {tile.element}) outs({memory} : {kind})")
    body.do("}")

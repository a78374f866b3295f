"""Reading and writing lanes of memory: consecutive or at one pointer each, masked or not.

Booleans are bytes in memory.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type

LINE = 64
"""Bytes of a cache line."""


def to_storage(builder: LoopBuilder, value: Value) -> Value:
    """`value` in the type that it has in memory."""
    stored = types.storage(value.element)
    if stored == value.element:
        return value
    type = _like(value, stored)
    return builder.cast("arith.extui" if value.element == "i1" else "arith.bitcast", value, type)


def from_storage(builder: LoopBuilder, value: Value, element: str) -> Value:
    """The inverse of `to_storage`."""
    element = types.register(element)
    if value.element == element:
        return value
    return builder.cast("arith.trunci" if element == "i1" else "arith.bitcast", value, _like(value, element))


def _like(value: Value, element: str) -> str:
    return f"vector<{value.lanes}x{element}>" if value.is_vector else element


def zero(builder: LoopBuilder, element: str) -> Value:
    """The scalar whose bits are all zero, of an element type."""
    if element == "!llvm.ptr":
        return builder.pure("llvm.mlir.zero : !llvm.ptr", element, ())
    return builder.constant(0, types.register(element))


def pointers_at(builder: LoopBuilder, base: Value, offsets: Value, unit: str) -> Value:
    """A vector of pointers: `base` plus a vector of i64 offsets in elements of type `unit`."""
    type = f"vector<{offsets.lanes}x!llvm.ptr>"
    text = f"llvm.getelementptr {base.name}[{offsets.name}] : (!llvm.ptr, {offsets.type}) -> {type}, {unit}"
    return builder.pure(text, type, (base, offsets))


def read(
    builder: LoopBuilder,
    pointer: Value,
    element: str,
    lanes: int,
    *,
    floor: int,
    mask: Value | None = None,
    fill: Value | None = None,
    alignment: int | None = None,
) -> Value:
    """Load consecutive elements. With a mask, load its lanes only; the others get `fill` (0 by default).

    `alignment` of the pointer is in bytes; the default is that of the element.
    """
    stored, size = types.storage(element), alignment or types.byte_size(element)
    if mask is None:
        type = vector_type(stored, lanes)
        text = f"llvm.load {pointer.name} {{alignment = {size} : i64}} : !llvm.ptr -> {type}"
        return from_storage(builder, builder.read(text, type, (pointer,), floor=floor), element)
    mask = as_vector(builder, mask, lanes)
    fill = as_vector(builder, to_storage(builder, fill or zero(builder, element)), lanes)
    text = (
        f"llvm.intr.masked.load {pointer.name}, {mask.name}, {fill.name} {{alignment = {size} : i32}} : "
        f"(!llvm.ptr, {mask.type}, {fill.type}) -> {fill.type}"
    )
    value = builder.read(text, fill.type, (pointer, mask, fill), floor=floor)
    return from_storage(builder, value if lanes > 1 else builder.extract(value, 0), element)


def gather(
    builder: LoopBuilder,
    pointers: Value,
    element: str,
    *,
    floor: int,
    mask: Value | None = None,
    fill: Value | None = None,
    branches: bool = True,
) -> Value:
    """The element at each pointer in the lanes of the mask; `fill` (0 by default) in the others.

    Where no instruction takes a mask, LLVM branches around the load of each lane. Without `branches`, the other lanes
    load from `LoopBuilder.readable` instead, which is less code to compile. With AVX2, that takes a fifth of the time
    if lanes are on at random, but a fifth longer if nearly all are, and twice as long if hardly any are.
    """
    lanes = pointers.lanes
    fill = builder.broadcast(to_storage(builder, fill or zero(builder, element)), lanes)
    given = None
    if mask is not None and mask.constant is None and builder.readable is not None and not branches:
        given = builder.broadcast(mask, lanes)
        mask, pointers = None, builder.select(given, pointers, builder.broadcast(builder.readable, lanes))
    mask = builder.broadcast(mask or builder.constant(1, "i1"), lanes)
    text = (
        f"llvm.intr.masked.gather {pointers.name}, {mask.name}, {fill.name} "
        f"{{alignment = {types.byte_size(element)} : i32}} : ({pointers.type}, {mask.type}, {fill.type}) -> {fill.type}"
    )
    value = builder.read(text, fill.type, (pointers, mask, fill), floor=floor)
    if given is not None:
        value = builder.select(given, value, fill)
    return from_storage(builder, value, element)


SPACINGS = (2, 3, 4)
"""Distances of lanes in memory at which `read_spaced` is faster than a gather."""


def read_spaced(
    builder: LoopBuilder, pointer: Value, element: str, lanes: int, spacing: int, *, floor: int
) -> Value:
    """Load every `spacing`-th element from `pointer` on: `lanes` of them.

    Whole vectors are loaded, without what lies between the elements, which may not be mapped, and shuffled together.
    """
    stored, size = types.storage(element), types.byte_size(element)
    type = vector_type(stored, lanes)
    nothing = as_vector(builder, zero(builder, stored), lanes)
    found = nothing
    for first in range(0, spacing * lanes, lanes):
        wanted = flags(builder, [(first + lane) % spacing == 0 for lane in range(lanes)])
        here = builder.address(pointer, [builder.i64(first)], stored)
        text = (
            f"llvm.intr.masked.load {here.name}, {wanted.name}, {nothing.name} {{alignment = {size} : i32}} : "
            f"(!llvm.ptr, {wanted.type}, {type}) -> {type}"
        )
        loaded = builder.read(text, type, (here, wanted, nothing), floor=floor)
        places = [lane * spacing - first for lane in range(lanes)]
        chosen = [lanes + place if place in range(lanes) else lane for lane, place in enumerate(places)]
        found = shuffled(builder, found, loaded, chosen)
    return from_storage(builder, found, element)


def flags(builder: LoopBuilder, lanes: list[bool]) -> Value:
    """A constant mask."""
    type = vector_type("i1", len(lanes))
    literal = ", ".join("true" if lane else "false" for lane in lanes)
    return builder.pure(f"arith.constant dense<[{literal}]> : {type}", type, ())


def shuffled(builder: LoopBuilder, a: Value, b: Value, lanes: list[int]) -> Value:
    """A vector of the given lanes of `a` and `b`."""
    chosen, type = ", ".join(map(str, lanes)), vector_type(a.element, len(lanes))
    text = f"vector.shuffle {a.name}, {b.name} [{chosen}] : {a.type}, {b.type}"
    return builder.pure(text, type, (a, b))


def write(
    builder: LoopBuilder, pointer: Value, value: Value, mask: Value | None = None, *, streamed: bool = False
) -> None:
    """Store consecutive elements in the lanes of `mask` (all by default).

    `streamed`: a non-temporal store. It has no mask, and the address must be aligned to the whole vector.
    """
    size = types.byte_size(value.element)
    lanes = value.lanes
    value = to_storage(builder, value)
    if mask is None:
        how = f"alignment = {lanes * size} : i64, nontemporal" if streamed else f"alignment = {size} : i64"
        builder.effect(f"llvm.store {value.name}, {pointer.name} {{{how}}} : {value.type}, !llvm.ptr")
        return
    value, mask = as_vector(builder, value, lanes), as_vector(builder, mask, lanes)
    builder.effect(
        f"llvm.intr.masked.store {value.name}, {pointer.name}, {mask.name} {{alignment = {size} : i32}} : "
        f"{value.type}, {mask.type} into !llvm.ptr"
    )


def scatter(builder: LoopBuilder, pointers: Value, value: Value, mask: Value | None = None) -> None:
    """Store each lane of `mask` at its pointer. If several lanes have the same pointer, the last one wins."""
    size = types.byte_size(value.element)
    value = to_storage(builder, builder.broadcast(value, pointers.lanes))
    mask = builder.broadcast(mask or builder.constant(1, "i1"), pointers.lanes)
    builder.effect(
        f"llvm.intr.masked.scatter {value.name}, {pointers.name}, {mask.name} {{alignment = {size} : i32}} : "
        f"{value.type}, {mask.type} into {pointers.type}"
    )


L1, L2 = 3, 2
"""LLVM's locality hints for the cache that a prefetched line goes to."""


def prefetch(builder: LoopBuilder, pointer: Value, cache: int, *, writes: bool = False) -> None:
    """Prefetch the cache line at `pointer`, which may be any address: a prefetch never faults.

    `writes`: for a store, which needs the line to be in no other core's cache.
    """
    builder.effect(
        f'"llvm.intr.prefetch"({pointer.name}) <{{cache = 1 : i32, hint = {cache} : i32, rw = {int(writes)} : i32}}> : '
        "(!llvm.ptr) -> ()"
    )


def as_vector(builder: LoopBuilder, value: Value, lanes: int) -> Value:
    """`value` in every lane, as a vector. Masked operations need a vector even for one lane."""
    if value.is_vector:
        return value
    type = f"vector<{lanes}x{value.type}>"
    return builder.pure(f"vector.broadcast {value.name} : {value.type} to {type}", type, (value,))

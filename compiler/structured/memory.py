"""Loads, stores and atomics: from tensors of pointers to `tpk` operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from triton_porting_kit.compiler.dialect.operations import (
    Access,
    AtomicCas,
    AtomicPoll,
    AtomicRmw,
    Gather,
    Load,
    Scatter,
    Store,
    StructuredAccess,
)
from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine
from .diagnostics import fail
from .guards import Bounds, stays
from .masks import Mask, emit_box
from .rewriter import Rewriter
from .types import TypeInfo

_CACHE = {2: "ca", 3: "cg", 4: "wb", 5: "cs", 6: "wt", 7: "cv"}
_EVICT = {2: "evict_first", 3: "evict_last"}
_POLICY = re.compile(r"(cache_modifier|eviction_policy) = (\w+)")
_RMW = {
    1: "and",
    2: "or",
    3: "xor",
    4: "add",
    5: "fadd",
    6: "max",
    7: "min",
    8: "umax",
    9: "umin",
    10: "exch",
}
_SEM = {1: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel"}
_SCOPE = {1: "gpu", 2: "cta", 3: "sys"}


def load(rewriter: Rewriter, operation: Any) -> None:
    """tt.load -> tpk.load if the addresses are affine, else tpk.gather."""
    rewriter.emitter.before(operation)
    types = rewriter.types
    pointer, mask, other = _segments(operation, 3)
    info = types.info(pointer)
    element = _memory_type(rewriter, info)
    kind = types.shaped(info.shape, element)
    if other is not None:
        other = _to_memory(rewriter, info, _fill(rewriter, other))
    result = _access(rewriter, LOADS, pointer, mask, other, [kind], _hints(operation)).results[0]
    rewriter.replace(operation, _from_memory(rewriter, info, result))


def store(rewriter: Rewriter, operation: Any) -> None:
    """tt.store -> tpk.store or tpk.scatter."""
    rewriter.emitter.before(operation)
    pointer, value = operation.operands[0], operation.operands[1]
    mask = operation.operands[2] if len(operation.operands) > 2 else None
    info = rewriter.types.info(pointer)
    if rewriter.types.info(value).is_pointer:
        value = rewriter.addresses(value)
    value = _to_memory(rewriter, info, value)
    _access(rewriter, STORES, pointer, mask, value, [], _hints(operation))
    rewriter.replace(operation)


def atomic_load(rewriter: Rewriter, operation: Any) -> None:
    """tt.atomic_load -> a volatile load with `sem` and `scope`."""
    rewriter.emitter.before(operation)
    pointer, mask = operation.operands
    attributes: dict[str, Any] = {"volatile": ir.UnitAttr.get()}
    _ordering(operation, attributes)
    kinds = [operation.results[0].type]
    mask = None if _is_true(mask) else mask
    rewriter.replace(operation, *_access(rewriter, LOADS, pointer, mask, None, kinds, attributes).results)


def atomic_store(rewriter: Rewriter, operation: Any) -> None:
    """tt.atomic_store -> a volatile store with `sem` and `scope`."""
    rewriter.emitter.before(operation)
    pointer, value, mask = operation.operands
    attributes: dict[str, Any] = {"volatile": ir.UnitAttr.get()}
    _ordering(operation, attributes)
    _access(rewriter, STORES, pointer, None if _is_true(mask) else mask, value, [], attributes)
    rewriter.replace(operation)


def atomic_poll(rewriter: Rewriter, operation: Any) -> None:
    """tt.atomic_poll -> tpk.atomic_poll"""
    emitter = rewriter.emitter.before(operation)
    pointer, expected, *timeout = operation.operands
    base, offsets, attributes = _addresses(rewriter, pointer)
    _ordering(operation, attributes)
    created = emitter.create(
        AtomicPoll, [operation.results[0].type], attributes,
        base=base, offsets=offsets, expected=expected, timeout=timeout,
    )  # fmt: skip
    rewriter.replace(operation, *created.results)


def atomic_rmw(rewriter: Rewriter, operation: Any) -> None:
    """tt.atomic_rmw -> tpk.atomic_rmw"""
    emitter = rewriter.emitter.before(operation)
    pointer, value = operation.operands[0], operation.operands[1]
    mask = operation.operands[2] if len(operation.operands) > 2 else None
    mask = None if mask is not None and _is_true(mask) else mask
    base, offsets, attributes = _addresses(rewriter, pointer)
    attributes["kind"] = ir.StringAttr.get(_RMW[_enum(operation, "atomic_rmw_op")])
    _ordering(operation, attributes)
    created = emitter.create(
        AtomicRmw, [operation.results[0].type], attributes,
        base=base, offsets=offsets, value=value, mask=mask,
    )  # fmt: skip
    rewriter.replace(operation, *created.results)


def _is_true(mask: Any) -> bool:
    """Whether a mask is a constant whose elements are all true."""
    if isinstance(mask.owner, ir.Block) or mask.owner.operation.name != "arith.constant":
        return False
    attribute = mask.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return bool(attribute.is_splat and attribute.get_splat_value().value)
    return bool(attribute.value)


def atomic_cas(rewriter: Rewriter, operation: Any) -> None:
    """tt.atomic_cas -> tpk.atomic_cas"""
    emitter = rewriter.emitter.before(operation)
    pointer, compare, value = operation.operands
    base, offsets, attributes = _addresses(rewriter, pointer)
    _ordering(operation, attributes)
    created = emitter.create(
        AtomicCas, [operation.results[0].type], attributes,
        base=base, offsets=offsets, compare=compare, value=value,
    )  # fmt: skip
    rewriter.replace(operation, *created.results)


# --- the access itself ---------------------------------------------------------------------------


class Forms(NamedTuple):
    """The two operations that an access can become, and the name of their last operand."""

    structured: type[StructuredAccess[Any]]
    explicit: type[Access[Any]]
    value: str


LOADS, STORES = Forms(Load, Gather, "other"), Forms(Store, Scatter, "value")


def _access(
    rewriter: Rewriter,
    forms: Forms,
    pointer: Any,
    mask: Any,
    last: Any,
    results: list[Any],
    attributes: dict[str, Any],
) -> Any:
    """Emit a load (`last`: the value of masked elements, or None) or a store (`last`: the stored value)."""
    form = rewriter.analysis.pointer(pointer)
    shape = rewriter.types.info(pointer).shape
    value = {forms.value: last}

    def explicit() -> Any:
        base, offsets, extra = _addresses(rewriter, pointer)
        return rewriter.emitter.create(
            forms.explicit, results, attributes | extra, base=base, offsets=offsets, mask=mask, **value
        )

    if form.base is None or form.index is None:
        return explicit()
    index, parts, tile = form.index, Mask(), shape or ()
    bounds: Bounds = ([], [])
    if mask is not None and shape is not None:
        parts = rewriter.masks.mask(mask)
        bounds = emit_box(rewriter.emitter, parts, shape)
    unless = None
    in_mask, in_index = rewriter.to_look_at(parts.assumed), rewriter.to_look_at(index.assumed)
    if in_mask:
        holds = stays(rewriter, in_mask, tile)
        bounds, unless = _where_exact(rewriter, holds, tile, bounds, mask)

    def structured() -> Any:
        rest = mask if shape is None else None
        for more in (rewriter.rest_mask(parts.rest), unless):
            if more is not None:
                rest = more if rest is None else rewriter.emitter.value("arith.andi", [rest, more], more.type)
        low, high = bounds
        operands = {"base": form.base, "low": low, "high": high, "mask": rest, **value}
        return _structured(rewriter, forms.structured, index, operands, results, attributes)

    if in_index:
        return _versions(rewriter, in_index, tile, bounds, results, structured, explicit)
    return structured()


def _where_exact(
    rewriter: Rewriter, holds: Any, shape: tuple[int, ...], bounds: Bounds, mask: Any
) -> tuple[Bounds, Any]:
    """The bounds to use if `holds`, and the tensor mask that applies otherwise.

    `holds` is i1: the assumptions behind the bounds are true. If not, the bounds are the whole tile.
    """
    emitter = rewriter.emitter
    lows = [emitter.i64("arith.select", holds, low, emitter.constant(0)) for low in bounds[0]]
    sizes = map(emitter.constant, shape)
    highs = [emitter.i64("arith.select", holds, *pair) for pair in zip(bounds[1], sizes, strict=False)]
    return (lows, highs), emitter.value("arith.ori", [emitter.splat(holds, shape), mask], mask.type)


def _versions(
    rewriter: Rewriter,
    parts: list[Affine],
    shape: tuple[int, ...],
    bounds: Bounds,
    results: list[Any],
    structured: Callable[[], Any],
    explicit: Callable[[], Any],
) -> Any:
    """An access whose index may overflow: structured if none of `parts` does, else explicit."""
    emitter = rewriter.emitter
    branch = emitter.op("scf.if", [stays(rewriter, parts, shape, bounds)], results, regions=2)
    outer = emitter.at
    for region, emit in zip(branch.regions, (structured, explicit), strict=True):
        emitter.at = ir.InsertionPoint(region.blocks.append())
        emitter.op("scf.yield", list(emit().results), [])
    emitter.at = outer
    return branch


def _structured(
    rewriter: Rewriter,
    cls: type[StructuredAccess[Any]],
    index: Affine,
    operands: dict[str, Any],
    results: list[Any],
    attributes: dict[str, Any],
) -> Any:
    """The structured access of an `index`; `operands` are the remaining ones."""
    emitter = rewriter.emitter
    offset = emitter.poly(index.offset)
    strides = [emitter.poly(stride) for stride in index.strides]
    wrapped = [(d, wrap) for d, wrap in enumerate(index.wraps) if wrap is not None]
    starts = [emitter.poly(wrap.start) for _, wrap in wrapped]
    sizes = [emitter.poly(wrap.size) for _, wrap in wrapped]
    if wrapped:  # only this version of the access has them
        dimensions = ir.DenseI64ArrayAttr.get([d for d, _ in wrapped])
        attributes = {**attributes, "wrap_dims": dimensions}
    return emitter.create(
        cls, results, attributes,
        offset=offset, strides=strides, wrap_start=starts, wrap_size=sizes, **operands,
    )  # fmt: skip


def _addresses(rewriter: Rewriter, pointer: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Base, offsets in elements (a tensor, or an i64 scalar), and the attributes that describe them."""
    emitter = rewriter.emitter
    info = rewriter.types.info(pointer)
    if info.shape is None:
        form = rewriter.analysis.pointer(pointer)
        assert form.index is not None
        return form.base, emitter.poly(form.index.offset), {}
    base, uniform, offsets = rewriter.offsets(pointer)
    if base is None:
        zero = emitter.value("llvm.mlir.zero", [], rewriter.types.pointer)
        return zero, offsets, {"byte_offsets": ir.UnitAttr.get()}
    return emitter.pointer(base, uniform, info.element_bytes), offsets, {}


# --- values in memory ----------------------------------------------------------------------------


def _memory_type(rewriter: Rewriter, info: TypeInfo) -> Any:
    """The type that is loaded and stored: booleans as bytes, pointers as integers."""
    assert info.pointee is not None
    if info.pointee.startswith("!"):
        return rewriter.types.i64
    return rewriter.types.i8 if info.pointee == "i1" else rewriter.types.parse(info.pointee)


def _to_memory(rewriter: Rewriter, info: TypeInfo, value: Any) -> Any:
    if info.pointee != "i1":
        return value
    shape = tuple(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else None
    return rewriter.emitter.value("arith.extui", [value], rewriter.types.shaped(shape, rewriter.types.i8))


def _from_memory(rewriter: Rewriter, info: TypeInfo, value: Any) -> Any:
    emitter, types = rewriter.emitter, rewriter.types
    assert info.pointee is not None
    if info.pointee == "i1":
        zero = emitter.constant(0, types.i8)
        zero = zero if info.shape is None else emitter.splat(zero, info.shape)
        kind = types.shaped(info.shape, types.i1)
        return emitter.value("arith.cmpi", [value, zero], kind, {"predicate": emitter.integer(1)})
    if info.pointee.startswith("!") and info.shape is None:
        return emitter.value("llvm.inttoptr", [value], types.pointer)
    return value


def _fill(rewriter: Rewriter, other: Any) -> Any:
    """The value of masked elements, as a scalar if all are equal."""
    owner = other.owner
    if isinstance(owner, ir.Block):
        return other
    name = owner.operation.name
    if name == "tt.splat" and not rewriter.types.info(other).is_pointer:
        return owner.operands[0]
    if name == "tt.broadcast":
        inner = _fill(rewriter, owner.operands[0])
        return inner if inner.type != owner.operands[0].type else other
    if name == "arith.constant" and rewriter.types.info(other).shape is not None:
        attribute = owner.attributes["value"]
        if attribute.is_splat:
            scalar = attribute.get_splat_value()
            return rewriter.emitter.constant_attribute(scalar, other.type.element_type)
    return rewriter.addresses(other) if rewriter.types.info(other).is_pointer else other


# --- attributes ----------------------------------------------------------------------------------


def _segments(operation: Any, count: int) -> list[Any]:
    """Operands by position; None for an absent optional one."""
    sizes = list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
    operands = iter(operation.operands)
    found = [next(operands) if size else None for size in sizes]
    if len(found) != count:
        fail(
            operation,
            f"the operation has {len(found)} groups of operands, and {count} are expected",
            "use a release of Triton that the kit supports",
        )
    return found


def _enum(operation: Any, name: str) -> int:
    return int(ir.IntegerAttr(operation.attributes[name]).value)


def _hints(operation: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    attributes = operation.attributes
    for name, names in (("cache", _CACHE), ("evict", _EVICT)):
        if name in attributes and (text := names.get(_enum(operation, name))):
            found[name] = ir.StringAttr.get(text)
    # Newer releases have both in one attribute.
    if "cachePolicy" in attributes:
        for name, text in _POLICY.findall(str(attributes["cachePolicy"])):
            if text not in ("none", "evict_normal"):
                found["cache" if name == "cache_modifier" else "evict"] = ir.StringAttr.get(text)
    if "isVolatile" in attributes and ir.BoolAttr(attributes["isVolatile"]).value:
        found["volatile"] = ir.UnitAttr.get()
    return found


def _ordering(operation: Any, attributes: dict[str, Any]) -> None:
    attributes["sem"] = ir.StringAttr.get(_SEM[_enum(operation, "sem")])
    attributes["scope"] = ir.StringAttr.get(_SCOPE[_enum(operation, "scope")])

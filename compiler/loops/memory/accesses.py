"""Loads, stores, gathers and scatters."""

from __future__ import annotations

from functools import partial

from triton_porting_kit.compiler.dialect.operations import Gather as GatherOp
from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import Scatter, Store, StructuredAccess
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import column_prefetch, non_temporal, ordered, row_prefetch
from triton_porting_kit.compiler.loops.memory.overlaps import store_in_order
from triton_porting_kit.compiler.loops.state import EarlyStores, Origins
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather, scatter_explicit
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Splat, Tensor


def access_of(lowering: Lowering, op: StructuredAccess[Def]) -> Access:
    """The access of a ``tpk.load`` or ``tpk.store``."""
    strides, low, high, wrap_start, wrap_size = (
        [lowering.scalar(value) for value in group]
        for group in (op.strides, op.low, op.high, op.wrap_start, op.wrap_size)
    )
    mask = op.mask
    return Access(
        op.tile.type.shape or (),
        op.tile.type.element,
        lowering.scalar(op.base),
        lowering.scalar(op.offset),
        strides,
        low,
        high,
        dict(zip(op.wrap_dims, zip(wrap_start, wrap_size, strict=True), strict=True)),
        None if mask is None else lowering.tensor(mask),
        None if mask is None else _exempt(lowering, mask),
        lowering.target.shuffles and lowering.target.masks_gathers,
    )


def _exempt(lowering: Lowering, mask: Def) -> Value | None:
    """The i1 of a mask `splat(i1) | ...`. If it is set, the rest of the mask need not be computed."""
    owner = mask.owner
    if owner is None or owner.name != "arith.ori":
        return None
    splats = (operand.owner for operand in owner.operands)
    found = [splat.operands[0] for splat in splats if splat is not None and splat.name == "tensor.splat"]
    return lowering.scalar(found[0]) if found else None


def load(lowering: Lowering, operation: Operation) -> None:
    op = LoadOp(operation)
    result = op.result
    access = access_of(lowering, op)
    if lowering.checks is not None:
        lowering.checks.structured(operation, access)
    other = None if op.other is None else lowering.tensor(op.other)
    tensor = Load(access, _shaped(other, access.shape), partial(lowering.place_of, operation))
    if ordered.is_ordered(operation):
        ordered.load(lowering, operation, tensor)
    elif result.type.is_tensor:
        tensor.ahead = column_prefetch.distance(lowering, operation, access)
        lowering.define(result, tensor)
    else:
        lowering.scalars[result] = lowering.element(tensor, [], operation)


def _shaped(other: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """A scalar fill value as a tensor of the access's shape."""
    return Splat(shape, other.value, other.element) if isinstance(other, Splat) else other


def store(lowering: Lowering, operation: Operation) -> None:
    op = Store(operation)
    access = access_of(lowering, op)
    if lowering.checks is not None:
        lowering.checks.structured(operation, access)
    value = lowering.tensor(op.value)
    inputs = [value] if access.mask is None else [value, access.mask]
    if ordered.is_ordered(operation):
        ordered.store(lowering, operation, value, inputs, access.pointer, access.lanes_in_bounds)
        return

    targets = {} if lowering.fused is None else lowering.fused.targets
    inputs += targets
    rows = row_prefetch.ahead(lowering, operation, access.shape, inputs)

    def body(evaluation: Evaluation, point: Point) -> None:
        element = evaluation.at(value, point)
        following = [evaluation.at(tensor, point) for tensor in targets]
        access.write(evaluation, point, element)
        row_prefetch.prefetch(evaluation, point, rows)
        for buffer, carried in zip(targets.values(), following, strict=True):
            buffer.write(lowering.builder, point, carried)

    def past_the_caches(point: Point) -> Value:
        return non_temporal.condition(lowering, access, point)

    streamed = past_the_caches if non_temporal.suits(lowering, operation, access, inputs) else None

    def emit() -> None:
        lowering.tile(
            operation, access.shape, inputs, body, written=access, everywhere=bool(targets), streamed=streamed
        )

    def in_order() -> list[Value]:
        store_in_order(lowering, operation, access.base, access.shape, inputs, emit, access)
        return []

    if (stored := lowering.part(EarlyStores).get(operation)) is None:
        in_order()
    else:
        lowering.builder.if_else(stored, lambda: [], in_order)
    for tensor, buffer in targets.items():
        lowering.hold(tensor, buffer)


def _explicit(
    lowering: Lowering, op: GatherOp[Def] | Scatter[Def]
) -> tuple[Value, Tensor, Tensor | None, str]:
    """Base, offsets, mask, and the type in whose size offsets count."""
    unit = "i8" if op.byte_offsets else types.storage(op.tile.type.element)
    mask = None if op.mask is None else lowering.tensor(op.mask)
    return lowering.scalar(op.base), lowering.tensor(op.offsets), mask, unit


def gather(lowering: Lowering, operation: Operation) -> None:
    op = GatherOp(operation)
    result = op.result
    base, offsets, mask, unit = _explicit(lowering, op)
    other = _shaped(None if op.other is None else lowering.tensor(op.other), offsets.shape)
    if lowering.checks is not None:
        lowering.checks.explicit(operation, base, offsets, unit, result.type.element, mask)
    place = partial(lowering.place_of, operation)
    tensor = Gather(base, offsets, result.type.element, mask, other, unit=unit, place=place)
    if ordered.is_ordered(operation):
        ordered.load(lowering, operation, tensor)
    elif result.type.is_tensor:
        lowering.define(result, tensor)
    else:
        lowering.scalars[result] = lowering.element(tensor, [], operation)


def scatter(lowering: Lowering, operation: Operation) -> None:
    op = Scatter(operation)
    base, offsets, mask, unit = _explicit(lowering, op)
    value = lowering.tensor(op.value)
    inputs = [value, offsets] + ([mask] if mask is not None else [])
    if lowering.checks is not None:
        lowering.checks.explicit(operation, base, offsets, unit, op.value.type.element, mask)
    if ordered.is_ordered(operation):
        target = Gather(base, offsets, op.value.type.element, mask, None, unit=unit)
        ordered.store(lowering, operation, value, inputs, target.pointer, target.wanted)
        return

    def body(evaluation: Evaluation, point: Point) -> None:
        scatter_explicit(evaluation, point, base, offsets, evaluation.at(value, point), mask, unit)

    def emit() -> None:
        lowering.tile(operation, offsets.shape, inputs, body)

    store_in_order(lowering, operation, base, offsets.shape, inputs, emit)


def getelementptr(lowering: Lowering, operation: Operation) -> None:
    """Scalar pointer arithmetic: a base and one i64 index, which upstream passes may have turned into an attribute."""
    base, *indices = (lowering.scalar(operand) for operand in operation.operands)
    index = indices[0] if indices else lowering.builder.i64(operation.integers("rawConstantIndices")[0])
    element = str(operation.required("elem_type").value)
    pointer = lowering.builder.address(base, [index], element)
    lowering.scalars[operation.results[0]] = pointer
    origins = lowering.part(Origins)
    if base.name in origins:
        origins[pointer.name] = origins[base.name]

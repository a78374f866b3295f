"""Loads, stores, gathers and scatters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triton_porting_kit.compiler.dialect.operations import Gather as GatherOp
from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import (
    column_prefetch,
    non_temporal,
    ordered,
    row_prefetch,
    stream_prefetch,
    written_rows,
)
from triton_porting_kit.compiler.loops.memory.overlaps import store_in_order
from triton_porting_kit.compiler.loops.memory.writes import (
    Write,
    access_of,
    explicit_of,
    inputs_of,
    write_of,
)
from triton_porting_kit.compiler.loops.state import AccessChecks, EarlyStores, Origins
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Splat, Tensor


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
        columns = column_prefetch.distance(lowering, operation, access)
        tensor.ahead = stream_prefetch.distance(lowering, operation, access) if columns is None else columns
        lowering.define(result, tensor)
    else:
        lowering.scalars[result] = lowering.element(tensor, [], operation)


def _shaped(other: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """A scalar fill value as a tensor of the access's shape."""
    return Splat(shape, other.value, other.element) if isinstance(other, Splat) else other


def store(lowering: Lowering, operation: Operation) -> None:
    """Lower a store or scatter, and those that are done in its loop."""
    write = write_of(lowering, operation)
    if lowering.checks is not None:
        _check(lowering.checks, write)
    if ordered.is_ordered(operation):
        _store_ordered(lowering, write)
        return
    lowering.done.update(lowering.joined)
    for joined in lowering.joined:
        lowering.builder.comment(lowering.source_comments.of(joined))
    writes = [write, *(write_of(lowering, joined) for joined in lowering.joined)]
    for one in writes:
        written_rows.record(lowering, one)
    targets = {} if lowering.fused is None else lowering.fused.targets

    def one_by_one() -> None:
        for one in writes:
            _emit(lowering, [one], {}, rare=True)

    def in_order() -> list[Value]:
        store_in_order(
            lowering,
            writes,
            [*inputs_of(writes), *targets],
            lambda rare: _emit(lowering, writes, targets, rare=rare),
            one_by_one,
        )
        return []

    if (stored := lowering.part(EarlyStores).get(operation)) is None:
        in_order()
    else:
        lowering.builder.if_else(stored, lambda: [], in_order)
    for tensor, buffer in targets.items():
        lowering.hold(tensor, buffer)


def _check(checks: AccessChecks, write: Write) -> None:
    if write.access is not None:
        checks.structured(write.operation, write.access)
    elif write.offsets is not None:
        element = write.value.element
        checks.explicit(write.operation, write.base, write.offsets, write.unit, element, write.mask)


def _store_ordered(lowering: Lowering, write: Write) -> None:
    target: Access | Gather
    if write.access is not None:
        target, wanted = write.access, write.access.lanes_in_bounds
    else:
        assert write.offsets is not None
        target = Gather(write.base, write.offsets, write.value.element, write.mask, None, unit=write.unit)
        wanted = target.wanted
    ordered.store(lowering, write.operation, write.value, write.inputs, target.pointer, wanted)


def _emit(
    lowering: Lowering, writes: Sequence[Write], targets: Mapping[Tensor, Buffer], *, rare: bool
) -> None:
    """Emit one loop for `writes`, and for the loop-carried values of `targets`. `rare`: it seldom runs."""
    operation, shape, inputs = writes[0].operation, writes[0].shape, [*inputs_of(writes), *targets]
    accesses = [write.access for write in writes if write.access is not None]
    structured = len(accesses) == len(writes)
    rows = row_prefetch.ahead(lowering, operation, shape, inputs, writes) if structured else []

    def body(evaluation: Evaluation, point: Point) -> None:
        elements = [evaluation.at(write.value, point) for write in writes]
        following = [evaluation.at(tensor, point) for tensor in targets]
        for write, element in zip(writes, elements, strict=True):
            with lowering.place_of(write.operation):
                write.emit(evaluation, point, element)
        row_prefetch.prefetch(evaluation, point, rows)
        for buffer, carried in zip(targets.values(), following, strict=True):
            buffer.write(lowering.builder, point, carried)

    streams = None
    # What was not stored early is a tile at an edge, one of few.
    if structured and not rare and operation not in lowering.part(EarlyStores):
        streams = non_temporal.streams(lowering, operation, writes, inputs)
    lowering.tile(
        operation,
        shape,
        inputs,
        body,
        written=accesses if structured else [],
        everywhere=bool(targets),
        streams=streams,
    )


def gather(lowering: Lowering, operation: Operation) -> None:
    op = GatherOp(operation)
    result = op.result
    base, offsets, mask, unit = explicit_of(lowering, op)
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

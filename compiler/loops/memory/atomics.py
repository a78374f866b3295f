"""Atomic operations, one element after the other; while no other thread updates memory, without locks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triton_porting_kit.compiler.dialect.operations import Atomic, AtomicCas, AtomicRmw
from triton_porting_kit.compiler.loops.arithmetic.elementwise import narrow, widen
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import exclusive
from triton_porting_kit.compiler.loops.memory.ordered import ORDERING
from triton_porting_kit.compiler.loops.memory.overlaps import lies_apart
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import zero
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor

_FAILURE_ORDERING = {
    "monotonic": "monotonic",
    "acquire": "acquire",
    "release": "monotonic",
    "acq_rel": "acquire",
}

_KINDS = {
    "add": "add", "fadd": "fadd", "max": "max", "umax": "umax", "min": "min", "umin": "umin",
    "and": "_and", "or": "_or", "xor": "_xor", "exch": "xchg",
}  # fmt: skip


def read_modify_write(lowering: Lowering, operation: Operation) -> None:
    """tpk.atomic_rmw. Masked-off lanes touch no memory and return 0."""
    op = AtomicRmw(operation)
    builder = lowering.builder
    ordering = ORDERING[op.sem]
    kind = _KINDS[op.kind]
    element = op.value.type.element

    def perform(pointer: Value, values: list[Value]) -> Value:
        (operand,) = values
        if kind == "fadd" and element in types.NARROW_FLOATS:
            return _add_in_loop(builder, pointer, operand, element, ordering)
        name = f"f{kind}" if kind in ("max", "min") and types.is_float(element) else kind
        text = f"llvm.atomicrmw {name} {pointer.name}, {operand.name} {ordering} : !llvm.ptr, {operand.type}"
        result = builder.effect(text, operand.type)
        assert result is not None
        return result

    alone = exclusive.update_of(lowering, op)
    each(lowering, op, operation, [op.value], op.mask, perform, alone)


def _add_in_loop(builder: LoopBuilder, pointer: Value, term: Value, element: str, ordering: str) -> Value:
    """Addition of a 16-bit float by a compare-and-swap loop on its bits.

    LLVM's own expansion compares a value that went through a floating-point register. If that flushes denormals, the
    comparison never succeeds and the loop never ends.
    """
    stored = types.storage(element)
    size = types.byte_size(element)
    start = builder.effect(
        f"llvm.load {pointer.name} atomic monotonic {{alignment = {size} : i64}} : !llvm.ptr -> {stored}",
        stored,
    )
    assert start is not None
    builder.open()
    expected = builder.fresh(stored)
    total = builder.binary("arith.addf", widen(builder, expected, element), widen(builder, term, element))
    found, done = _swap(builder, pointer, expected, narrow(builder, total, element), ordering)
    again = builder.binary("arith.xori", done, builder.constant(1, "i1"))
    builder.line(f"scf.condition({again.name}) {found.name} : {stored}")
    lines = builder.close()
    builder.open()
    seen = builder.fresh(stored)
    builder.line(f"scf.yield {seen.name} : {stored}")
    lines += ["} do {", f"^bb0({seen.name}: {stored}):", *builder.close()]
    header = f"scf.while ({expected.name} = {start.name}) : ({stored}) -> {stored} {{"
    return builder.region_operation(header, [stored], lines)[0]


def _swap(
    builder: LoopBuilder, pointer: Value, expected: Value, desired: Value, ordering: str
) -> tuple[Value, Value]:
    """Compare and swap integers. Returns the value found, and i1: whether it was the expected one."""
    type = expected.type
    struct = f"!llvm.struct<({type}, i1)>"
    pair = builder.effect(
        f"llvm.cmpxchg {pointer.name}, {expected.name}, {desired.name} {ordering} {_FAILURE_ORDERING[ordering]} : "
        f"!llvm.ptr, {type}",
        struct,
    )
    assert pair is not None
    found = builder.pure(f"llvm.extractvalue {pair.name}[0] : {struct}", type, (pair,))
    return found, builder.pure(f"llvm.extractvalue {pair.name}[1] : {struct}", "i1", (pair,))


def compare_and_swap(lowering: Lowering, operation: Operation) -> None:
    """tpk.atomic_cas: bitwise comparison, also for floating-point values."""
    op = AtomicCas(operation)
    ordering = ORDERING[op.sem]
    builder = lowering.builder

    def perform(pointer: Value, values: list[Value]) -> Value:
        element = values[0].type
        bits = f"i{types.BITS[element]}"
        old, new = (builder.cast("arith.bitcast", v, bits) if v.type != bits else v for v in values)
        found, _ = _swap(builder, pointer, old, new, ordering)
        return builder.cast("arith.bitcast", found, element) if element != bits else found

    each(lowering, op, operation, [op.compare, op.value], None, perform)


def each(
    lowering: Lowering,
    op: Atomic[Def],
    operation: Operation,
    values: list[Def],
    mask: Def | None,
    perform: Callable[[Value, list[Value]], Value],
    alone: exclusive.Update | None = None,
) -> None:
    """Call `perform` for every element that the mask sets, with its address and the elements of `values`.

    `alone` does the same in calls of the kernel during which no other thread updates memory.
    """
    builder = lowering.builder
    result = op.result
    element = result.type.element
    unit = "i8" if op.byte_offsets else types.storage(values[0].type.element)
    tensors = [lowering.tensor(d) for d in (op.offsets, *values)] + ([lowering.tensor(mask)] if mask else [])
    start = lowering.scalar(op.base)
    apart = None
    if alone is not None and op.sem == "relaxed":
        apart = lies_apart(lowering, start, tensors)
    if apart is None:
        _settle(lowering, operation, tensors)
    if lowering.checks is not None:
        wanted_lanes = tensors[-1] if mask else None
        lowering.checks.explicit(operation, start, tensors[0], unit, values[0].type.element, wanted_lanes)

    def one(perform: Callable[[Value, list[Value]], Value], evaluation: Evaluation, point: Point) -> Value:
        offset = builder.cast("arith.extsi", evaluation.at(tensors[0], point), "i64")
        pointer = builder.address(start, [offset], unit)
        arguments = [evaluation.at(tensor, point) for tensor in tensors[1 : 1 + len(values)]]
        if mask is None:
            return perform(pointer, arguments)
        wanted = evaluation.at(tensors[-1], point)
        nothing = zero(builder, element)
        return builder.if_else(wanted, lambda: [perform(pointer, arguments)], lambda: [nothing])[0]

    stripes = lowering.part(exclusive.Exclusive).stripes
    if stripes is not None and (alone is None or apart is not None):
        perform = stripes.guarded(perform)  # this may be the code of a call that takes locks
    if result.type.shape is None:
        builder.forget_reads()
        lowering.scalars[result] = one(perform, Evaluation(builder, frozenset(), {}), Point((), -1, 1))
        builder.forget_reads()
        return
    buffer = lowering.scratch.allocate(result.type.shape, element) if result.users else None

    def locked() -> list[Value]:
        def body(evaluation: Evaluation, point: Point) -> None:
            old = one(perform, evaluation, point)
            if buffer is not None:
                buffer.write(builder, point, old)

        if apart is not None:
            _settle(lowering, operation, tensors)
        lowering.tile(operation, tensors[0].shape, tensors, body, lanes=1)
        return []

    if alone is None:
        locked()
    else:
        condition = alone.condition if apart is None else builder.logical_and(apart, alone.condition)
        tile = exclusive.Tile(start, tensors[0], unit, tensors[1], tensors[2] if mask else None, buffer)
        one_alone = partial(one, alone.scalar)
        builder.if_else(
            condition, lambda: exclusive.update_tile(lowering, operation, tile, alone, one_alone), locked
        )
    if buffer is not None:
        lowering.define(result, buffer)


def _settle(lowering: Lowering, operation: Operation, tensors: list[Tensor]) -> None:
    """Read everything first: an atomic operation may change what a load reads."""
    for tensor in tensors:
        lowering.settle_reads(tensor, operation)

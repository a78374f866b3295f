"""Volatile and atomic loads and stores: element by element, each exactly once and in program order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.lane_memory import zero
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor

ORDERING = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
"""LLVM's names for Triton's memory orders."""

Locate = Callable[[Evaluation, Point], Value]
Wanted = Callable[[Evaluation, Point], Value | None]


def is_ordered(operation: Operation) -> bool:
    """Whether an access must not be moved, merged or removed."""
    return operation.is_volatile


def load(lowering: Lowering, operation: Operation, tensor: Load | Gather) -> None:
    """A load for which `is_ordered` holds."""
    builder = lowering.builder
    result = operation.results[0]
    stored = types.storage(tensor.element)

    def one(evaluation: Evaluation, point: Point) -> Value:
        pointer = tensor.pointer(evaluation, point)
        wanted = tensor.wanted(evaluation, point)
        fill = zero(builder, tensor.element)
        if tensor.other is not None:
            fill = evaluation.at(tensor.other, point)

        def read() -> list[Value]:
            text = f"llvm.load volatile {pointer.name}{suffix(operation, stored)} : !llvm.ptr -> {stored}"
            value = builder.effect(text, stored)
            assert value is not None
            return [value]

        if wanted is None:
            return read()[0]
        return builder.if_else(wanted, read, lambda: [fill])[0]

    builder.forget_reads()
    if result.type.shape is None:
        lowering.scalars[result] = one(Evaluation(builder, frozenset(), {}), Point((), -1, 1))
    else:
        buffer = lowering.scratch.allocate(result.type.shape, result.type.element)
        lowering.tile(
            operation,
            buffer.shape,
            tensor.operands,
            lambda evaluation, point: buffer.write(builder, point, one(evaluation, point)),
            lanes=1,
        )
        lowering.define(result, buffer)
    builder.forget_reads()


def store(
    lowering: Lowering,
    operation: Operation,
    value: Tensor,
    inputs: Sequence[Tensor],
    locate: Locate,
    wanted: Wanted,
) -> None:
    """A store for which `is_ordered` holds. `locate` and `wanted` give the address and the mask of one element."""
    builder = lowering.builder
    for tensor in inputs:
        lowering.settle_reads(tensor, operation)

    def body(evaluation: Evaluation, point: Point) -> None:
        element = evaluation.at(value, point)
        pointer = locate(evaluation, point)
        mask = wanted(evaluation, point)

        def write() -> list[Value]:
            order = suffix(operation, element.type)
            builder.effect(
                f"llvm.store volatile {element.name}, {pointer.name}{order} : {element.type}, !llvm.ptr"
            )
            return []

        if mask is None:
            write()
        else:
            builder.if_else(mask, write)

    lowering.tile(operation, value.shape, inputs, body, lanes=1)


def suffix(operation: Operation, element: str) -> str:
    """The memory order, if the operation has one, and the alignment."""
    order = ORDERING.get(operation.string("sem"))
    atomic = f" atomic {order}" if order else ""
    return f"{atomic} {{alignment = {types.byte_size(element)} : i64}}"

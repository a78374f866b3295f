"""The element path: the core accesses global memory itself, one element after the other."""

from __future__ import annotations

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.abi.npu import ATOMICS, TYPES
from triton_porting_kit.compiler.dialect.npu import (
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuElementLoad,
    NpuElementStore,
)
from triton_porting_kit.compiler.dialect.operations import SEMANTICS
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import atomics, polls
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import to_storage, zero
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor

from .bits import from_bits, line_of, to_bits
from .core import call, result_of


def _place(lowering: Lowering, base: Value, offset: Value, unit: int) -> Value:
    """The address of an element as i64."""
    builder = lowering.builder
    wide = builder.cast("arith.extsi", offset, "i64")
    start = builder.cast("llvm.ptrtoint", base, "i64")
    return builder.add(start, builder.mul(wide, builder.i64(unit)))


def _load_one(lowering: Lowering, operation: Operation, address: Value, element: str) -> Value:
    builder = lowering.builder
    size = builder.constant(types.byte_size(element), "i32")
    bits = result_of(lowering, "element_load", [address, size, line_of(builder, operation)])
    return from_bits(builder, bits, element)


def load(lowering: Lowering, operation: Operation) -> None:
    """Each element exactly once and in order; masked-off ones are not touched."""
    op = NpuElementLoad(operation)
    builder = lowering.builder
    result = op.result
    element = result.type.element
    base, offsets = lowering.scalar(op.base), lowering.tensor(op.offsets)
    mask = None if op.mask is None else lowering.tensor(op.mask)
    other = None if op.other is None else lowering.tensor(op.other)
    unit = 1 if op.byte_offsets else types.byte_size(element)

    def one(evaluation: Evaluation, point: Point) -> Value:
        address = _place(lowering, base, evaluation.at(offsets, point), unit)
        if mask is None:
            return _load_one(lowering, operation, address, element)
        fill = zero(builder, element) if other is None else _at(evaluation, other, point)
        wanted = _at(evaluation, mask, point)
        read = builder.if_else(
            wanted, lambda: [_load_one(lowering, operation, address, element)], lambda: [fill]
        )
        return read[0]

    if result.type.shape is None:
        builder.forget_reads()
        lowering.scalars[result] = one(Evaluation(builder, frozenset(), {}), Point((), -1, 1))
        builder.forget_reads()
        return
    buffer = lowering.scratch.allocate(result.type.shape, element)
    inputs = [tensor for tensor in (offsets, mask, other) if tensor is not None]
    lowering.tile(
        operation,
        buffer.shape,
        [tensor for tensor in inputs if tensor.shape == buffer.shape],
        lambda evaluation, point: buffer.write(builder, point, one(evaluation, point)),
        lanes=1,
    )
    lowering.define(result, buffer)
    builder.forget_reads()


def _at(evaluation: Evaluation, tensor: Tensor, point: Point) -> Value:
    """An element of a tensor, or a scalar."""
    return evaluation.at(tensor, point if tensor.shape else Point((), -1, 1))


def store(lowering: Lowering, operation: Operation) -> None:
    """Each element exactly once and in order."""
    op = NpuElementStore(operation)
    builder = lowering.builder
    base, offsets, value = lowering.scalar(op.base), lowering.tensor(op.offsets), lowering.tensor(op.value)
    mask = None if op.mask is None else lowering.tensor(op.mask)
    size = types.byte_size(value.element)
    unit = 1 if op.byte_offsets else size

    def body(evaluation: Evaluation, point: Point) -> None:
        element = to_storage(builder, evaluation.at(value, point))
        address = _place(lowering, base, evaluation.at(offsets, point), unit)

        def put() -> list[Value]:
            arguments = [address, to_bits(builder, element), builder.constant(size, "i32")]
            call(lowering, "element_store", [*arguments, line_of(builder, operation)])
            return []

        if mask is None:
            put()
        else:
            builder.if_else(_at(evaluation, mask, point), put)

    inputs = [tensor for tensor in (value, offsets, mask) if tensor is not None]
    lowering.tile(
        operation, value.shape, [tensor for tensor in inputs if tensor.shape == value.shape], body, lanes=1
    )


_KINDS = {
    "add": "add", "fadd": "add", "max": "max", "umax": "max", "min": "min", "umin": "min",
    "and": "and", "or": "or", "xor": "xor", "exch": "exchange",
}  # fmt: skip


def _type_number(element: str, *, unsigned: bool = False, bits_only: bool = False) -> int:
    if bits_only or element not in OF_MLIR or element == "i1":
        return TYPES[f"u{types.BITS[element]}"]
    if unsigned:
        return TYPES[f"u{types.BITS[element]}"]
    return TYPES[OF_MLIR[element].name]


def _atomic(
    lowering: Lowering,
    operation: Operation,
    kind: str,
    type: int,
    address: Value,
    values: list[Value],
    sem: str,
) -> Value:
    """`values` are the operand, and for a compare-and-swap before it the value to compare with."""
    builder = lowering.builder
    bits = [to_bits(builder, to_storage(builder, value)) for value in values]
    number = builder.cast("llvm.ptrtoint", address, "i64")
    arguments = [
        builder.constant(ATOMICS[kind], "i32"),
        builder.constant(type, "i32"),
        number,
        bits[-1],
        bits[0] if len(bits) > 1 else builder.i64(0),
        builder.constant(SEMANTICS.index(sem), "i32"),
        line_of(builder, operation),
    ]
    return result_of(lowering, "atomic", arguments)


def read_modify_write(lowering: Lowering, operation: Operation) -> None:
    op = NpuAtomicRmw(operation)
    element = op.value.type.element
    kind = _KINDS[op.kind]
    type = _type_number(
        element, unsigned=op.kind.startswith("um"), bits_only=kind in ("exchange", "and", "or", "xor")
    )

    def perform(pointer: Value, values: list[Value]) -> Value:
        found = _atomic(lowering, operation, kind, type, pointer, values, op.sem)
        return from_bits(lowering.builder, found, element)

    atomics.each(lowering, op, operation, [op.value], op.mask, perform)


def compare_and_swap(lowering: Lowering, operation: Operation) -> None:
    op = NpuAtomicCas(operation)
    element = op.value.type.element
    type = _type_number(element, bits_only=True)

    def perform(pointer: Value, values: list[Value]) -> Value:
        found = _atomic(lowering, operation, "compare", type, pointer, values, op.sem)
        return from_bits(lowering.builder, found, element)

    atomics.each(lowering, op, operation, [op.compare, op.value], None, perform)


def poll(lowering: Lowering, operation: Operation) -> None:
    """Poll element by element, each read at least once."""

    def read(pointer: Value, stored: str) -> Value:
        address = lowering.builder.cast("llvm.ptrtoint", pointer, "i64")
        return _load_one(lowering, operation, address, stored)

    polls.poll_by(lowering, operation, NpuAtomicPoll(operation), read)

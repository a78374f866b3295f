"""Buffers, and the commands of DMA channels and of the matrix unit."""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.abi.npu import FLAGS, TRANSFER, TRANSFER_BYTES, TYPES, UNITS
from triton_porting_kit.compiler.dialect.npu import (
    NpuAnnounce,
    NpuBuffer,
    NpuDma,
    NpuGather,
    NpuIndexed,
    NpuMatrix,
    NpuOrder,
    NpuRead,
    NpuScatter,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.beside import Beside
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor, row_major

from .bits import line_of, to_bits
from .core import Core, call, result_of, unit_number


def buffer(lowering: Lowering, operation: Operation) -> None:
    """An address in the window."""
    op = NpuBuffer(operation)
    core, builder = lowering.part(Core), lowering.builder
    if op.address < 0:
        raise operation.unsupported(
            "the buffer has no address", "give what `tpk compile --emit placed` prints"
        )
    place = builder.i64(core.bases[op.memory] + op.address)
    lowering.scalars[op.result] = builder.address(core.window, [place], "i8")


def _held(lowering: Lowering, pointer: Def, value: Def) -> Buffer:
    held = Buffer(value.type.shape or (), value.type.element, lowering.scalar(pointer))
    held.on_chip = True
    held.shared = True  # the plan may give the bytes to another buffer behind the last use
    return held


def read(lowering: Lowering, operation: Operation) -> None:
    op = NpuRead(operation)
    held = _held(lowering, op.buffer, op.result)
    if op.result.type.is_tensor:
        lowering.define(op.result, held)
    else:
        lowering.scalars[op.result] = lowering.element(held, [], operation)


def write(lowering: Lowering, operation: Operation) -> None:
    op = NpuWrite(operation)
    held = _held(lowering, op.buffer, op.value)
    size = types.byte_size(held.element)
    for extent in held.shape:
        size *= extent
    _announce(lowering, operation, "writes", held.pointer, size)
    tensor = lowering.tensor(op.value)
    if lowering.fused is not None:
        _with_carried(lowering, operation, held, tensor, lowering.fused.targets)
    elif not lowering.part(Beside).put_off(lowering, operation, tensor, held):
        lowering.fill(operation, held, tensor)
    lowering.builder.forget_reads()


def _with_carried(
    lowering: Lowering, operation: Operation, held: Buffer, tensor: Tensor, carried: dict[Tensor, Buffer]
) -> None:
    """Write a tensor, and values that the loop around carries, in one loop."""

    def body(evaluation: Evaluation, point: Point) -> None:
        values = [evaluation.at(each, point) for each in (tensor, *carried)]
        for buffer, value in zip((held, *carried.values()), values, strict=True):
            buffer.write(lowering.builder, point, value)

    lowering.tile(operation, held.shape, [tensor, *carried], body)
    for each, buffer in carried.items():
        lowering.hold(each, buffer)


def announce(lowering: Lowering, operation: Operation) -> None:
    op = NpuAnnounce(operation)
    name = "writes" if op.writes else "reads"
    _announce(lowering, operation, name, lowering.scalar(op.buffer), op.bytes)


def _announce(lowering: Lowering, operation: Operation, name: str, pointer: Value, size: int) -> None:
    builder = lowering.builder
    call(lowering, name, [_number(lowering, pointer), builder.i64(size), line_of(builder, operation)])


def _number(lowering: Lowering, pointer: Value) -> Value:
    return lowering.builder.cast("llvm.ptrtoint", pointer, "i64")


# --- transfers ---------------------------------------------------------------------------------------


def dma(lowering: Lowering, operation: Operation) -> None:
    """Complete the descriptor, and start the transfer, which reads it at once."""
    op = NpuDma(operation)
    builder = lowering.builder
    element_bytes, shape = types.byte_size(op.element), op.shape
    size = builder.i64(element_bytes)

    def in_bytes(strides: Sequence[Def]) -> list[Value]:
        own = [lowering.scalar(stride) for stride in strides] or list(map(builder.i64, row_major(shape)))
        return [builder.mul(stride, size) for stride in own]

    extents = list(map(builder.i64, shape))
    zero = builder.i64(0)
    fields: dict[str, list[Value]] = {
        "target": [_number(lowering, lowering.scalar(op.target))],
        "source": [_number(lowering, lowering.scalar(op.source))],
        "target_strides": in_bytes(op.target_strides),
        "source_strides": in_bytes(op.source_strides),
        "sizes": extents,
        "low": [lowering.scalar(low) for low in op.low] or [zero] * len(extents),
        "high": [lowering.scalar(high) for high in op.high] or extents,
        "fill": [zero if op.fill is None else to_bits(builder, lowering.scalar(op.fill))],
        "keeps": [zero if op.keeps is None else lowering.scalar(op.keeps)],
        "element_bytes": [builder.constant(element_bytes, "i32")],
        "dimensions": [builder.constant(len(extents), "i32")],
    }
    descriptor = _described(lowering, fields)
    channel = builder.constant(unit_number(op.unit) - UNITS["dma"], "i32")
    token = result_of(lowering, "dma", [channel, descriptor, line_of(builder, operation)])
    lowering.scalars[op.result] = token


def _described(lowering: Lowering, fields: dict[str, list[Value]]) -> Value:
    """A descriptor with these values. What does not change in the function is set once, at its start, in a descriptor
    that transfers share which have the same of it; the rest, and addresses, are set here.
    """
    builder = lowering.builder
    fixed: list[tuple[int, Value]] = []
    others: list[tuple[int, Value]] = []
    offset = 0
    for name, kind, count in TRANSFER:
        step = 8 if kind == "int64_t" else 4
        for index, value in enumerate(fields[name]):
            once = value.constant is not None or (value.level == 0 and name not in ("target", "source"))
            (fixed if once else others).append((offset + step * index, value))
        offset += step * count
    known = lowering.part(Core).descriptors
    key = tuple(fixed)
    descriptor = known.get(key)
    if descriptor is None:
        descriptor = known[key] = builder.fresh("!llvm.ptr", level=0)
        size = builder.i64(TRANSFER_BYTES).name
        builder.line(
            f"{descriptor.name} = llvm.alloca {size} x i8 {{alignment = 64 : i64}} : (i64) -> !llvm.ptr",
            level=0,
        )
        _set(builder, descriptor, fixed, level=0)
    _set(builder, descriptor, others, level=None)
    return descriptor


def _set(builder: LoopBuilder, descriptor: Value, values: list[tuple[int, Value]], level: int | None) -> None:
    for offset, value in values:
        place = builder.address(descriptor, [builder.i64(offset)], "i8")
        builder.line(f"llvm.store {value.name}, {place.name} : {value.type}, !llvm.ptr", level=level)


def gather(lowering: Lowering, operation: Operation) -> None:
    op = NpuGather(operation)
    builder = lowering.builder
    fill = builder.i64(0) if op.fill is None else to_bits(builder, lowering.scalar(op.fill))
    _indexed(lowering, operation, op, "gather", [fill])


def scatter(lowering: Lowering, operation: Operation) -> None:
    _indexed(lowering, operation, NpuScatter(operation), "scatter", [])


def _indexed(
    lowering: Lowering, operation: Operation, op: NpuIndexed[Def], name: str, more: list[Value]
) -> None:
    builder = lowering.builder
    size = types.byte_size(op.element)
    arguments = [
        builder.constant(unit_number(op.unit) - UNITS["dma"], "i32"),
        _number(lowering, lowering.scalar(op.buffer)),
        _number(lowering, lowering.scalar(op.base)),
        _number(lowering, lowering.scalar(op.offsets)),
        builder.i64(0) if op.mask is None else _number(lowering, lowering.scalar(op.mask)),
        builder.i64(op.count),
        builder.constant(size, "i32"),
        builder.constant(op.offset_bytes, "i32"),
        builder.constant(1 if op.byte_offsets else size, "i32"),
        *more,
        line_of(builder, operation),
    ]
    lowering.scalars[op.result] = result_of(lowering, name, arguments)


# --- the matrix unit ---------------------------------------------------------------------------------


def matrix_type(element: str) -> int:
    """The number of an element type of MLIR's for the matrix unit."""
    return TYPES[OF_MLIR[element].name]


def matrix(lowering: Lowering, operation: Operation) -> None:
    op = NpuMatrix(operation)
    builder = lowering.builder
    strides = zip((op.c_stride, op.a_stride, op.b_stride), (op.c_type, op.a_type, op.b_type), strict=True)
    fixed = FLAGS["transposed_a"] * op.transpose_a | FLAGS["transposed_b"] * op.transpose_b
    accumulate = builder.cast("arith.extui", lowering.scalar(op.accumulate), "i32")
    arguments = [
        *(_number(lowering, lowering.scalar(pointer)) for pointer in (op.c, op.a, op.b)),
        *(builder.constant(extent, "i32") for extent in (op.m, op.n, op.k)),
        *(builder.i64(stride * types.byte_size(element)) for stride, element in strides),
        *(builder.constant(matrix_type(element), "i32") for element in (op.a_type, op.b_type, op.c_type)),
        builder.binary("arith.ori", accumulate, builder.constant(fixed, "i32")),
        line_of(builder, operation),
    ]
    assert FLAGS["accumulate"] == 1
    lowering.scalars[op.result] = result_of(lowering, "matrix", arguments)


# --- flags between units -----------------------------------------------------------------------------


def wait(lowering: Lowering, operation: Operation) -> None:
    op = NpuWait(operation)
    unit = lowering.builder.constant(unit_number(op.unit), "i32")
    call(lowering, "wait", [unit, lowering.scalar(op.token)])


def order(lowering: Lowering, operation: Operation) -> None:
    op = NpuOrder(operation)
    unit, other = (lowering.builder.constant(unit_number(name), "i32") for name in (op.unit, op.other))
    call(lowering, "order", [unit, other, lowering.scalar(op.token)])

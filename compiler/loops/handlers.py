"""The lowering of each operation of the structured form. `HANDLERS` is the dispatch table."""

from __future__ import annotations

import re
import struct
from typing import Any

from triton_porting_kit.compiler.dialect import TRAITS, Op, npu, operations
from triton_porting_kit.compiler.loops.arithmetic import minifloats
from triton_porting_kit.compiler.loops.arithmetic.elementwise import CMPI, OPERATIONS, Entry
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory import accesses
from triton_porting_kit.compiler.loops.state import Handler
from triton_porting_kit.compiler.loops.tiles.lane_memory import zero
from triton_porting_kit.compiler.loops.tiles.prefix_masks import prefix_mask
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Range,
    Reindexed,
    Splat,
    Tensor,
    unit_reshape,
)
from triton_porting_kit.on_demand import function


def _later(module: str, name: str) -> Handler:
    """A handler below `compiler.loops`, whose module few kernels need."""
    return function(f"compiler.loops.{module}", name)


_exchange = function("compiler.loops.shapes.hypercubes", "exchange")
_spread = function("compiler.loops.shapes.hypercubes", "spread")

_BELOW = ("slt", "sge", "ult", "uge")
"""Comparisons that change where the left operand reaches the right one."""


def _elementwise(entry: Entry) -> Handler:
    def handle(lowering: Lowering, operation: Operation) -> None:
        if not operation.results[0].type.is_tensor:
            values = [lowering.scalar(operand) for operand in operation.operands]
            results = entry.emit(lowering.builder, lowering.mode, operation, values)
            for definition, value in zip(operation.results, results, strict=True):
                lowering.scalars[definition] = value
            return
        operands = [lowering.tensor(operand) for operand in operation.operands]
        for index, definition in enumerate(operation.results):

            def compute(builder: LoopBuilder, values: list[Value], index: int = index) -> Value:
                return entry.emit(builder, lowering.mode, operation, values)[index]

            shape = definition.type.shape
            assert shape is not None
            scalars = [operand.value for operand in operands if isinstance(operand, Splat)]
            if len(scalars) == len(operands):
                value = compute(lowering.builder, scalars)
                lowering.define(definition, Splat(shape, value, definition.type.element))
            else:
                tensor: Tensor | None = None
                name = operation.name
                if name == "arith.cmpi":
                    predicate = CMPI[operation.integer("predicate")]
                    tensor = prefix_mask(predicate, shape, operands, compute)
                    name += " below" if predicate in _BELOW else ""
                if tensor is None:
                    tensor = Elementwise(shape, definition.type.element, operands, compute, entry.cost, name)
                lowering.define(definition, tensor)

    return handle


def _function(lowering: Lowering, operation: Operation) -> None:
    """A mathematical function, of a table that few kernels need."""
    from triton_porting_kit.compiler.loops.arithmetic import library

    _elementwise(library.OPERATIONS[operation.name])(lowering, operation)


def _exclusive_or(lowering: Lowering, operation: Operation) -> None:
    if not _exchange(lowering, operation):
        _elementwise(OPERATIONS[operation.name])(lowering, operation)


def _constant(lowering: Lowering, operation: Operation) -> None:
    definition = operation.results[0]
    attribute = operation.required("value")
    element = definition.type.element
    if definition.type.is_tensor:
        shape = definition.type.shape
        assert shape is not None
        if not attribute.is_splat:
            literal = _scalar_literal(str(attribute))
            if element in minifloats.FORMATS:  # LLVM has no type for these
                literal, stored = _byte_literal(literal, element), "i8"
            else:
                stored = element
            table = Buffer(shape, element, lowering.data.tensor(literal, shape, stored))
            table.shared = True  # the data is part of the object file
            lowering.define(definition, table)
            return
        literal = _scalar_literal(str(attribute))
        lowering.define(definition, Splat(shape, _scalar_constant(lowering, literal, element), element))
        return
    literal = str(attribute).partition(" : ")[0]
    lowering.scalars[definition] = _scalar_constant(lowering, literal, element)


def _scalar_literal(text: str) -> str:
    match = re.match(r"dense<(.*)> : ", text)
    assert match is not None, text
    return match.group(1)


def _scalar_constant(lowering: Lowering, literal: str, element: str) -> Value:
    if literal in ("true", "false"):
        return lowering.builder.constant(int(literal == "true"), "i1")
    if element in types.NARROW_FLOATS:
        return lowering.builder.constant(_pattern(literal, element), types.register(element))
    if element.startswith(("i", "u")):
        return lowering.builder.constant(int(literal, 0), element)
    if literal.startswith("0x"):
        number = _float_from_bits(int(literal, 16), element)
        return lowering.builder.constant(literal if number is None else number, element)
    return lowering.builder.constant(float(literal), element)


def _byte_literal(text: str, element: str) -> str:
    """The literal of a tensor of 8-bit floats, with each number replaced by its bit pattern."""
    if text.startswith('"'):  # all patterns in hexadecimal
        return text
    return re.sub(r"[^][, ]+", lambda number: str(_pattern(number[0], element)), text)


def _pattern(literal: str, element: str) -> int:
    """The bit pattern of a literal of a narrow float."""
    return int(literal, 16) if literal.startswith("0x") else _narrow_bits(float(literal), element)


def _float_from_bits(bits: int, element: str) -> float | None:
    """The number with a bit pattern; None for NaN, whose payload must not pass through Python."""
    formats = {"f32": ("<I", "<f"), "f64": ("<Q", "<d")}
    raw, number = formats[element]
    value = struct.unpack(number, struct.pack(raw, bits))[0]
    return None if value != value else value


def _narrow_bits(value: float, element: str) -> int:
    if element == "bf16":
        return bf16_bits(value)
    return f16_bits(value) if element == "f16" else minifloats.FORMATS[element].pattern(value)


def bf16_bits(value: float) -> int:
    """The bit pattern of the bfloat16 nearest to `value`."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def f16_bits(value: float) -> int:
    """The bit pattern of the half-precision number nearest to `value`, which must be in range."""
    bits: int = struct.unpack("<H", struct.pack("<e", value))[0]
    return bits


def _splat(lowering: Lowering, operation: Operation) -> None:
    definition = operation.results[0]
    assert definition.type.shape is not None
    value = lowering.scalar(operation.operands[0])
    lowering.define(definition, Splat(definition.type.shape, value, definition.type.element))


def _range(lowering: Lowering, operation: Operation) -> None:
    definition = operation.results[0]
    assert definition.type.shape is not None
    lowering.define(definition, Range(definition.type.shape[0], operations.Range(operation).start))


def _reshape(lowering: Lowering, operation: Operation) -> None:
    """expand_shape and collapse_shape: a change of indices, or another view of a row-major buffer."""
    definition = operation.results[0]
    source = lowering.tensor(operation.operands[0])
    shape = definition.type.shape
    assert shape is not None
    lowering.define(definition, reshaped(lowering, source, shape, operation))


def reshaped(lowering: Lowering, source: Tensor, shape: tuple[int, ...], operation: Operation) -> Tensor:
    """`source` with another shape and its elements in the same row-major order."""
    if isinstance(source, Splat):
        return Splat(shape, source.value, source.element)
    dimensions = unit_reshape(source.shape, shape)
    if dimensions is not None:
        return Reindexed(shape, source, dimensions)
    lowering.uses.end(source.definition, operation)
    return lowering.materialise(source, operation).reshaped(shape)


def _broadcast(lowering: Lowering, operation: Operation) -> None:
    definition = operation.results[0]
    shape = definition.type.shape
    assert shape is not None
    source = lowering.tensor(operation.operands[0])
    added = set(operation.integers("dimensions"))
    kept: list[int | None] = [d for d in range(len(shape)) if d not in added]
    few = _spread(lowering, shape, source, kept)
    lowering.define(definition, _reindexed(shape, source, kept) if few is None else few)


def _transpose(lowering: Lowering, operation: Operation) -> None:
    definition = operation.results[0]
    shape = definition.type.shape
    assert shape is not None
    permutation = operation.integers("permutation")
    source = lowering.tensor(operation.operands[0])
    dimensions: list[int | None] = [permutation.index(d) for d in range(len(shape))]
    lowering.define(definition, _reindexed(shape, source, dimensions))


def _reindexed(shape: tuple[int, ...], source: Tensor, dimensions: list[int | None]) -> Tensor:
    if isinstance(source, Splat):
        return Splat(shape, source.value, source.element)
    return Reindexed(shape, source, dimensions)


def _empty(lowering: Lowering, operation: Operation) -> None:
    """No code: it is only ever the destination of an operation that overwrites it."""


def _program_id(lowering: Lowering, operation: Operation) -> None:
    lowering.scalars[operation.results[0]] = lowering.grid.program_ids[operations.ProgramId(operation).axis]


def _num_programs(lowering: Lowering, operation: Operation) -> None:
    lowering.scalars[operation.results[0]] = lowering.grid.counts[operations.NumPrograms(operation).axis]


def _extract(lowering: Lowering, operation: Operation) -> None:
    """tensor.extract: one element, read in a tile loop of one point."""
    tensor = lowering.tensor(operation.operands[0])
    indices = [lowering.scalar(operand) for operand in operation.operands[1:]]
    lowering.scalars[operation.results[0]] = lowering.element(tensor, indices, operation)


def _poison(lowering: Lowering, operation: Operation) -> None:
    """Undefined values are zero: any value would do, and zero makes results reproducible.

    A scalar that is only stored stays undefined in LLVM, which may then drop the store.
    """
    definition = operation.results[0]
    if definition.type.shape is None:
        if all(_only_stores(user, definition) for user in definition.users):
            kind = types.register(definition.type.element)
            value = lowering.builder.pure(f"llvm.mlir.poison : {kind}", kind, ())
        else:
            value = _zero_of(lowering, definition)
        lowering.scalars[definition] = value
    else:
        value = _zero_of(lowering, definition)
        lowering.define(definition, Splat(definition.type.shape, value, definition.type.element))


def _only_stores(user: Operation, definition: Def) -> bool:
    store = operations.Store.dyn_cast(user)
    return store is not None and user.operands.index(definition) == len(user.operands) - 1


def _zero_of(lowering: Lowering, definition: Def) -> Value:
    return zero(lowering.builder, definition.type.element)


def _null(lowering: Lowering, operation: Operation) -> None:
    builder = lowering.builder
    lowering.scalars[operation.results[0]] = builder.pure("llvm.mlir.zero : !llvm.ptr", "!llvm.ptr", ())


def _scalar_cast(lowering: Lowering, operation: Operation) -> None:
    value = lowering.scalar(operation.operands[0])
    definition = operation.results[0]
    lowering.scalars[definition] = lowering.builder.cast(operation.name, value, definition.type.element)


def _nothing(lowering: Lowering, operation: Operation) -> None:
    """No code: the lowering of the enclosing region reads its terminator."""


_UPSTREAM: dict[str, Handler] = {
    "arith.constant": _constant,
    "arith.xori": _exclusive_or,
    "arith.index_cast": _scalar_cast,
    "arith.index_castui": _scalar_cast,
    "llvm.mlir.zero": _null,
    "llvm.inttoptr": _scalar_cast,
    "llvm.ptrtoint": _scalar_cast,
    "llvm.getelementptr": accesses.getelementptr,
    "tensor.splat": _splat,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.empty": _empty,
    "tensor.extract": _extract,
    "tensor.concat": _later("shapes.rearrange", "concat"),
    "linalg.broadcast": _broadcast,
    "linalg.transpose": _transpose,
    "linalg.matmul": _later("matmul.dots", "matmul"),
    "linalg.batch_matmul": _later("matmul.dots", "matmul"),
    "scf.for": _later("control.control_flow", "for_loop"),
    "scf.if": _later("control.control_flow", "if_else"),
    "scf.while": _later("control.control_flow", "while_loop"),
    **dict.fromkeys(("scf.yield", "scf.condition", "func.return"), _nothing),
    "ub.poison": _poison,
}

_DIALECT: dict[type[Op[Any]], Handler] = {
    operations.ProgramId: _program_id,
    operations.NumPrograms: _num_programs,
    operations.Range: _range,
    operations.Load: accesses.load,
    operations.Store: accesses.store,
    operations.Gather: accesses.gather,
    operations.Scatter: accesses.store,
    operations.AtomicRmw: _later("memory.atomics", "read_modify_write"),
    operations.AtomicCas: _later("memory.atomics", "compare_and_swap"),
    operations.AtomicPoll: _later("memory.polls", "poll"),
    operations.Reduce: _later("shapes.hypercubes", "reduce_or_halve"),
    operations.Scan: _later("reductions.scan", "scan"),
    operations.Map: _later("reductions.map", "map_elements"),
    operations.Yield: _nothing,
    operations.Join: _later("shapes.rearrange", "join"),
    operations.Split: _later("shapes.rearrange", "split"),
    operations.Unpack: _later("shapes.microscaling", "unpack"),
    operations.Repeat: _later("shapes.microscaling", "repeat"),
    operations.GatherAlong: _later("shapes.rearrange", "gather_along"),
    operations.Histogram: _later("shapes.rearrange", "histogram"),
    operations.Assert: _later("control.host_calls", "check"),
    operations.Print: _later("control.host_calls", "show"),
    npu.NpuBuffer: _later("npu.commands", "buffer"),
    npu.NpuRead: _later("npu.commands", "read"),
    npu.NpuWrite: _later("npu.commands", "write"),
    npu.NpuDma: _later("npu.commands", "dma"),
    npu.NpuGather: _later("npu.commands", "gather"),
    npu.NpuScatter: _later("npu.commands", "scatter"),
    npu.NpuMatrix: _later("npu.commands", "matrix"),
    npu.NpuWait: _later("npu.commands", "wait"),
    npu.NpuOrder: _later("npu.commands", "order"),
    npu.NpuAnnounce: _later("npu.commands", "announce"),
    npu.NpuPrograms: _later("npu.grid", "programs"),
    npu.NpuProgram: _later("npu.grid", "program"),
    npu.NpuElementLoad: _later("npu.elements", "load"),
    npu.NpuElementStore: _later("npu.elements", "store"),
    npu.NpuAtomicRmw: _later("npu.elements", "read_modify_write"),
    npu.NpuAtomicCas: _later("npu.elements", "compare_and_swap"),
    npu.NpuAtomicPoll: _later("npu.elements", "poll"),
}

HANDLERS: dict[str, Handler] = {
    **{name: _function for name in TRAITS if name.startswith("math.")},
    operations.Function.OPERATION_NAME: _function,
    **{name: _elementwise(entry) for name, entry in OPERATIONS.items()},
    **_UPSTREAM,
    **{cls.OPERATION_NAME: handler for cls, handler in _DIALECT.items()},
}
"""Handlers by operation name. Calls have none: `ir.program` inlines them."""

"""Ways to multiply: how the operands of a dot lie in scratch, and what one step of the inner loop computes.

Each way names the units that operands are packed in: `depth` of them along K, and `multiply_add` takes one unit
of A, in every lane, and a vector of units of B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value, vector_type
from triton_porting_kit.compiler.loops.elementwise import convert
from triton_porting_kit.compiler.loops.evaluation import Evaluation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.program import Operation
from triton_porting_kit.compiler.loops.tensors import Buffer, Elementwise, Point, Tensor
from triton_porting_kit.compiler.loops.tiles import tile_loop


class Product(ABC):
    """A way to multiply; `unit` is the element type that packed operands are read in."""

    unit: str

    @abstractmethod
    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        """A (..., M, K) in scratch as (..., M, depth) units, row-major."""

    @abstractmethod
    def pack_right(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        """B (..., K, N) in scratch as (..., depth, N) units, row-major."""

    @abstractmethod
    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        """c + a * b for units `a` and `b`, lane by lane."""


class Elements(Product):
    """One element of K at a time, in the accumulator's type."""

    def __init__(self, element: str) -> None:
        self.unit = element

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        return lowering.materialise(converted(tensor.buffer or tensor, self.unit), operation)

    def pack_right(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        return self.pack_left(lowering, operation, tensor)

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        if types.is_float(self.unit):
            return builder.pure(f"math.fma {a.name}, {b.name}, {c.name} : {c.type}", c.type, (a, b, c))
        return builder.add(c, builder.mul(a, b))


class Bfloat16Pairs(Product):
    """Two elements of K at a time: AVX512-BF16's VDPBF16PS, which takes denormal inputs as zero.

    A unit is a pair of neighbours along K in 32 bits, the earlier one in the low half.
    """

    unit = "i32"
    lanes = 16
    elements = ("bf16", *types.FLOAT8)
    """Types of which bf16 has every number."""

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        buffer = lowering.materialise(converted(tensor.buffer or tensor, "bf16"), operation)
        *outer, k = buffer.shape
        return Buffer((*outer, k // 2), self.unit, buffer.pointer)

    def pack_right(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        builder = lowering.builder
        tensor = converted(tensor.buffer or tensor, "bf16")
        *batch, k, n = tensor.shape
        packed = lowering.allocate((*batch, k // 2, n), self.unit)
        kept = lowering.plan(operation, tensor.shape, [tensor])

        def emit(unmasked: frozenset[object]) -> list[Value]:
            evaluation = Evaluation(builder, unmasked, kept)

            def half(point: Point, row: Value) -> Value:
                at = Point((*point.indices[:-2], row, point.indices[-1]), point.axis, point.width)
                value = builder.broadcast(evaluation.at(tensor, at), point.width)
                return builder.cast("arith.extui", value, vector_type(self.unit, value.lanes))

            def body(point: Point) -> None:
                first = builder.add(point.indices[-2], point.indices[-2])
                low, high = half(point, first), half(point, builder.add(first, builder.i64(1)))
                shifted = builder.binary("arith.shli", high, builder.constant(16, high.type))
                packed.write(builder, point, builder.binary("arith.ori", low, shifted))

            tile_loop(builder, packed.shape, self.lanes, body)
            return []

        lowering.specialise([tensor], emit)
        for part, buffer in kept.items():
            part.buffer = buffer
        return packed

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        pairs = f"vector<{2 * c.lanes}xbf16>"
        left, right = (_reinterpret(builder, value, pairs) for value in (a, b))
        text = (
            f'llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({c.name}, {left.name}, {right.name}) : '
            f"({c.type}, {pairs}, {pairs}) -> {c.type}"
        )
        return builder.pure(text, c.type, (c, left, right))


def _reinterpret(builder: LoopBuilder, value: Value, type: str) -> Value:
    return builder.pure(f"vector.bitcast {value.name} : {value.type} to {type}", type, (value,))


def converted(tensor: Tensor, element: str) -> Tensor:
    """`tensor` in another element type, by value."""
    if tensor.element == element:
        return tensor
    wider = types.BITS[element] > types.BITS[tensor.element]
    if types.is_float(element):
        name = "arith.extf" if wider else "arith.truncf"
    else:
        name = "arith.extsi" if wider else "arith.trunci"

    def emit(builder: LoopBuilder, values: list[Value]) -> Value:
        return convert(builder, name, values[0], tensor.element, element)

    return Elementwise(tensor.shape, element, [tensor], emit)

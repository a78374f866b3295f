"""What a kind of product decides: how the operands of a dot are packed, and what one step of the inner loop computes.

Operands are packed in units, `depth` of them along K. A vector product multiplies one unit of A, broadcast to every
lane, by a vector of units of B: of elements here, of several neighbours along K in `instructions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from triton_porting_kit.compiler.loops.arithmetic.elementwise import convert
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Columns, Rows, Strips, column_strip
from triton_porting_kit.compiler.loops.matmul.gathered_columns import gathers_columns
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, blocking
from triton_porting_kit.compiler.loops.matmul.strip_packing import fill_right
from triton_porting_kit.compiler.loops.memory.column_prefetch import prefetch_right
from triton_porting_kit.compiler.loops.tiles.nests import transpose_into
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Elementwise, Tensor
from triton_porting_kit.compiler.loops.tiles.transposed import lies_in_columns, turned
from triton_porting_kit.compiler.target import CpuTarget


class Product(ABC):
    """A kind of product. `unit` is the type of packed operands; it holds `count` values of type `element` along K."""

    unit: str
    element: str
    count = 1
    flushes = False
    """Whether denormal sums become zero."""
    excess: int | None = None
    """The bias that `biased` adds to A's units. Each sum is then too large by its product with B. None: no bias."""

    def biased(self, builder: LoopBuilder, a: Value) -> Value:
        """Units of A with the bias added, if any."""
        return a

    @abstractmethod
    def left(self, tensor: Tensor) -> Tensor:
        """A in the type that it is packed in."""

    def fill_left(self, lowering: Lowering, operation: Operation, place: Buffer, tensor: Tensor) -> None:
        """Write A, in that type, to `place` row by row."""
        lowering.fill(operation, place, tensor)

    def packs_columns(self, tensor: Tensor) -> bool:
        """Whether A, in that type, is packed column by column, as it lies: its units are read one by one anyway."""
        return False

    def left_pitch(self, depth: int) -> int:
        """The row pitch of a packed A in units, for rows of `depth` units."""
        return depth

    @abstractmethod
    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        """Pack A (..., M, K) in scratch as (..., M, depth) units."""

    @abstractmethod
    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        """Pack B (..., K, N) in scratch as (..., depth, N) units, row-major unless a `place` is given."""

    def block(self, target: CpuTarget, m: int, n: int, work: str, *, several: bool = False) -> Blocking:
        """The block of the (`m`, `n`) sums of type `work` that stays in registers. `several`: see `blocking`."""
        return blocking(target, m, n, work, several=several)


class VectorProduct(Product):
    """One unit of A by a vector of units of B."""

    @abstractmethod
    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        """c + a * b for units `a` and `b`, lane by lane."""


class Elements(VectorProduct):
    """One element of K at a time, in the accumulator's type."""

    def __init__(self, element: str) -> None:
        self.unit = self.element = element

    def left(self, tensor: Tensor) -> Tensor:
        return converted(tensor.buffer or tensor, self.unit)

    def packs_columns(self, tensor: Tensor) -> bool:
        return not isinstance(tensor, Buffer) and lies_in_columns(tensor)

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        tensor = self.left(tensor)
        if not self.packs_columns(tensor):
            return tensor if isinstance(tensor, Rows) else lowering.materialise(tensor, operation)
        *batch, m, k = tensor.shape
        place = lowering.scratch.allocate((*batch, k, m), self.unit)
        strip = m if batch else column_strip(m)
        if not batch:
            place = Strips((k, m), self.unit, place.pointer, strip, k)
        lowering.fill(operation, place, turned(tensor))
        return Columns(tensor.shape, self.unit, place.pointer, strip)

    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        tensor = converted(tensor.buffer or tensor, self.unit)
        in_columns = gathers_columns(lowering, operation, tensor)
        prefetch_right(lowering, operation, tensor)
        if in_columns:
            place = place or lowering.scratch.allocate(tensor.shape, self.unit)
            transpose_into(lowering.builder, lowering.target, tensor, place)
            return place
        if place is None:
            return lowering.materialise(tensor, operation)
        fill_right(lowering, operation, place, tensor)
        return place

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        if types.is_float(self.unit):
            return builder.pure(f"math.fma {a.name}, {b.name}, {c.name} : {c.type}", c.type, (a, b, c))
        return builder.add(c, builder.mul(a, b))


def converted(tensor: Tensor, element: str) -> Tensor:
    """`tensor` converted to another element type."""
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

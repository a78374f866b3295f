"""How operands are packed for instructions that multiply pairs or quads of neighbours along K."""

from __future__ import annotations

from functools import partial

from triton_porting_kit.compiler.loops.arithmetic.elementwise import TO_NEAREST, round_to_bf16
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.exact_factors import ExactFactor
from triton_porting_kit.compiler.loops.matmul.factors import Rows, fill_either
from triton_porting_kit.compiler.loops.matmul.gathered_columns import gathers_columns
from triton_porting_kit.compiler.loops.matmul.products import Product, converted
from triton_porting_kit.compiler.loops.memory.column_prefetch import prefetch_right
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.nests import specialise
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Point,
    Tensor,
    closure,
    is_operation,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop
from triton_porting_kit.compiler.loops.tiles.transposed import (
    in_squares,
    lies_across,
    rows_of_unit,
    transpose_squares,
    transpose_tile,
    unit_of,
)

GATHERED = 8
"""Lanes to pack at a time when LLVM would load them one by one: more are no faster and take much code."""


class Interleaved(Product):
    """`count` elements of K in one 32-bit unit.

    A unit holds neighbours along K, the first one in the lowest bits. Sums have 32 bits, too.
    """

    unit = "i32"
    lanes = 16
    rounds = False
    """Whether an instruction rounds f32 to `element`, which takes denormals as zero, as the product does."""

    def left(self, tensor: Tensor) -> Tensor:
        return self._factor(tensor)

    def _factor(self, tensor: Tensor) -> Tensor:
        """A factor in the type that it is packed in."""
        held = tensor.buffer or tensor
        if self.rounds and held.element == "f32":  # exact: see `scaled_factors`
            return Elementwise(held.shape, self.element, [held], round_to_bf16)
        if self.rounds and _rounds_to_nearest(held) and held.operands[0].element == "f32":
            return Elementwise(held.shape, held.element, held.operands, round_to_bf16)
        return converted(held, self.element)

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        tensor = self.left(tensor)
        if isinstance(tensor, Rows):  # another product has packed it
            return tensor.in_units(self.unit, self.count)
        if in_squares(tensor, lowering.target, self.count):
            buffer = lowering.scratch.allocate(tensor.shape, tensor.element)
            self.fill_left(lowering, operation, buffer, tensor)
        else:
            buffer = lowering.materialise(tensor, operation)
        *outer, k = buffer.shape
        return Buffer((*outer, k // self.count), self.unit, buffer.pointer)

    def fill_left(self, lowering: Lowering, operation: Operation, place: Buffer, tensor: Tensor) -> None:
        builder = lowering.builder
        if not in_squares(tensor, lowering.target, self.count):
            lowering.fill(operation, place, tensor)
            return
        loads = [part.access for part in closure([tensor]) if isinstance(part, Load)]
        plain = builder.constant(1, "i1")
        for access in loads:
            plain = builder.logical_and(plain, access.plain_condition(builder))

        def transposed() -> None:
            evaluation = Evaluation(builder, frozenset(loads), {})
            transpose_squares(evaluation, tensor, lowering.target, place, self.count)

        fill_either(lowering, operation, place, tensor, plain, transposed)

    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        builder = lowering.builder
        exact = ExactFactor.of(tensor.buffer or tensor) if self.element == "bf16" else None
        tensor = self._factor(tensor)
        *batch, k, n = tensor.shape
        packed = place or lowering.scratch.allocate((*batch, k // self.count, n), self.unit)
        columns = self._read_in_columns(lowering, operation, tensor, exact)
        prefetch_right(lowering, operation, tensor)
        kept = {} if columns is not None else lowering.plan(operation, tensor.shape, [tensor])
        if tensor in kept:
            exact = None  # later uses read it as bf16, so it is evaluated and kept as that

        def emit(unmasked: frozenset[object]) -> list[Value]:
            evaluation = Evaluation(builder, unmasked, kept)
            if columns is None:
                lanes = GATHERED if _gathers(tensor, unmasked) else self.lanes * self.count
                lanes = min(lanes, packed.strides[-2])  # at most one strip, if there are strips
                self._pack_rows(evaluation, tensor, exact, packed, lanes)
            elif columns is tensor or exact is None:
                write = partial(packed.write, builder)
                transpose_tile(evaluation, tensor, lowering.target, write, unit=self.unit, count=self.count)
            else:
                exact.pack_columns(evaluation, lowering.target, packed)
            return []

        specialise(lowering.builder, [tensor], emit)
        for kept_part, buffer in kept.items():
            lowering.hold(kept_part, buffer)
        return packed

    def _pack_rows(
        self, evaluation: Evaluation, tensor: Tensor, exact: ExactFactor | None, packed: Buffer, lanes: int
    ) -> None:
        """Emit loops that pack B as it lies in rows, up to so many `lanes` at a time."""
        if exact is not None:
            exact.pack_rows(evaluation, packed, min(lanes, self.lanes))
            return

        def body(point: Point) -> None:
            rows = rows_of_unit(evaluation, tensor, point, self.count)
            packed.write(evaluation.builder, point, unit_of(evaluation.builder, rows))

        tile_loop(evaluation.builder, packed.shape, lanes, body)

    def _read_in_columns(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, exact: ExactFactor | None
    ) -> Tensor | None:
        """What to read in transposed blocks: the bytes of B or `tensor`, which is B as it is packed; None: neither."""
        found = [tensor] if exact is None or exact.bytes is None else [exact.bytes, tensor]
        for read in found:
            if lies_across(read, lowering.target) or gathers_columns(lowering, operation, read):
                return read
        return None


def _gathers(tensor: Tensor, unmasked: frozenset[object]) -> bool:
    """Whether neighbours along the last dimension are loaded from addresses that are not contiguous."""
    last = len(tensor.shape) - 1
    return any(
        not part.access.is_contiguous(last) or (last in part.access.wraps and part.access not in unmasked)
        for part in closure([tensor])
        if isinstance(part, Load) and len(part.shape) > last
    )


def _rounds_to_nearest(tensor: Tensor) -> bool:
    """Whether a tensor is another one in a narrower type, rounded to the nearest number."""
    owner = None if tensor.definition is None else tensor.definition.owner
    toward_zero = owner is not None and owner.integer("roundingmode", TO_NEAREST) != TO_NEAREST
    return is_operation(tensor, "arith.truncf") and not toward_zero

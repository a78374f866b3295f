"""Rows of A at addresses of their own: a left operand that is gathered row by row is read where it lies.

A convolution as implicit GEMM reads a row of channels for each place of the image, and rows outside are masked.
So does a product whose rows are chosen by a list. Offsets and masks are then those of a row, plus those of a column.
An iteration writes the address of each row into a table; that of a masked row is the address of zeros. Where columns
are masked, too, it packs its rows and writes the addresses of these, so that multiplying always follows the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from triton_porting_kit.compiler.dialect.operations import Gather as GatherOp
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Left
from triton_porting_kit.compiler.loops.matmul.products import Product, VectorProduct
from triton_porting_kit.compiler.loops.memory import ordered
from triton_porting_kit.compiler.loops.memory.store_footprint import address
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather, conjuncts, is_consecutive, run_of_offsets
from triton_porting_kit.compiler.loops.tiles.runs import Break
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Point,
    Range,
    Reindexed,
    Splat,
    Tensor,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk

POINTER = "i64"
"""The type of the entries."""


def suits(lowering: Lowering, definition: Def, product: Product) -> bool:
    """Whether A may be read by a table: it is gathered in the type that is multiplied."""
    owner = definition.owner
    if (
        not GatherOp.isa(owner)
        or not isinstance(product, VectorProduct)
        or not lowering.target.has_flat_memory
    ):
        return False
    assert owner is not None
    return definition.type.element == product.element and not ordered.is_ordered(owner)


@dataclass(frozen=True)
class RowTable:
    """The addresses of the rows of A in all waiting iterations."""

    start: Value
    """The address of the entries: (iterations, rows)."""
    zeros: Value
    """The address of a row of zeros."""
    rows: int
    units: int
    """Along K, of one iteration."""

    @classmethod
    def of(
        cls, lowering: Lowering, product: Product, height: int, iterations: int, rows: int, k: int
    ) -> RowTable:
        """A table for so many iterations, with `k` elements of each row, read in blocks of `height` rows."""
        # The last block of rows reads the entries of the next one, to prefetch.
        start = lowering.scratch.allocate((iterations * rows + height,), POINTER).pointer
        zeros = lowering.scratch.keep_cleared(k * types.byte_size(product.element))
        return cls(start, zeros, rows, k // product.count)

    def packs(self, lowering: Lowering, a: Tensor) -> Value:
        """i1: whether this iteration packs A: its rows are not contiguous, or some of its columns are masked."""
        builder = lowering.builder
        conditions = _conditions(builder, a)
        if conditions is None:
            return builder.constant(1, "i1")
        whole = builder.constant(1, "i1")
        builder.forget_reads()
        for condition in conditions:
            (size,) = condition.shape
            lanes = chunk(size, lowering.target.lanes)
            with builder.loop(builder.i64(0), builder.i64(size), builder.i64(lanes), [whole]) as region:
                point = Point((region.induction,), 0 if lanes > 1 else -1, lanes)
                found = builder.broadcast(Evaluation(builder, frozenset(), {}).at(condition, point), lanes)
                text = f"vector.reduction <and>, {found.name} : {found.type} into i1"
                every = builder.pure(text, "i1", (found,)) if found.is_vector else found
                region.yields = [builder.logical_and(region.arguments[0], every)]
            (whole,) = region.results
        builder.forget_reads()
        return builder.compare("eq", whole, builder.constant(0, "i1"))

    def write(
        self,
        lowering: Lowering,
        operation: Operation,
        iteration: Value,
        a: Tensor,
        packed: Buffer,
        packs: Value,
    ) -> None:
        """Write the addresses of an iteration: those of the `packed` rows if it `packs`, else where they lie."""
        builder = lowering.builder
        at_hand = address(builder, packed.pointer)
        pitch = packed.strides[0] * types.byte_size(packed.element)
        operands: list[Tensor] = [Range(self.rows, 0)]
        if packs.constant != 1:
            assert isinstance(a, Gather)
            first = [tensor for tensor in (a.offsets, a.mask) if tensor is not None]
            operands += [Reindexed((self.rows,), tensor, [0, None]) for tensor in first]

        def entry(builder: LoopBuilder, values: list[Value]) -> Value:
            row, *there = values
            lanes = row.lanes
            row = builder.cast("arith.extsi", row, vector_type(POINTER, lanes))
            place = builder.add(
                builder.broadcast(at_hand, lanes), builder.mul(row, builder.constant(pitch, row.type))
            )
            if not there:
                return place
            assert isinstance(a, Gather)
            offset, *mask = there
            offset = builder.cast("arith.extsi", offset, vector_type(POINTER, offset.lanes))
            offset = builder.mul(offset, builder.constant(types.byte_size(a.unit), offset.type))
            lies = builder.add(
                builder.broadcast(address(builder, a.base), lanes), builder.broadcast(offset, lanes)
            )
            for inside in mask:
                nothing = builder.broadcast(address(builder, self.zeros), lanes)
                lies = builder.select(builder.broadcast(inside, lanes), lies, nothing)
            return builder.select(packs, place, lies)

        first_of_iteration = builder.mul(iteration, builder.i64(self.rows))
        place = Buffer((self.rows,), POINTER, builder.address(self.start, [first_of_iteration], POINTER))
        lowering.fill(operation, place, Elementwise(place.shape, POINTER, operands, entry))
        builder.forget_reads()

    def left(self, builder: LoopBuilder, iteration: Value, row: Value, rows: int) -> Left:
        """Where so many rows, from `row` on, of a waiting iteration lie, and as many after them."""
        first = builder.add(builder.mul(iteration, builder.i64(self.rows)), row)
        place = builder.address(self.start, [first], POINTER)
        starts = []
        for index in range(2 * rows):
            entry = builder.address(place, [builder.i64(index)], POINTER)
            text = f"llvm.load {entry.name} {{alignment = 8 : i64}} : !llvm.ptr -> !llvm.ptr"
            starts.append(builder.read(text, "!llvm.ptr", (entry,), floor=builder.level))
        return Left(starts[0], builder.i64(0), builder.i64(1), starts=tuple(starts))


def _conditions(builder: LoopBuilder, a: Tensor) -> list[Tensor] | None:
    """What must hold for the rows of A to be read where they lie: one-dimensional masks whose elements are all true.

    There are two kinds: a part of A's mask that is the same for all rows, and for each row, that its offsets do not
    wrap around. None if neighbours in a row do not lie side by side, or if a part of the mask differs along both
    dimensions.
    """
    if not isinstance(a, Gather) or a.buffer is not None or not _fills_with_zeros(a):
        return None
    m, k = a.shape
    builder.open()  # what is emitted to find out is dropped
    evaluation, row, column = Evaluation(builder, frozenset(), {}), builder.fresh("i64"), builder.fresh("i64")
    builder.aligned(row, m)
    builder.aligned(column, k)
    along, down = Point((row, column), 1, k), Point((row, column), 0, m)

    def is_uniform(tensor: Tensor, point: Point) -> bool:
        run = evaluation.run(tensor, point)
        return run is not None and run.step == 0 and not evaluation.breaks(run)

    run = run_of_offsets(evaluation, along, a.offsets)
    columns = [part for part in conjuncts(a.mask) if not is_uniform(part, along)]
    breaks = [] if run is None else evaluation.breaks(run)
    suited = (
        run is not None
        and is_consecutive(run.step, a.unit, a.element)
        and all(is_uniform(part, down) for part in columns)
        and all(one.point == along and one.divisor & (one.divisor - 1) == 0 for one in breaks)
    )
    builder.close()
    if not suited:
        return None
    found: list[Tensor] = [Reindexed((k,), part, [None, 0]) for part in columns]
    return found + [_uncrossed(one, m) for one in breaks]


def _uncrossed(one: Break, rows: int) -> Tensor:
    """For each row, whether it does not cross a break at a power of two."""

    def compare(builder: LoopBuilder, values: list[Value]) -> Value:
        (first,) = values
        place = builder.binary("arith.andi", first, builder.constant(one.divisor - 1, first.type))
        return builder.compare("ule", place, builder.constant(one.divisor - 1 - one.span, first.type))

    return Elementwise((rows,), "i1", [Reindexed((rows,), one.dividend, [0, None])], compare)


def _fills_with_zeros(a: Gather) -> bool:
    if a.other is None:
        return True
    fill = a.other.value.constant if isinstance(a.other, Splat) else None
    return fill == 0 and math.copysign(1, fill) == 1

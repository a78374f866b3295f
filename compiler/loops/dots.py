"""``linalg.matmul`` and ``linalg.batch_matmul``: accumulators in a register block over packed operands.

The operands are laid out in scratch in the type that is multiplied, row after row. A block of `rows` x `strip`
accumulators stays in registers over the whole of K: each step loads one strip of B, and one element of A per row.
"""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops import lane_memory, matrix_tiles
from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value
from triton_porting_kit.compiler.loops.control_flow import reads_buffer
from triton_porting_kit.compiler.loops.graph import closure
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.products import (
    Bfloat16Pairs,
    ByteQuads,
    Elements,
    Product,
    converted,
)
from triton_porting_kit.compiler.loops.program import Operation
from triton_porting_kit.compiler.loops.tensors import Buffer, Tensor
from triton_porting_kit.compiler.target import CpuTarget

STEPS = 2
"""Steps along K in one trip of the inner loop."""


@dataclass(frozen=True)
class Blocking:
    """A register block: `rows` rows of `vectors` vectors of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def strip(self) -> int:
        return self.vectors * self.lanes


def blocking(target: CpuTarget, m: int, n: int, element: str) -> Blocking:
    """The block whose accumulators, one strip of B and one element of A fit the vector registers."""
    lanes = min(n, target.vector_bytes // types.byte_size(element))
    while n % lanes:
        lanes -= 1
    vectors = 1
    widest = 4 if target.vector_registers >= 32 else 2
    while vectors < widest and n % (2 * vectors * lanes) == 0:
        vectors *= 2
    rows, most = 1, target.vector_registers * 3 // 4  # the rest is for what else the compiler keeps there
    while m % (2 * rows) == 0 and (2 * rows) * vectors + vectors + 1 <= most:
        rows *= 2
    return Blocking(rows, vectors, lanes)


def matmul(lowering: Lowering, operation: Operation) -> None:
    """outs + a * b, accumulated in the type of outs (16-bit outs in f32, rounded once at the end)."""
    a, b, c = (lowering.tensor(operand) for operand in operation.operands)
    result = operation.results[0]
    work = "f32" if c.element in types.NARROW_FLOATS else c.element
    product = _product_for(lowering.target, a, b, work)
    left = product.pack_left(lowering, operation, a)
    right = product.pack_right(lowering, operation, b)
    accumulator = _accumulator(lowering, operation, c, work, (left, right))
    builder = lowering.builder
    builder.forget_reads()
    *batch, m, n = c.shape
    block = blocking(lowering.target, m, n, work)
    if batch:
        with builder.loop(builder.i64(0), builder.i64(batch[0]), builder.i64(1)) as region:
            _multiply(lowering, product, block, left, right, accumulator, [region.induction])
    else:
        _multiply(lowering, product, block, left, right, accumulator, [])
    builder.forget_reads()
    if work == c.element:
        lowering.define(result, accumulator)
    else:
        lowering.define(result, converted(accumulator, c.element))


def _product_for(target: CpuTarget, a: Tensor, b: Tensor, work: str) -> Product:
    k, n = b.shape[-2:]
    elements = {a.element, b.element}
    found: Bfloat16Pairs | ByteQuads | None = None
    if work == "f32" and elements <= {*Bfloat16Pairs.elements} and target.multiplies_bf16_pairs:
        found = Bfloat16Pairs()
    elif work == "i32" and elements == {ByteQuads.element} and target.multiplies_byte_quads:
        found = ByteQuads()
    return found if found and k % found.count == 0 and n % found.lanes == 0 else Elements(work)


def _accumulator(
    lowering: Lowering, operation: Operation, initial: Tensor, element: str, factors: tuple[Buffer, Buffer]
) -> Buffer:
    """A buffer that holds `initial` and may be overwritten while the `factors` are still read.

    It is that of a loop-carried value where it ends here.
    """
    held = initial.buffer or initial
    kept = [factor.pointer for factor in factors]
    if (
        isinstance(held, Buffer)
        and held.element == element
        and held.pointer not in kept
        and _ends_here(lowering, initial, operation)
    ):
        return held.renamed()
    for tensor in closure([held]):
        if (
            isinstance(tensor, Buffer)
            and (tensor.shape, tensor.element) == (initial.shape, element)
            and tensor.pointer not in kept
            and _ends_here(lowering, tensor, operation)
            and initial.element == element
            and not reads_buffer(held, tensor, aligned_only=True)
        ):
            lowering.fill(operation, tensor, held)
            return tensor.renamed()
    buffer = lowering.allocate(initial.shape, element)
    lowering.fill(operation, buffer, converted(held, element))
    return buffer


def _ends_here(lowering: Lowering, tensor: Tensor, operation: Operation) -> bool:
    """Whether this operation is the last to need the tensor, which belongs to the operation's own block."""
    definition = tensor.definition
    held = tensor.buffer or tensor
    return (
        definition is not None
        and not (isinstance(held, Buffer) and held.shared)
        and definition.block is operation.block
        and all(root.position <= operation.position for root in lowering.roots(definition))
    )


def _multiply(
    lowering: Lowering, product: Product, block: Blocking, a: Buffer, b: Buffer, c: Buffer, batch: list[Value]
) -> None:
    builder = lowering.builder
    *_, m, depth = a.shape
    n = b.shape[-1]
    if isinstance(product, Bfloat16Pairs) and matrix_tiles.fits(lowering.target, m, n, 2 * depth):
        matrix_tiles.multiply(builder, a, b, c, batch)
        return
    zero = builder.i64(0)

    def start_of(buffer: Buffer) -> Value:
        terms = [builder.mul(i, builder.i64(buffer.strides[0])) for i in batch]
        return builder.address(buffer.pointer, terms, buffer.element)

    a_start, b_start, c_start = map(start_of, (a, b, c))
    offsets = start_of(product.offsets) if product.offsets else None
    with builder.loop(zero, builder.i64(n), builder.i64(block.strip)) as strips:
        with builder.loop(zero, builder.i64(m), builder.i64(block.rows)) as rows:
            c_row = builder.address(
                c_start, [strips.induction, builder.mul(rows.induction, builder.i64(n))], c.element
            )
            a_row = builder.address(a_start, [builder.mul(rows.induction, builder.i64(depth))], a.element)
            b_column = builder.address(b_start, [strips.induction], b.element)
            tile = _RegisterBlock(builder, product, block, c.element)
            accumulators = tile.load(c_row, n)
            if offsets is not None:
                accumulators = tile.less(
                    accumulators, builder.address(offsets, [strips.induction], c.element)
                )
            steps = STEPS if depth % STEPS == 0 else 1
            with builder.loop(zero, builder.i64(depth), builder.i64(steps), accumulators) as loop:
                values = loop.arguments
                for step in range(steps):
                    index = builder.add(loop.induction, builder.i64(step)) if step else loop.induction
                    values = tile.step(values, a_row, b_column, index, depth, n)
                loop.yields = values
            tile.store(loop.results, c_row, n)


class _RegisterBlock:
    """Loads, multiplies and stores one block of accumulators."""

    def __init__(self, builder: LoopBuilder, product: Product, block: Blocking, element: str) -> None:
        self._builder = builder
        self._product = product
        self._block = block
        self._element = element

    def _read(self, pointer: Value, element: str, lanes: int) -> Value:
        return lane_memory.read(self._builder, pointer, element, lanes, floor=self._builder.level)

    def _place(self, base: Value, offset: int, element: str) -> Value:
        return self._builder.address(base, [self._builder.i64(offset)], element)

    def _accumulator(self, c_row: Value, index: int, width: int) -> Value:
        row, vector = divmod(index, self._block.vectors)
        return self._place(c_row, row * width + vector * self._block.lanes, self._element)

    def load(self, c_row: Value, width: int) -> list[Value]:
        """The accumulators of the block, row by row."""
        return [
            self._read(self._accumulator(c_row, index, width), self._element, self._block.lanes)
            for index in range(self._block.rows * self._block.vectors)
        ]

    def less(self, values: list[Value], offsets: Value) -> list[Value]:
        """The accumulators less what is to be taken from each column."""
        block = self._block
        less = [
            self._read(self._place(offsets, vector * block.lanes, self._element), self._element, block.lanes)
            for vector in range(block.vectors)
        ]
        return [self._builder.sub(value, less[index % block.vectors]) for index, value in enumerate(values)]

    def store(self, values: list[Value], c_row: Value, width: int) -> None:
        """Put the accumulators back."""
        for index, value in enumerate(values):
            lane_memory.write(self._builder, self._accumulator(c_row, index, width), value)

    def step(
        self, values: list[Value], a_row: Value, b_column: Value, k: Value, depth: int, width: int
    ) -> list[Value]:
        """One step along K: every accumulator plus its product."""
        builder, block, unit = self._builder, self._block, self._product.unit
        b_row = builder.address(b_column, [builder.mul(k, builder.i64(width))], unit)
        b = [
            self._read(self._place(b_row, vector * block.lanes, unit), unit, block.lanes)
            for vector in range(block.vectors)
        ]
        a_start = builder.address(a_row, [k], unit)
        updated = []
        for row in range(block.rows):
            a = self._read(self._place(a_start, row * depth, unit), unit, 1)
            a = builder.broadcast(a, block.lanes)
            for vector in range(block.vectors):
                accumulator = values[row * block.vectors + vector]
                updated.append(self._product.multiply_add(builder, a, b[vector], accumulator))
        return updated

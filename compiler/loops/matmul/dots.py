"""``linalg.matmul`` and ``linalg.batch_matmul``: accumulators in a register block over packed operands.

Operands are packed in scratch, row-major, in the type that the product reads. A block of `rows` x `strip` accumulators
stays in vector registers (`vector_kernels`) or tile registers (`amx_kernels`) over the whole of K. In a loop, K may
span several iterations, and A may be read in place: see `k_blocking`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.control.control_flow import reads_buffer
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul import scaled_factors, small_products
from triton_porting_kit.compiler.loops.matmul.factors import Columns, Left, Strips
from triton_porting_kit.compiler.loops.matmul.instructions import product_for
from triton_porting_kit.compiler.loops.matmul.kept_factors import kept_right
from triton_porting_kit.compiler.loops.matmul.multiplication import Multiplication, start_of
from triton_porting_kit.compiler.loops.matmul.panels import Panel, Panels, Part
from triton_porting_kit.compiler.loops.matmul.products import Product, VectorProduct, converted
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.loops.matmul.software_prefetch import lines_ahead, stored_below
from triton_porting_kit.compiler.loops.matmul.tile_prefetch import nothing, tiles_ahead
from triton_porting_kit.compiler.loops.matmul.vector_kernels import RegisterBlock
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import NOWHERE, Load
from triton_porting_kit.compiler.loops.tiles.graph import cost, reads_memory
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Splat, Tensor, closure

LIGHT = 4
"""Most operations for an element with which a sum begins."""

INDEPENDENT = 2
"""The number of independent accumulators of a column sum of B: consecutive steps along K go to different ones."""


def matmul(lowering: Lowering, operation: Operation) -> None:
    """outs + a * b, accumulated in the type of outs. 16-bit outs are accumulated in f32 and rounded once at the end."""
    a, b, c = (lowering.tensor(operand) for operand in operation.operands)
    result = operation.results[0]
    panel = lowering.part(Panels).get(operation)
    a = scaled_factors.left(operation, a)
    if panel is not None:
        lowering.define(result, _add_to_panel(lowering, operation, panel, a, b, c))
        return
    work = "f32" if c.element in types.NARROW_FLOATS else c.element
    k, n = b.shape[-2:]
    *batch, m, _ = c.shape
    product = product_for(lowering.target, *scaled_factors.elements(operation), (m, n, k), work)
    there = {} if batch else {t: small_products.in_place(lowering, product, t) for t in (a, b)}
    read_there = [(tensor, place) for tensor, place in there.items() if place is not None]
    left = there.get(a) or product.pack_left(lowering, operation, a)
    block = product.block(lowering.target, m, n, work)
    kept = None if batch or there.get(b) else kept_right(lowering, operation, product, block, b)
    right = there.get(b) or (kept and kept.place) or product.pack_right(lowering, operation, b)
    builder = lowering.builder
    from_zero = isinstance(c, Splat) and c.value.constant == 0
    initial: Tensor | None = None
    if from_zero:
        accumulator = lowering.scratch.allocate(c.shape, work)
    else:
        in_registers = isinstance(product, VectorProduct)
        accumulator, initial = _accumulator(lowering, operation, c, work, (left, right), in_registers)
    builder.forget_reads()
    fetch = small_products.next_tiles(lowering, operation, read_there, block, (m, n, k))
    beside = nothing if batch else tiles_ahead(lowering, operation, block, (m, n), kept)
    excess = None if product.excess is None else lowering.scratch.allocate((n,), work).pointer

    def multiply(batch: Sequence[Value]) -> None:
        depth = left.shape[-1]
        start = start_of(builder, left, batch)
        a_part = Left(start, builder.i64(left.strides[-2] * product.count), builder.i64(1))
        if isinstance(left, Columns):
            a_part = Left.of_columns(builder, start, left.strides[-1], depth)
        if excess is not None:
            _measure(lowering, product, block, right, excess, builder.i64(depth), batch)
        begun, no, one = builder.constant(not from_zero, "i1"), builder.constant(0, "i1"), builder.i64(1)
        part = Part(a_part, right, builder.i64(depth), one, excess, begun=begun, stores=no, known=no)
        whole = Multiplication(lowering, product, block, part, accumulator, fetch, None, initial, beside)
        whole.emit(batch)

    if batch:
        with builder.loop(builder.i64(0), builder.i64(batch[0]), builder.i64(1), points=batch[0]) as region:
            multiply([region.induction])
    else:
        multiply([])
    builder.forget_reads()
    if work == c.element:
        lowering.define(result, accumulator)
    else:
        lowering.define(result, converted(accumulator, c.element))


def _add_to_panel(
    lowering: Lowering, operation: Operation, panel: Panel, a: Tensor, b: Tensor, c: Tensor
) -> Tensor:
    """Add one iteration to the `panel`. Returns the sum, which is complete after the loop."""
    total = c.buffer or c
    assert isinstance(total, Buffer)

    builder, product, block = lowering.builder, panel.product, panel.block

    def multiply(part: Part) -> None:
        fetch = lines_ahead(lowering, operation, a, b, panel, part)
        beside = stored_below(lowering, panel, part)
        with a.place() if isinstance(a, Load) else NOWHERE:  # it may be read in place
            Multiplication(lowering, product, block, part, total, fetch, panel.epilogue, beside=beside).emit()

    def measure(right: Strips, place: Value) -> None:
        _measure(lowering, product, block, right, place, builder.i64(panel.depth))

    panel.add(lowering, operation, a, b, multiply, measure)
    return total.renamed()


def _accumulator(
    lowering: Lowering,
    operation: Operation,
    initial: Tensor,
    element: str,
    factors: tuple[Buffer, Buffer],
    in_registers: bool,
) -> tuple[Buffer, Tensor | None]:
    """A buffer that holds `initial` and may be overwritten while the `factors` are still read.

    It reuses the buffer of a loop-carried value if this operation is the last to need that value. If that is scaled
    and the like first, and sums stay `in_registers`, the product does so as it begins with each block: then the second
    result is what the sums begin with.
    """
    held = initial.buffer or initial
    kept = [factor.pointer for factor in factors]
    if (
        isinstance(held, Buffer)
        and held.is_dense
        and held.element == element
        and held.pointer not in kept
        and _ends_here(lowering, initial, operation)
    ):
        return held.renamed(), None
    for tensor in closure([held]):
        if (
            isinstance(tensor, Buffer)
            and (tensor.shape, tensor.element) == (initial.shape, element)
            and tensor.pointer not in kept
            and _ends_here(lowering, tensor, operation)
            and initial.element == element
            and not reads_buffer(held, tensor, aligned_only=True)
        ):
            if in_registers and _is_light(lowering, operation, held):
                return tensor.renamed(), held
            lowering.fill(operation, tensor, held)
            return tensor.renamed(), None
    buffer = lowering.scratch.allocate(initial.shape, element)
    lowering.fill(operation, buffer, converted(held, element))
    return buffer, None


def _is_light(lowering: Lowering, operation: Operation, tensor: Tensor) -> bool:
    """Whether a matrix is computed from scratch in a few operations, once what is expensive in it is there."""
    if len(tensor.shape) != 2 or reads_memory(tensor):
        return False
    if lowering.plan(operation, tensor.shape, [tensor]):
        return False
    return cost(tensor, {}) <= LIGHT


def _ends_here(lowering: Lowering, tensor: Tensor, operation: Operation) -> bool:
    """Whether this operation is the last to need the tensor, which is defined in the operation's own block."""
    definition = tensor.definition
    held = tensor.buffer or tensor
    return (
        definition is not None
        and not (isinstance(held, Buffer) and held.shared)
        and definition.block is operation.block
        and all(root.position <= operation.position for root in lowering.uses.roots(definition))
    )


def _measure(
    lowering: Lowering,
    product: Product,
    block: Blocking,
    b: Buffer,
    place: Value,
    depth: Value,
    batch: Sequence[Value] = (),
) -> None:
    """Write the excess of each column's sum, due to `depth` units of B, to `place`.

    The excess is what the bias of A's elements adds to the sum (`Product.excess`).
    """
    builder = lowering.builder
    apart = builder.i64(b.pitch if isinstance(b, Strips) else 1)
    steps = INDEPENDENT if b.shape[-2] % INDEPENDENT == 0 else 1
    builder.forget_reads()
    with builder.loop(builder.i64(0), builder.i64(b.shape[-1]), builder.i64(block.strip)) as strips:
        start = start_of(builder, b, batch)
        column = builder.address(start, [builder.mul(strips.induction, apart)], b.element)
        assert isinstance(product, VectorProduct)
        tile = RegisterBlock(builder, product, block, product.unit, (b.strides[-2], block.lanes))
        to = builder.address(place, [strips.induction], product.unit)
        for vector, value in enumerate(tile.excess(column, depth, steps)):
            lane_memory.write(
                builder, builder.address(to, [builder.i64(vector * block.lanes)], product.unit), value
            )
    builder.forget_reads()

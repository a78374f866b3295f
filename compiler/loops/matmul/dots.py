"""``linalg.matmul`` and ``linalg.batch_matmul``: accumulators in a register block over packed operands.

Operands are packed in scratch, row-major, in the type that the product reads. A block of `rows` x `strip` accumulators
stays in vector registers (`vector_kernels`) or tile registers (`amx_kernels`) over the whole of K. In a loop, K may
span several iterations, and A may be read in place: see `k_blocking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from triton_porting_kit.compiler.loops.arithmetic.elementwise import convert
from triton_porting_kit.compiler.loops.control.control_flow import reads_buffer
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul import scaled_factors, small_products
from triton_porting_kit.compiler.loops.matmul.amx_kernels import TileBlock
from triton_porting_kit.compiler.loops.matmul.epilogues import Epilogue
from triton_porting_kit.compiler.loops.matmul.factors import Columns, Left, Strips
from triton_porting_kit.compiler.loops.matmul.kept_factors import kept_right
from triton_porting_kit.compiler.loops.matmul.panels import Panel, Panels, Part
from triton_porting_kit.compiler.loops.matmul.products import (
    Elements,
    Product,
    TileProduct,
    VectorProduct,
    converted,
    product_for,
)
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, unrolled
from triton_porting_kit.compiler.loops.matmul.row_tables import RowTable
from triton_porting_kit.compiler.loops.matmul.software_prefetch import Fetch, lines_ahead, steps_between
from triton_porting_kit.compiler.loops.matmul.tile_prefetch import Beside, nothing, tiles_ahead
from triton_porting_kit.compiler.loops.matmul.vector_kernels import RegisterBlock
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import NOWHERE, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.graph import cost, reads_memory
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Splat, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.tile_loops import chunk

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
        start = _start_of(builder, left, batch)
        a_part = Left(start, builder.i64(depth * product.count), builder.i64(1))
        if isinstance(left, Columns):
            a_part = Left.of_columns(builder, start, left.strides[-1], depth)
        if excess is not None:
            _measure(lowering, product, block, right, excess, builder.i64(depth), batch)
        begun, no, one = builder.constant(not from_zero, "i1"), builder.constant(0, "i1"), builder.i64(1)
        part = Part(a_part, right, builder.i64(depth), one, excess, begun=begun, stores=no, known=no)
        _multiply(lowering, product, block, part, accumulator, batch, fetch, initial=initial, beside=beside)

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
        with a.place() if isinstance(a, Load) else NOWHERE:  # it may be read in place
            _multiply(lowering, product, block, part, total, [], fetch, panel.epilogue)

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


def _start_of(builder: LoopBuilder, buffer: Buffer, batch: Sequence[Value]) -> Value:
    """The address of the first element of a matrix, for these `batch` indices."""
    terms = [builder.mul(i, builder.i64(buffer.strides[0])) for i in batch]
    return builder.address(buffer.pointer, terms, buffer.element)


def _multiply(
    lowering: Lowering,
    product: Product,
    block: Blocking,
    part: Part,
    c: Buffer,
    batch: Sequence[Value],
    fetch: Fetch | None = None,
    epilogue: Epilogue | None = None,
    initial: Tensor | None = None,
    beside: Beside = nothing,
) -> None:
    """c (or `initial`) + a * b over a `part` of K, whose length is a multiple of the units of one step, in c."""
    builder, a, b, depth = lowering.builder, part.left, part.right, part.depth
    (m, n), zero = c.shape[-2:], builder.i64(0)
    apart = builder.i64(b.pitch if isinstance(b, Strips) else 1)
    b_start, c_start = (_start_of(builder, buffer, batch) for buffer in (b, c))
    element = types.storage(product.element)
    room = _room(lowering, product, block, part)
    with builder.loop(zero, builder.i64(n), builder.i64(block.strip), points=n // block.strip) as strips:
        b_column = builder.address(b_start, [builder.mul(strips.induction, apart)], b.element)
        tile = _block(lowering, product, block, c, b)
        excess = _excess(builder, block, part, strips.induction, n)
        with builder.loop(zero, builder.i64(m), builder.i64(block.rows), points=m // block.rows) as rows:
            c_row = builder.address(
                c_start, [strips.induction, builder.mul(rows.induction, builder.i64(n))], c.element
            )
            at = rows.induction, strips.induction
            beside(*at)
            accumulators = _less(builder, _begun(builder, tile, block, part, initial, c_row, n, at), excess)

            def along(
                there: Left, column: Value, end: Value, sums: list[Value], before: Value = zero
            ) -> list[Value]:
                """The sums with `end` units more, of rows of A and a column of B; `before` units are done."""
                a_rows = _converted(lowering, there, end, b, room)

                def steps(start: Value, end: Value, sums: list[Value]) -> list[Value]:
                    with builder.loop(start, end, builder.i64(tile.units), sums) as loop:
                        loop.yields = tile.step(loop.arguments, a_rows, column, loop.induction)
                    return loop.results

                if fetch is None:
                    return steps(zero, end, sums)
                line = builder.i64(steps_between(product))
                with builder.loop(zero, end, line, sums) as lines:
                    start = lines.induction
                    fetch(*at, builder.add(before, start), there, start)
                    stop = builder.binary("arith.minsi", builder.add(start, line), end)
                    lines.yields = steps(start, stop, lines.arguments)
                return lines.results

            if isinstance(a, RowTable):
                each = builder.i64(a.units)
                with builder.loop(zero, part.iterations, builder.i64(1), accumulators) as iterations:
                    before = builder.mul(iterations.induction, each)
                    further = builder.mul(before, builder.i64(b.strides[-2]))
                    column = builder.address(b_column, [further], b.element)
                    there = a.left(builder, iterations.induction, rows.induction, block.rows)
                    iterations.yields = along(there, column, each, iterations.arguments, before)
                sums = iterations.results
            else:
                sums = along(a.from_row(builder, rows.induction, element), b_column, depth, accumulators)
            pitch = builder.i64(n)
            if epilogue is None:
                tile.store(sums, c_row, pitch)
            else:
                place, apart = epilogue.place(builder, *at)
                start = builder.select(part.stores, place, c_row)
                pitch = builder.select(part.stores, apart, pitch)
                with lowering.place_of(epilogue.store):
                    tile.store(sums, start, pitch)
                    epilogue.emit(lowering, part.stores, *at)


def _begun(
    builder: LoopBuilder,
    tile: RegisterBlock | TileBlock,
    block: Blocking,
    part: Part,
    initial: Tensor | None,
    c_row: Value,
    width: int,
    at: tuple[Value, Value],
) -> list[Value]:
    """What a register block at this row and column begins with: the `initial`, if there is one, or what is in c."""
    if initial is None:
        return tile.begin(part.begun, c_row, width)
    row, column = at
    evaluation = Evaluation(builder, frozenset(), {})
    values = []
    for down in range(block.rows):
        for vector in range(block.vectors):
            indices = (
                builder.add(row, builder.i64(down)),
                builder.add(column, builder.i64(vector * block.lanes)),
            )
            lanes = block.lanes
            point = Point(indices, 1 if lanes > 1 else -1, lanes)
            values.append(builder.broadcast(evaluation.at(initial, point), lanes))
    return values


def _room(lowering: Lowering, product: Product, block: Blocking, part: Part) -> Buffer | None:
    """Scratch for the rows of A of a register block, if these have to be converted."""
    if isinstance(part.left, RowTable) or not part.left.raw:
        return None
    assert isinstance(part.right, Strips)
    return lowering.scratch.allocate((block.rows, part.right.pitch), product.unit)


def _converted(lowering: Lowering, rows: Left, depth: Value, b: Buffer, room: Buffer | None) -> Left:
    """The first rows of A, converted to the type that is multiplied in `room`, which stays in L1, if there is one.

    `depth` is a multiple of the units of one iteration, which a packed `b` holds.
    """
    if room is None:
        return rows
    builder = lowering.builder
    count, pitch = room.shape
    lanes = chunk(b.shape[-2], lowering.target.lanes)
    zero, element = builder.i64(0), types.storage(rows.raw)
    starts = rows.rows(builder, zero, count, element, element)
    with builder.loop(zero, depth, builder.i64(lanes)) as region:
        for row, start in enumerate(starts):
            place = builder.address(start, [region.induction], element)
            found = lane_memory.read(builder, place, rows.raw, lanes, floor=builder.level)
            to = builder.address(room.pointer, [builder.i64(row * pitch), region.induction], room.element)
            lane_memory.write(builder, to, convert(builder, "arith.extf", found, rows.raw, room.element))
    builder.forget_reads()
    return Left(room.pointer, builder.i64(pitch), builder.i64(1))


def _block(
    lowering: Lowering, product: Product, block: Blocking, c: Buffer, b: Buffer
) -> RegisterBlock | TileBlock:
    """The micro-kernel that multiplies one block of sums `c` by a packed `b`, or by several of its shape."""
    builder, depth, pitch, sums = lowering.builder, b.shape[-2], b.strides[-2], c.element
    if isinstance(product, TileProduct):
        most = b.pitch if isinstance(b, Strips) else depth
        read = (c.shape[-2] + block.strip) * most * types.byte_size(product.unit)  # for one strip
        streams = read > lowering.target.caches.l1
        return TileBlock(builder, product.instruction, product.element, block, sums, pitch, streams=streams)
    assert isinstance(product, VectorProduct)
    units = unrolled(lowering.target, depth) if isinstance(product, Elements) else 1
    return RegisterBlock(builder, product, block, sums, pitch, units)


def _less(builder: LoopBuilder, values: list[Value], excess: list[Value]) -> list[Value]:
    """The accumulators, row by row, minus each column's excess."""
    return [builder.sub(value, more) for value, more in zip(values, cycle(excess))] if excess else values


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
        start = _start_of(builder, b, batch)
        column = builder.address(start, [builder.mul(strips.induction, apart)], b.element)
        assert isinstance(product, VectorProduct)
        tile = RegisterBlock(builder, product, block, product.unit, b.strides[-2])
        to = builder.address(place, [strips.induction], product.unit)
        for vector, value in enumerate(tile.excess(column, depth, steps)):
            lane_memory.write(
                builder, builder.address(to, [builder.i64(vector * block.lanes)], product.unit), value
            )
    builder.forget_reads()


def _excess(builder: LoopBuilder, block: Blocking, part: Part, column: Value, width: int) -> list[Value]:
    """The excess of each column in a block: the sum over the part's iterations."""
    if part.excess is None:
        return []
    element = part.right.element
    zero = builder.constant(0, vector_type(element, block.lanes))
    first = builder.address(part.excess, [column], element)
    with builder.loop(builder.i64(0), part.iterations, builder.i64(1), [zero] * block.vectors) as region:
        row = builder.address(first, [builder.mul(region.induction, builder.i64(width))], element)
        for vector, total in enumerate(region.arguments):
            place = builder.address(row, [builder.i64(vector * block.lanes)], element)
            more = lane_memory.read(builder, place, element, block.lanes, floor=builder.level)
            region.yields.append(builder.add(total, more))
    return region.results

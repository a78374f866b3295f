"""Products of small tiles that are loaded whole: read where they are, without packing.

Packing pays by reading an operand in order, and again. A tile whose rows follow each other in a fraction of L1 is in
order already, and reading it for the product brings it there. A program of such a product is so short that it waits for
memory most of its time; so it prefetches the tiles of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Left
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, Place
from triton_porting_kit.compiler.loops.matmul.software_prefetch import Fetch
from triton_porting_kit.compiler.loops.memory.row_prefetch import step_between
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import LINE
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor


def in_place(lowering: Lowering, product: Product, tensor: Tensor) -> Buffer | None:
    """A factor where it is in memory, as rows that follow each other; None if it has to be packed."""
    if not isinstance(product, Elements) or not isinstance(tensor, Load) or tensor.buffer is not None:
        return None
    access, (rows, columns) = tensor.access, tensor.shape[-2:]
    small = rows * columns * types.byte_size(access.element) <= lowering.target.caches.strip_bytes
    follows = len(access.shape) == 2 and access.is_contiguous(1) and access.strides[0].constant == columns
    if not small or not follows or not access.is_plain or access.mask is not None:
        return None
    if access.element != product.unit or types.storage(access.element) != access.element:
        return None
    zero = lowering.builder.i64(0)
    evaluation = Evaluation(lowering.builder, frozenset(), {})
    with tensor.place():
        start = access.pointer(evaluation, Point((zero, zero), -1, 1))
    return Buffer(tensor.shape, access.element, start)


def next_tiles(
    lowering: Lowering,
    operation: Operation,
    factors: Sequence[tuple[Tensor, Buffer]],
    block: Blocking,
    shape: tuple[int, int, int],
) -> Fetch | None:
    """The prefetch of what the next program reads, where the factors that are read in place are at a known distance.

    It is spread over a product of `shape` (M, N, K): all at once, the lines would fill the buffers of the core's loads,
    and what the product itself reads would wait. None if there is nothing to prefetch.
    """
    if not lowering.target.prefetches or operation.block.parent is not None:
        return None
    builder = lowering.builder
    tiles = []
    for tensor, buffer in factors:
        assert isinstance(tensor, Load)
        step = step_between(lowering, None if tensor.definition is None else tensor.definition.owner)
        if step is not None:
            size = buffer.shape[0] * buffer.shape[1] * types.byte_size(buffer.element)
            tiles.append((builder.address(buffer.pointer, [step], buffer.element), size // LINE))
    if not tiles:
        return None
    (m, n, k), steps = shape, LINE // types.byte_size(factors[0][1].element)
    times = -(-k // steps)
    calls = block.blocks(m, n) * times

    def fetch(at: Place, k: Value, left: Left, along: Value) -> None:
        time = builder.binary("arith.divui", k, builder.i64(steps))
        number = builder.add(builder.mul(at.number(builder), builder.i64(times)), time)
        for start, lines in tiles:
            each = -(-lines // calls)
            first = builder.address(start, [builder.mul(number, builder.i64(each * LINE))], "i8")
            for line in range(each):
                place = builder.address(first, [builder.i64(line * LINE)], "i8")
                lane_memory.prefetch(builder, place, lane_memory.L1)

    return fetch

"""Products of small tiles that are loaded whole: read where they are, without packing.

Packing pays by reading an operand in order, and again. A tile whose rows follow each other in a fraction of L1 is in
order already, and reading it for the product brings it there. A program of such a product is so short that it waits for
memory most of its time; so it prefetches the tiles of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product
from triton_porting_kit.compiler.loops.memory.row_prefetch import step_between_programs
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor

LINE = 64
"""Bytes of a cache line."""


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


def prefetch_next(lowering: Lowering, operation: Operation, factors: Sequence[tuple[Tensor, Buffer]]) -> None:
    """Prefetch what the next program reads, where the factors that are read in place are at a known distance."""
    if not lowering.target.prefetches or operation.block.parent is not None:
        return
    builder = lowering.builder
    for tensor, buffer in factors:
        assert isinstance(tensor, Load)
        step = step_between_programs(lowering, tensor)
        if step is None or step.constant == 0:
            continue
        size = types.byte_size(buffer.element)
        elements, line = buffer.shape[0] * buffer.shape[1], LINE // size
        start = builder.address(buffer.pointer, [step], buffer.element)
        with builder.loop(builder.i64(0), builder.i64(elements), builder.i64(line)) as lines:
            place = builder.address(start, [lines.induction], buffer.element)
            lane_memory.prefetch(builder, place, lane_memory.L1)

"""Software prefetch of columns: a tile whose rows are short and lie far apart prefetches rows further down.

A loop that walks down some columns of a matrix reads a piece of each row. Hardware prefetchers do not follow: they stop
at page ends, and every row may begin on another page. The rows of the loop's next tile continue those of this one, so
each piece prefetches the one `ROWS` rows below it. At the end of the columns, the prefetched lines go unused.

A right operand of 8-bit numbers that are converted while they are packed prefetches wherever its rows are: so many
instructions convert a row that the core does not come to the next row's loads in time. On a Xeon with AMX, weights in
rows of 4 KiB take 0.8 of the time by that, and those of E4M3 half of it with AVX2. Weights of bf16, and bytes that are
not converted, gain nothing.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.growth import FOR
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.tensors import Elementwise, Tensor

ROWS = 16
"""How many rows ahead to prefetch."""

CONVERTED_ROWS = 8
"""The same for rows that are converted. More of them replace each other in L1 if they are 4 KiB apart."""

FAR = 2048
"""Bytes from one row to the next above which hardware prefetchers do not follow."""

LONGEST = 1024
"""Bytes of a row above which the hardware prefetches enough of it."""


def distance(lowering: Lowering, operation: Operation, access: Access) -> Value | None:
    """How far ahead of each element of a load to prefetch, in elements; None where that would not help."""
    outer = operation.block.parent
    if not lowering.target.prefetches or outer is None or outer.name != FOR or len(access.shape) != 2:
        return None
    pitch, size = access.strides[0].constant, types.byte_size(access.element)
    if not isinstance(pitch, int) or not access.is_contiguous(1) or access.wraps:
        return None
    if pitch * size < FAR or access.shape[1] * size > LONGEST:
        return None
    return lowering.builder.i64(ROWS * pitch)


def prefetch_converted(lowering: Lowering, operation: Operation, tensor: Tensor) -> None:
    """Let the rows of 8-bit numbers that a right operand of an `operation` is converted from prefetch those below."""
    outer, builder = operation.block.parent, lowering.builder
    if not lowering.target.prefetches or outer is None or outer.name != FOR or isinstance(tensor, Load):
        return
    while isinstance(tensor, Elementwise) and len(tensor.operands) == 1:
        (tensor,) = tensor.operands
    if not isinstance(tensor, Load) or tensor.ahead is not None or types.byte_size(tensor.element) > 1:
        return
    access = tensor.access
    if len(access.shape) == 2 and access.is_contiguous(1) and not access.wraps:
        tensor.ahead = builder.mul(access.strides[0], builder.i64(CONVERTED_ROWS))

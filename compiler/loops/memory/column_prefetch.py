"""Software prefetch of columns: a tile whose rows are short and lie far apart prefetches rows further down.

A loop that walks down some columns of a matrix reads a piece of each row. Hardware prefetchers do not follow: they stop
at page ends, and every row may begin on another page. The rows of the loop's next tile continue those of this one, so
each piece prefetches the one `ROWS` rows below it. At the end of the columns, the prefetched lines go unused.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.access import Access

ROWS = 16
"""How many rows ahead to prefetch."""

FAR = 2048
"""Bytes from one row to the next above which hardware prefetchers do not follow."""

LONGEST = 1024
"""Bytes of a row above which the hardware prefetches enough of it."""


def distance(lowering: Lowering, operation: Operation, access: Access) -> Value | None:
    """How far ahead of each element of a load to prefetch, in elements; None where that would not help."""
    outer = operation.block.parent
    if not lowering.target.prefetches or outer is None or outer.name != "scf.for" or len(access.shape) != 2:
        return None
    pitch, size = access.strides[0].constant, types.byte_size(access.element)
    if not isinstance(pitch, int) or not access.is_contiguous(1) or access.wraps:
        return None
    if pitch * size < FAR or access.shape[1] * size > LONGEST:
        return None
    return lowering.builder.i64(ROWS * pitch)

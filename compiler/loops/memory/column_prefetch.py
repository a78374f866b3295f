"""Software prefetch of columns: short pieces of memory that lie far apart prefetch what is read further on.

A loop that walks down some columns of a matrix reads a piece of each row. Hardware prefetchers do not follow: they stop
at page ends, and every row may begin on another page. The rows of the loop's next tile continue those of this one, so
each piece prefetches the one `ROWS` rows below it. At the end of the columns, the prefetched lines go unused.

A right operand whose columns lie in memory, as the weights of a linear layer, is read a piece of each column at a time.
These are more streams than the hardware follows, so each piece of 16-bit numbers prefetches the one `ALONG` bytes
further on. A product by such weights takes 0.85 to 0.95 of the time on a Xeon with AMX. With AVX2 it takes 0.8, if the
weights are not in L2. Numbers of 8 and 32 bits are left alone: prefetches make their products up to a tenth faster if
they come from memory, and as much slower if they are in L3.

A right operand of 8-bit numbers in rows is converted while it is packed, and prefetches wherever its rows are. A row
takes so many instructions that the core issues the loads of the next rows too late. Weights in rows of 4 KiB take 0.82
to 0.96 of the time on a Xeon with AMX. With AVX2 they take 0.84 to 0.92, and those of E4M3 0.5 to 0.6. Rows of bf16,
and of bytes that are not converted, gain nothing.

Rows or columns of a right operand that lie anywhere in memory, as those of a paged cache, prefetch those that are read
next. Attention of one token takes 0.6 of the time on Zen 3, where each core looks fewer instructions ahead than on a
Xeon with AMX. There it takes as long as without.
"""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.growth import FOR, advance
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.tensors import Elementwise, Tensor, closure
from triton_porting_kit.compiler.loops.tiles.transposed import reads_along

ROWS = 16
"""How many rows ahead to prefetch."""

CONVERTED_ROWS = 8
"""The same for rows that are converted. More of them replace each other in L1 if they are 4 KiB apart."""

GATHERED_ROWS = 8
"""The same for rows that lie anywhere in memory: with 4 or 16, attention of one token takes a tenth longer."""

CHEAP = 8
"""Most simple operations that find such a row."""

ALONG = 512
"""Bytes ahead in columns that a loop walks along."""

HALF = 2
"""Bytes of the numbers in such columns."""

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


def prefetch_right(lowering: Lowering, operation: Operation, tensor: Tensor) -> None:
    """Let a right operand of an `operation` prefetch what is packed later, as far as the hardware does not."""
    if not lowering.target.prefetches:
        return
    _prefetch_gathered(lowering, tensor)
    outer = operation.block.parent
    if outer is None or outer.name != FOR:
        return
    loads = [part for part in closure([tensor]) if isinstance(part, Load) and len(part.shape) == 2]
    for load in loads:
        if load.ahead is None and _walks_along(lowering, load):
            load.ahead = lowering.builder.i64(ALONG // HALF)
    if not isinstance(tensor, Load):
        _prefetch_rows_below(lowering, tensor)


def _prefetch_gathered(lowering: Lowering, tensor: Tensor) -> None:
    """Let gathered rows or columns, each of which lies side by side in memory, prefetch those further on."""
    columns, rows = len(tensor.shape) - 1, len(tensor.shape) - 2
    # A block of columns is read at a time.
    for along, across, distance in (
        (columns, rows, GATHERED_ROWS),
        (rows, columns, max(GATHERED_ROWS, lowering.target.lanes)),
    ):
        others = dict(reads_along(tensor, across))
        for part, dimension in reads_along(tensor, along):
            if not isinstance(part, Gather) or part not in others or cost(part.offsets, {}) > CHEAP:
                continue
            if part.is_contiguous(lowering.builder, dimension):
                part.ahead = others[part], distance


def _walks_along(lowering: Lowering, load: Load) -> bool:
    """Whether each iteration of a loop loads the 16-bit numbers that follow those of the last one in memory."""
    op = None if load.definition is None else LoadOp.dyn_cast(load.definition.owner)
    if op is None or types.byte_size(load.element) != HALF:
        return False
    by = advance(lowering, op.offset, op.result.block)
    along = [axis for axis in (0, 1) if load.access.is_contiguous(axis) and axis not in load.access.wraps]
    return by is not None and any(by.constant == load.shape[axis] for axis in along)


def _prefetch_rows_below(lowering: Lowering, tensor: Tensor) -> None:
    """Let the rows of 8-bit numbers that an operand is converted from prefetch those below."""
    while isinstance(tensor, Elementwise) and len(tensor.operands) == 1:
        (tensor,) = tensor.operands
    if not isinstance(tensor, Load) or tensor.ahead is not None or types.byte_size(tensor.element) > 1:
        return
    access = tensor.access
    if len(access.shape) == 2 and access.is_contiguous(1) and not access.wraps:
        tensor.ahead = lowering.builder.mul(access.strides[0], lowering.builder.i64(CONVERTED_ROWS))

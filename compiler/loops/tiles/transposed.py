"""Transposed reads: tensors whose memory is contiguous along rows while lanes run along columns, or the reverse.

A weight matrix behind ``tl.trans`` is contiguous along columns, but rows are wanted: the lanes of a row would be loaded
one by one. Instead, blocks of it are read along columns and transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.lane_memory import shuffled
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Point, Tensor
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop
from triton_porting_kit.compiler.target import CpuTarget

UNIT_BYTES = 4
"""Bytes of a unit, which is moved as a whole: one element, or several neighbours along the second-to-last dimension."""

UNITS = 4
"""Units read from one column at a time. They fill 128 bits, within which x86-64 and aarch64 interleave cheaply."""


def lies_across(tensor: Tensor, target: CpuTarget, count: int = 1) -> bool:
    """Whether to read `tensor`, in units of `count` elements along its second-to-last dimension, in transposed blocks.

    That is so if everything it reads is contiguous in memory along that dimension, and nothing in it is expensive
    enough to be kept for other uses while it is read.
    """
    last = len(tensor.shape) - 1
    return (
        target.shuffles
        and last >= 1
        and count * types.byte_size(tensor.element) == UNIT_BYTES
        and tensor.shape[-1] % target.lanes == 0
        and tensor.shape[-2] % (UNITS * count) == 0
        and _directions(tensor, last - 1) == {True}
        and _directions(tensor, last) == {False}
        and cost(tensor, {}) < EXPENSIVE
    )


def _directions(tensor: Tensor, dimension: int) -> set[bool]:
    """For everything that a tensor reads from memory and that varies along a dimension: whether it is contiguous
    there. Each operand is looked at once for a dimension, since paths to it can be exponentially many."""
    found: set[bool] = set()
    stack = [(tensor, dimension)]
    seen: set[tuple[Tensor, int]] = set()
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        part, dimension = at[0].buffer or at[0], at[1]
        if isinstance(part, Buffer):
            found.add(part.strides[dimension] == 1)
        elif isinstance(part, Load):
            found.add(part.access.is_contiguous(dimension) and dimension not in part.access.wraps)
        elif isinstance(part, Gather):
            found.add(False)
        else:
            for index, operand in enumerate(part.operands):
                followed = part.operand_dimensions(index)
                if dimension in followed:
                    stack.append((operand, followed.index(dimension)))
    return found


def transpose_tile(
    evaluation: Evaluation,
    tensor: Tensor,
    target: CpuTarget,
    write: Callable[[Point, Value], None],
    *,
    unit: str,
    count: int = 1,
) -> None:
    """Emit loops that pass the whole of a transposed `tensor` to `write`, a vector of units of one row at a time.

    The points count units of `count` elements along the second-to-last dimension; `unit` is their type.
    """
    builder, lanes = evaluation.builder, target.lanes
    *outer, depth, width = tensor.shape
    row, column = len(outer), len(outer) + 1
    piece = vector_type(types.register(unit), UNITS)

    def block(point: Point) -> None:
        *indices, across, down = point.indices
        first = builder.mul(down, builder.i64(UNITS))
        element = builder.mul(down, builder.i64(UNITS * count))
        left = builder.mul(across, builder.i64(lanes))
        columns = []
        for index in range(lanes):
            place = (*indices, element, builder.add(left, builder.i64(index)))
            value = evaluation.at(tensor, Point(place, row, UNITS * count))
            value = builder.broadcast(value, UNITS * count)
            if value.type != piece:
                text = f"vector.bitcast {value.name} : {value.type} to {piece}"
                value = builder.pure(text, piece, (value,))
            columns.append(value)
        for index, value in enumerate(_transposed(builder, columns)):
            place = (*indices, builder.add(first, builder.i64(index)), left)
            write(Point(place, column, lanes), value)

    # Down a few columns first: the lines that a block reads are those of the next block.
    tile_loop(builder, (*outer, width // lanes, depth // (UNITS * count)), 1, block)


def _transposed(builder: LoopBuilder, columns: list[Value]) -> list[Value]:
    """The `UNITS` rows of a block, given its columns: a 4 by 4 transposition in each 128 bits.

    Two steps exchange bits 0 and 1 of the column and unit numbers (Eklundh, A Fast Computer Method for Matrix
    Transposing, IEEE Transactions on Computers C-21, 1972).
    """
    lanes = len(columns)
    every_fourth = [_beside(builder, columns[index::UNITS]) for index in range(UNITS)]
    near, far = (_interleaved(builder, every_fourth[i], every_fourth[i + 1], 1, lanes) for i in (0, 2))
    return [value for a, b in zip(near, far, strict=True) for value in _interleaved(builder, a, b, 2, lanes)]


def _beside(builder: LoopBuilder, vectors: list[Value]) -> Value:
    """The concatenation of two, four, ... vectors."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [shuffled(builder, a, b, list(range(2 * a.lanes))) for a, b in pairs]
    return vectors[0]


def _interleaved(builder: LoopBuilder, a: Value, b: Value, size: int, lanes: int) -> list[Value]:
    """`a` and `b` interleaved in groups of `size` lanes: from the lower half of each 128 bits, and from the upper
    half."""
    halves = []
    for half in (0, UNITS // 2):
        starts = [
            start + half + group for start in range(0, lanes, UNITS) for group in range(0, UNITS // 2, size)
        ]
        chosen = [
            lane
            for start in starts
            for first in (start, start + lanes)
            for lane in range(first, first + size)
        ]
        halves.append(shuffled(builder, a, b, chosen))
    return halves

"""Transposed reads: tensors whose memory is contiguous along rows while lanes run along columns, or the reverse.

A weight matrix behind ``tl.trans`` is contiguous along columns, but rows are wanted: the lanes of a row would be loaded
one by one. Instead, blocks of it are read along columns and transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.graph import cost
from triton_porting_kit.compiler.loops.tiles.lane_memory import shuffled
from triton_porting_kit.compiler.loops.tiles.tensors import (
    EXPENSIVE,
    MEMORY_COST,
    Buffer,
    Point,
    Reindexed,
    Tensor,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop
from triton_porting_kit.compiler.target import CpuTarget

UNIT_BYTES = 4
"""Bytes of a unit, which is moved as a whole: one element, or several neighbours along the second-to-last dimension."""

UNITS = 4
"""Units read from one column at a time. They fill 128 bits, within which x86-64 and aarch64 interleave cheaply."""


SQUARE = 16
"""Units in the rows and columns of a square, and lanes of a vector of them."""

Along: TypeAlias = tuple[Tensor, int]
"""A tensor, and one of its dimensions."""


def elements_of_unit(element: str) -> int:
    """How many elements a unit holds."""
    return max(1, UNIT_BYTES // types.byte_size(element))


def lies_across(tensor: Tensor, target: CpuTarget, columns: Collection[Along] = ()) -> bool:
    """Whether to read `tensor`, in units of elements along its second-to-last dimension, in transposed blocks.

    That is so if everything it reads is contiguous in memory along that dimension, as the `columns` are, and nothing in
    it is expensive enough to be kept for other uses while it is read.
    """
    last, count = len(tensor.shape) - 1, elements_of_unit(tensor.element)
    return (
        target.shuffles
        and last >= 1
        and count * types.byte_size(tensor.element) == UNIT_BYTES
        and tensor.element != "i1"
        and tensor.shape[-1] % target.lanes == 0
        and tensor.shape[-2] % (UNITS * count) == 0
        and _directions(tensor, last - 1, columns=columns) == {True}
        and _directions(tensor, last) == {False}
        and cost(tensor, {part: MEMORY_COST for part, _ in columns}) < EXPENSIVE
    )


def gathers_for_all(tensor: Tensor, index: int) -> bool:
    """Whether lanes of a row of operand `index` are loaded one by one, and several rows of `tensor` read that row."""
    dimensions, last = tensor.operand_dimensions(index), len(tensor.shape) - 1
    return (
        last >= 1
        and tensor.shape[last] > 1
        and dimensions[-1:] == [last]
        and tensor.spreads(index)
        and False in _directions(tensor.operands[index], len(dimensions) - 1)
    )


def lies_in_columns(tensor: Tensor) -> bool:
    """Whether everything that a matrix reads is contiguous in memory down its columns, and something not along its
    rows.
    """
    last = len(tensor.shape) - 1
    down = _directions(tensor, last - 1, wraps=True)
    return down == {True} and False in _directions(tensor, last)


def turned(tensor: Tensor) -> Reindexed:
    """A tensor with its last two dimensions exchanged."""
    *outer, rows, columns = tensor.shape
    last = len(outer) + 1
    return Reindexed((*outer, columns, rows), tensor, [*range(len(outer)), last, last - 1])


def _directions(
    tensor: Tensor, dimension: int, *, wraps: bool = False, columns: Collection[Along] = ()
) -> set[bool]:
    """For everything that a tensor reads along a dimension: whether it is contiguous there, as the `columns` are;
    unless it `wraps`, without wrapping around.
    """
    found: set[bool] = set()
    for part, along in reads_along(tensor, dimension):
        if isinstance(part, Buffer):
            found.add(part.strides[along] == 1)
        elif isinstance(part, Load):
            found.add((wraps or along not in part.access.wraps) and part.access.is_contiguous(along))
        else:
            found.add((part, along) in columns)
    return found


def reads_along(tensor: Tensor, dimension: int) -> Iterator[Along]:
    """What a tensor reads from memory or scratch that varies along a dimension, and along which dimension of its own.

    Each operand is looked at once for a dimension, since paths to it can be exponentially many.
    """
    stack = [(tensor, dimension)]
    seen: set[Along] = set()
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        part, along = at[0].buffer or at[0], at[1]
        if isinstance(part, Buffer | Load | Gather):
            yield part, along
            continue
        for index, operand in enumerate(part.operands):
            followed = part.operand_dimensions(index)
            if along in followed:
                stack.append((operand, followed.index(along)))


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
    beside = _blocks_beside(tensor, lanes, count)
    units = beside * UNITS
    piece = vector_type(types.register(unit), units)

    def block(point: Point) -> None:
        *indices, across, down = point.indices
        first = builder.mul(down, builder.i64(units))
        element = builder.mul(down, builder.i64(units * count))
        left = builder.mul(across, builder.i64(lanes))
        columns = []
        for index in range(lanes):
            place = (*indices, element, builder.add(left, builder.i64(index)))
            value = evaluation.at(tensor, Point(place, row, units * count))
            value = builder.broadcast(value, units * count)
            if value.type != piece:
                text = f"vector.bitcast {value.name} : {value.type} to {piece}"
                value = builder.pure(text, piece, (value,))
            columns.append(value)
        for start in range(0, units, UNITS):
            chosen = [*range(start, start + UNITS)]
            parts = columns if beside == 1 else [shuffled(builder, part, part, chosen) for part in columns]
            for index, value in enumerate(_transposed(builder, parts), start):
                place = (*indices, builder.add(first, builder.i64(index)), left)
                write(Point(place, column, lanes), value)

    # Down a few columns first: the lines that a block reads are those of the next block.
    tile_loop(builder, (*outer, width // lanes, depth // (units * count)), 1, block)


def _blocks_beside(tensor: Tensor, lanes: int, count: int) -> int:
    """How many blocks along K are read at a time: two, if elements are computed and a column of both fits a vector.

    Half a vector is converted in as many instructions as a whole one.
    """
    both = 2 * UNITS * count
    return 2 if cost(tensor, {}) > 1 and both <= lanes and tensor.shape[-2] % both == 0 else 1


def _transposed(builder: LoopBuilder, columns: list[Value]) -> list[Value]:
    """The `UNITS` rows of a block, given its columns: a 4 by 4 transposition in each 128 bits.

    Two steps exchange bits 0 and 1 of the column and unit numbers (Eklundh, A Fast Computer Method for Matrix
    Transposing, IEEE Transactions on Computers C-21, 1972).
    """
    return _in_128_bits(builder, [_beside(builder, columns[index::UNITS]) for index in range(UNITS)])


def _in_128_bits(builder: LoopBuilder, columns: list[Value]) -> list[Value]:
    """Four vectors, transposed 4 by 4 in each 128 bits."""
    lanes = columns[0].lanes
    near, far = (_interleaved(builder, columns[i], columns[i + 1], 1, lanes) for i in (0, 2))
    return [value for a, b in zip(near, far, strict=True) for value in _interleaved(builder, a, b, 2, lanes)]


def interleaved(builder: LoopBuilder, low: Value, high: Value) -> Value:
    """Interleave two vectors: each lane of the result holds one lane of `low` and one of `high`, in twice the bits."""
    lanes, bits = low.lanes, types.BITS[low.element]
    both = vector_type(low.element, 2 * lanes)
    value = builder.pure(
        f"vector.interleave {low.name}, {high.name} : {low.type} -> {both}", both, (low, high)
    )
    wide = vector_type(f"i{2 * bits}", lanes)
    return builder.pure(f"vector.bitcast {value.name} : {both} to {wide}", wide, (value,))


def rows_of_unit(evaluation: Evaluation, tensor: Tensor, point: Point, count: int) -> list[Value]:
    """The `count` neighbours along the second-to-last dimension that a unit holds; the point counts units."""
    builder, (*outer, row, column) = evaluation.builder, point.indices
    first = builder.mul(row, builder.i64(count))
    points = (
        Point((*outer, builder.add(first, builder.i64(index)), column), point.axis, point.width)
        for index in range(count)
    )
    return [builder.broadcast(evaluation.at(tensor, at), point.width) for at in points]


def unit_of(builder: LoopBuilder, rows: list[Value]) -> Value:
    """Units of one, two, four, ... neighbours, the first one in the lowest bits."""
    while len(rows) > 1:
        rows = [interleaved(builder, *rows[i : i + 2]) for i in range(0, len(rows), 2)]
    return rows[0]


def upper_halves(builder: LoopBuilder, low: Value, high: Value) -> Value:
    """The upper 16 bits of two f32 in each i32, those of `low` below: two bfloat16 that represent them exactly."""
    integers = vector_type("i32", low.lanes)
    low, high = (builder.cast("arith.bitcast", value, integers) for value in (low, high))
    below = builder.binary("arith.shrui", low, builder.constant(16, integers))
    above = builder.binary("arith.andi", high, builder.constant(-1 << 16, integers))
    return builder.binary("arith.ori", above, below)


def in_squares(tensor: Tensor, target: CpuTarget, count: int) -> bool:
    """Whether to read a matrix that lies in columns in transposed squares of units: `count` elements along its rows."""
    return (
        target.shuffles
        and len(tensor.shape) == 2
        and count > 1
        and count * types.byte_size(tensor.element) == UNIT_BYTES
        and tensor.shape[0] % target.lanes == 0
        and tensor.shape[1] % (target.lanes * count) == 0
        and target.lanes == SQUARE
        and lies_in_columns(tensor)
        and cost(tensor, {}) < EXPENSIVE
    )


def transpose_squares(
    evaluation: Evaluation, tensor: Tensor, target: CpuTarget, place: Buffer, count: int
) -> None:
    """Emit loops that write a matrix to `place`, which has rows, in squares of units of `count` elements."""
    builder, lanes = evaluation.builder, target.lanes
    rows, columns = tensor.shape

    def block(point: Point) -> None:
        across, down = point.indices
        top, left = builder.mul(down, builder.i64(lanes)), builder.mul(across, builder.i64(lanes * count))

        def unit(index: int) -> Value:
            parts = []
            for part in range(count * index, count * (index + 1)):
                at = Point((top, builder.add(left, builder.i64(part))), 0, lanes)
                parts.append(builder.broadcast(evaluation.at(tensor, at), lanes))
            return unit_of(builder, parts)

        for index, row in enumerate(_square(builder, [unit(index) for index in range(lanes)])):
            to = place.address(builder, Point((builder.add(top, builder.i64(index)), left), -1, 1))
            lane_memory.write(builder, to, row)

    # Down first: a line has several squares.
    tile_loop(builder, (columns // (lanes * count), rows // lanes), 1, block)


def _square(builder: LoopBuilder, columns: list[Value]) -> list[Value]:
    """The rows of a square, given its columns: transposed in each 128 bits, then 128 bits at a time."""
    lanes = len(columns)
    parts = [_in_128_bits(builder, columns[i : i + UNITS]) for i in range(0, lanes, UNITS)]
    found = [_of_128_bits(builder, [part[index] for part in parts]) for index in range(UNITS)]
    return [found[index % UNITS][index // UNITS] for index in range(lanes)]


def _of_128_bits(builder: LoopBuilder, rows: list[Value]) -> list[Value]:
    """Four vectors of four times 128 bits each, transposed."""

    def pairs(vectors: list[Value], first: tuple[int, ...], second: tuple[int, ...]) -> list[Value]:
        """128 bits of each two vectors beside each other: the `first` of both, and the `second`."""
        found = []
        for blocks in (first, second):
            lanes = [block * UNITS + lane for block in blocks for lane in range(UNITS)]
            chosen = [*lanes, *(vectors[0].lanes + lane for lane in lanes)]
            found += [
                shuffled(builder, a, b, chosen) for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return found

    low, high = (pairs(rows, (0, 1), (2, 3))[i : i + 2] for i in (0, 2))
    return [*pairs(low, (0, 2), (1, 3)), *pairs(high, (0, 2), (1, 3))]


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

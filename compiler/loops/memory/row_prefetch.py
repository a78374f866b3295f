"""Software prefetch of rows: the last loop over a program's row prefetches the row of the next program.

A kernel that walks each row several times, such as a normalisation, waits for memory in its first loop over the row and
leaves memory idle in the others. So does one that reads a row once, in a scan, and then walks the result. Hardware
prefetchers do not help: they stop at page ends, and a row of a thousand floats is a page.

In a loop, as one over parts of a row that is longer than a tile, the next iteration's row is prefetched.

A store that follows a reduction of its row also prefetches, for writing, the row that is stored next: a store to a line
that is in no cache waits until the line was read. If rows are those of a loop's iterations, as in the backward pass of
a normalisation, the store prefetches both kinds. If they are those of programs, it prefetches rows to write only where
it prefetches none to read: memory is busy then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import Reduce, Scan, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.growth import FOR, Growth
from triton_porting_kit.compiler.loops.memory.writes import Write
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor, closure

LARGEST = 1 << 14
"""Most bytes of a row: two rows, and what is written, fit into an L1 cache."""


class Row(NamedTuple):
    """A row to prefetch: how what the next program or iteration accesses lies behind it, in elements."""

    access: Access
    step: Value
    writes: bool = False


def ahead(
    lowering: Lowering,
    operation: Operation,
    shape: tuple[int, ...],
    inputs: Iterable[Tensor],
    writes: Sequence[Write] = (),
) -> list[Row]:
    """The rows that the loop of a store or reduction over this shape can prefetch: walked before, and elsewhere next.

    A row that is broadcast or transposed to fill a tile is not read at the tile's own points, so it is left out. So is,
    in a reduction, a row that is read after it. `writes` are what the loop stores.
    """
    loop = operation.block.parent
    if not lowering.target.prefetches or len(shape) != 1 or (loop is not None and loop.name != FOR):
        return []
    reads = _read(lowering, operation, shape, inputs)
    if not Store.isa(operation):
        return reads
    stored = [] if loop is None and reads else _written(lowering, operation, shape, writes)
    # In the gradient of a normalisation, prefetching what is read made stores slower without what is written.
    return stored + reads if loop is None or stored else []


def _read(
    lowering: Lowering, operation: Operation, shape: tuple[int, ...], inputs: Iterable[Tensor]
) -> list[Row]:
    found = []
    for row in closure(inputs):
        # With another shape, a point of the loop does not say where in the row it is.
        again = isinstance(row, Load) and (row.walked or Scan.isa(operation))
        if not isinstance(row, Load) or not again or row.shape != shape or not _is_row(row.access):
            continue
        if Store.isa(operation) or not lowering.needed_after(row, operation):
            owner = None if row.definition is None else row.definition.owner
            step = step_between(lowering, owner, operation.block.parent)
            if step is not None:
                found.append(Row(row.access, step))
    return found


def _written(
    lowering: Lowering, operation: Operation, shape: tuple[int, ...], writes: Sequence[Write]
) -> list[Row]:
    if not any(_reduces(before, shape) for before in operation.block.operations[: operation.position]):
        return []
    found = []
    for write in writes:
        step = step_between(lowering, write.operation, operation.block.parent)
        if write.access is not None and step is not None and _is_row(write.access):
            found.append(Row(write.access, step, writes=True))
    return found


def _reduces(operation: Operation, shape: tuple[int, ...]) -> bool:
    return (Reduce.isa(operation) or Scan.isa(operation)) and operation.operands[0].type.shape == shape


def prefetch(evaluation: Evaluation, point: Point, rows: Iterable[Row]) -> None:
    """Prefetch what comes next at `point`, for rows that are in bounds here and not written past the caches."""
    builder = evaluation.builder

    def emit(row: Row) -> list[Value]:
        start = row.access.pointer(evaluation, point)
        place = builder.address(start, [row.step], types.storage(row.access.element))
        lane_memory.prefetch(builder, place, lane_memory.L1, writes=row.writes)
        return []

    for row in rows:
        if not row.access.is_plain and row.access not in evaluation.unmasked:
            continue
        if row.access not in evaluation.streamed:
            emit(row)
        elif evaluation.past is not None:
            builder.if_else(evaluation.past, list[Value], partial(emit, row))


def _is_row(access: Access) -> bool:
    elements = max(access.shape, default=1)
    return (
        len(access.shape) == 1
        and access.is_contiguous(0)
        and access.mask is None
        and not access.wraps
        and elements * types.byte_size(access.element) <= LARGEST
    )


def step_between(lowering: Lowering, access: Operation | None, loop: Operation | None = None) -> Value | None:
    """How far behind is what a load or store accesses in the next program, or in the next iteration of a `loop`.

    In elements; None if that is not known, or if it is the same.
    """
    op = LoadOp.dyn_cast(access) or Store.dyn_cast(access)
    if op is None:
        return None
    growth = Growth(lowering, loop)
    moved = growth.of(op.base)
    if moved is None or moved.constant != 0:
        return None
    step = growth.of(op.offset)
    return None if step is None or step.constant == 0 else step

"""Software prefetch of rows: the last loop over a program's row prefetches the row of the next program.

A kernel that walks each row several times, such as a normalisation, waits for memory in its first loop over the row and
leaves memory idle in the others. So does one that reads a row once, in a scan, and then walks the result. Hardware
prefetchers do not help: they stop at page ends, and a row of a thousand floats is a page. Rows of the next iteration of
a loop are not prefetched: such loops, for example the backward pass of a normalisation, already keep memory busy, and
prefetching made that pass slower.
"""

from __future__ import annotations

from collections.abc import Iterable

from triton_porting_kit.compiler.dialect.operations import Load as LoadOp
from triton_porting_kit.compiler.dialect.operations import ProgramId, Scan, Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles import lane_memory
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor, closure

LARGEST = 1 << 14
"""Most bytes of a row: two rows, and what is written, fit into an L1 cache."""

_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")

Ahead = list[tuple[Load, Value]]
"""Loads, each with the distance to what the next program reads, in elements (i64)."""


def ahead(
    lowering: Lowering, operation: Operation, shape: tuple[int, ...], inputs: Iterable[Tensor]
) -> Ahead:
    """The rows that the loop of a store or reduction over this shape can prefetch: walked before, and elsewhere for the
    next program.

    A row that is broadcast or transposed to fill a tile is not read at the tile's own points, so it is left out. So is,
    in a reduction, a row that is read after it.
    """
    if not lowering.target.prefetches or operation.block.parent is not None or len(shape) != 1:
        return []
    found = []
    for row in closure(inputs):
        # With another shape, a point of the loop does not say where in the row it is.
        again = isinstance(row, Load) and (row.walked or Scan.isa(operation))
        if not isinstance(row, Load) or not again or row.shape != shape or not _is_row(row):
            continue
        if Store.isa(operation) or not lowering.needed_after(row, operation):
            step = step_between_programs(lowering, row)
            if step is not None and step.constant != 0:
                found.append((row, step))
    return found


def prefetch(evaluation: Evaluation, point: Point, rows: Ahead) -> None:
    """Prefetch what the next program reads at `point`, for rows that are in bounds here."""
    builder = evaluation.builder
    for row, step in rows:
        access = row.access
        if access.is_plain or access in evaluation.unmasked:
            place = builder.address(access.pointer(evaluation, point), [step], types.storage(access.element))
            lane_memory.prefetch(builder, place, lane_memory.L1)


def _is_row(load: Load) -> bool:
    access = load.access
    elements = max(access.shape, default=1)
    return (
        len(access.shape) == 1
        and access.is_contiguous(0)
        and access.mask is None
        and not access.wraps
        and elements * types.byte_size(access.element) <= LARGEST
    )


def step_between_programs(lowering: Lowering, load: Load) -> Value | None:
    """How much a load's offset grows from one program to the next; None if not known."""
    op = None if load.definition is None else LoadOp.dyn_cast(load.definition.owner)
    if op is None:
        return None
    growth = _Growth(lowering)
    moved = growth.of(op.base)
    if moved is None or moved.constant != 0:
        return None
    return growth.of(op.offset)


class _Growth:
    """How much scalars grow when the first program id grows by 1."""

    DEPTH = 30
    """Most operations to follow; offsets of rows take fewer."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self._known: dict[Def, Value | None] = {}

    def of(self, definition: Def, depth: int = 0) -> Value | None:
        """The growth, i64, the constant 0 for a value that does not change; None if not known."""
        if definition not in self._known:
            self._known[definition] = self._of(definition, depth)
        return self._known[definition]

    def _of(self, definition: Def, depth: int) -> Value | None:
        builder, owner = self._lowering.builder, definition.owner
        if owner is None:
            return builder.i64(0) if definition.block.parent is None else None
        if (position := ProgramId.dyn_cast(owner)) is not None:
            return builder.i64(1 if position.axis == 0 else 0)
        if owner.regions or depth == self.DEPTH:
            return None
        parts = [self.of(operand, depth + 1) for operand in owner.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if all(part.constant == 0 for part in known):
            return builder.i64(0)
        if owner.name in _CASTS:
            return known[0]
        if owner.name == "arith.addi":
            return builder.add(*known)
        if owner.name == "arith.subi":
            return builder.sub(*known)
        if owner.name == "arith.muli" and any(part.constant == 0 for part in known):
            varying = 1 if known[0].constant == 0 else 0
            factor = self._lowering.scalar(owner.operands[1 - varying])
            if isinstance(factor.constant, int):
                factor = builder.i64(factor.constant)
            elif factor.type != "i64":
                factor = builder.cast("arith.extsi", factor, "i64")
            return builder.mul(known[varying], factor)
        return None

"""How much scalars grow from program to program, or from one iteration of a loop to the next."""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import ProgramId
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering

FOR = "scf.for"

_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")


def advance(lowering: Lowering, definition: Def, body: Block) -> Value | None:
    """How much a value grows per iteration of the loop with this `body`, which carries it; None if not known.

    A value from outside is not known: if an outer loop carries it, it grows in that loop's iterations only.
    """
    if definition not in body.arguments[1:]:
        return None
    owner = body.operations[-1].operands[body.arguments.index(definition) - 1].owner
    if owner is None or owner.block is not body or owner.name != "arith.addi":
        return None
    others = [operand for operand in owner.operands if operand is not definition]
    return lowering.scalar(others[0]) if len(others) == 1 and others[0].block is not body else None


class Growth:
    """How much scalars grow when the first program id grows by 1, or, with a `loop`, in the next iteration of it."""

    DEPTH = 30
    """Most operations to follow; offsets of rows take fewer."""

    def __init__(self, lowering: Lowering, loop: Operation | None) -> None:
        self._lowering = lowering
        self._loop = loop
        self._known: dict[Def, Value | None] = {}

    def of(self, definition: Def, depth: int = 0) -> Value | None:
        """The growth, i64, the constant 0 for a value that does not change; None if not known."""
        if definition not in self._known:
            self._known[definition] = self._of(definition, depth)
        return self._known[definition]

    def _of(self, definition: Def, depth: int) -> Value | None:
        builder, owner = self._lowering.builder, definition.owner
        if self._loop is not None and definition.block.parent is not self._loop:
            return builder.i64(0)
        if owner is None:
            return self._of_argument(definition)
        if (position := ProgramId.dyn_cast(owner)) is not None:
            return builder.i64(1 if position.axis == 0 and self._loop is None else 0)
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
            factor = wide(self._lowering.builder, self._lowering.scalar(owner.operands[1 - varying]))
            return builder.mul(known[varying], factor)
        return None

    def _of_argument(self, definition: Def) -> Value | None:
        """Of an argument of a block: of the kernel, or the index or a carried value of a loop."""
        if definition.block.parent is None:
            return self._lowering.builder.i64(0)
        if self._loop is None or self._loop.name != FOR:
            return None
        if definition is definition.block.arguments[0]:
            return wide(self._lowering.builder, self._lowering.scalar(self._loop.operands[2]))
        by = advance(self._lowering, definition, definition.block)
        return None if by is None else wide(self._lowering.builder, by)


def wide(builder: LoopBuilder, value: Value) -> Value:
    """A signed integer as i64."""
    if isinstance(value.constant, int):
        return builder.i64(value.constant)
    return value if value.type == "i64" else builder.cast("arith.extsi", value, "i64")

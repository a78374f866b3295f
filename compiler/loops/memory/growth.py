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
    """How much a scalar grows per iteration of the loop with this `body`, i64; None if not known.

    That is exact, modulo 2^64 for an i64: where 32 bits may wrap around, only the loop's index is followed. A value
    from outside does not grow, whatever an outer loop does to it.
    """
    loop = body.parent
    return None if loop is None or loop.name != FOR else _Advance(lowering, loop).of(definition)


class _Advance:
    """How much scalars grow per iteration of a loop."""

    DEPTH = 30
    """Most operations to follow."""

    def __init__(self, lowering: Lowering, loop: Operation) -> None:
        self._lowering = lowering
        self._loop = loop
        self._body = loop.regions[0]
        self._known: dict[Def, Value | None] = {}

    def of(self, definition: Def, depth: int = 0) -> Value | None:
        if definition not in self._known:
            self._known[definition] = self._of(definition, depth)
        return self._known[definition]

    def _of(self, definition: Def, depth: int) -> Value | None:
        builder, owner = self._lowering.builder, definition.owner
        if not is_inside(definition, self._loop):
            return builder.i64(0)
        if definition in self._body.arguments[1:]:
            return self._of_carried(definition)
        widens = owner is not None and owner.name == "arith.extsi"
        times = self._times_of_index(owner.operands[0] if owner and widens else definition)
        if times is not None:
            by = self._outside(self._loop.operands[2])
            return None if by is None else builder.mul(by, builder.i64(times))
        if owner is None or not owner.name.startswith("arith.") or depth == self.DEPTH:
            return None
        parts = [self.of(operand, depth + 1) for operand in owner.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if all(part.constant == 0 for part in known):
            return builder.i64(0)
        if definition.type.element != "i64":
            return None
        if owner.name in ("arith.addi", "arith.subi"):
            return builder.binary(owner.name, known[0], known[1])
        if owner.name == "arith.muli" and any(part.constant == 0 for part in known):
            varying = 1 if known[0].constant == 0 else 0
            factor = self._outside(owner.operands[1 - varying])
            return None if factor is None else builder.mul(known[varying], factor)
        return None

    def _of_carried(self, definition: Def) -> Value | None:
        """Of a value that the loop carries, and adds something from outside to."""
        owner = self._body.operations[-1].operands[self._body.arguments.index(definition) - 1].owner
        if owner is None or owner.block is not self._body or owner.name != "arith.addi":
            return None
        others = [operand for operand in owner.operands if operand is not definition]
        return self._outside(others[0]) if len(others) == 1 else None

    def _times_of_index(self, definition: Def) -> int | None:
        """1 for the loop's index, and the factor for its product with a positive number that does not wrap around.

        In i32, that is so for tiles of as many elements as the number of iterations was divided by, or fewer.
        """
        index, owner = self._body.arguments[0], definition.owner
        if definition is index:
            return 1
        if owner is None or owner.name != "arith.muli" or owner.operands.count(index) != 1:
            return None
        (factor,) = (self._constant(operand) for operand in owner.operands if operand is not index)
        first, end = self._constant(self._loop.operands[0]), self._loop.operands[1].owner
        if (
            factor is None
            or factor < 1
            or first is None
            or first < 0
            or end is None
            or end.name != "arith.divsi"
        ):
            return None
        divisor = self._constant(end.operands[1])
        return factor if divisor is not None and factor <= divisor else None

    def _constant(self, definition: Def) -> int | None:
        scalar = self._lowering.scalars.get(definition)
        return scalar.constant if scalar is not None and isinstance(scalar.constant, int) else None

    def _outside(self, definition: Def) -> Value | None:
        """A scalar from outside the loop, i64. None if it is computed inside, or outside but not yet."""
        scalar = self._lowering.scalars.get(definition)
        if scalar is None or is_inside(definition, self._loop):
            return None
        return wide(self._lowering.builder, scalar)


def is_inside(definition: Def, loop: Operation) -> bool:
    """Whether a value is defined in a loop."""
    block = definition.block
    while block.parent is not None and block.parent is not loop:
        block = block.parent.block
    return block.parent is loop


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
        return advance(self._lowering, definition, definition.block)


def wide(builder: LoopBuilder, value: Value) -> Value:
    """A signed integer as i64."""
    if isinstance(value.constant, int):
        return builder.i64(value.constant)
    return value if value.type == "i64" else builder.cast("arith.extsi", value, "i64")

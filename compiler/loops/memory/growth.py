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
    """How much a scalar grows per iteration of the loop with this `body`, exactly (see `Growth`); None if not known.

    A scalar from outside the loop does not grow, even if an outer loop changes it.
    """
    loop = body.parent
    return None if loop is None or loop.name != FOR else Growth(lowering, loop, exact=True).of(definition)


def is_inside(definition: Def, loop: Operation) -> bool:
    """Whether a value is defined in a loop."""
    block = definition.block
    while block.parent is not None and block.parent is not loop:
        block = block.parent.block
    return block.parent is loop


class Growth:
    """How much scalars grow when the first program id grows by 1, or, with a `loop`, in the next iteration of it.

    Without `exact`, it is a guess for prefetches: wrong where integers of 32 bits wrap around or memory changes. Exact
    growth holds modulo 2^64.
    """

    DEPTH = 30
    """Most operations to follow; offsets of rows take fewer."""

    def __init__(self, lowering: Lowering, loop: Operation | None, *, exact: bool = False) -> None:
        self._lowering = lowering
        self._loop = loop
        self._exact = exact
        self._known: dict[Def, Value | None] = {}

    def of(self, definition: Def, depth: int = 0) -> Value | None:
        """The growth, i64, the constant 0 for a value that does not change; None if not known."""
        if definition not in self._known:
            self._known[definition] = self._of(definition, depth)
        return self._known[definition]

    def _of(self, definition: Def, depth: int) -> Value | None:
        builder, owner = self._lowering.builder, definition.owner
        if self._loop is not None and not is_inside(definition, self._loop):
            return builder.i64(0)
        if owner is None:
            return self._of_argument(definition)
        if (position := ProgramId.dyn_cast(owner)) is not None:
            return builder.i64(1 if position.axis == 0 and self._loop is None else 0)
        if owner.regions or depth == self.DEPTH or (self._exact and not owner.name.startswith("arith.")):
            return None
        parts = [self.of(operand, depth + 1) for operand in owner.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if all(part.constant == 0 for part in known):
            return builder.i64(0)
        if self._exact and not self._keeps_all_bits(definition, owner):
            return None
        if owner.name in _CASTS:
            return known[0]
        if owner.name == "arith.addi":
            return builder.add(*known)
        if owner.name == "arith.subi":
            return builder.sub(*known)
        if owner.name == "arith.muli" and any(part.constant == 0 for part in known):
            varying = 1 if known[0].constant == 0 else 0
            factor = self._scalar(owner.operands[1 - varying])
            return None if factor is None else builder.mul(known[varying], factor)
        return None

    def _of_argument(self, definition: Def) -> Value | None:
        """Of an argument of a block: of the kernel, or the index of a loop, or what the loop carries and adds to."""
        body, loop = definition.block, self._loop
        if body.parent is None:
            return self._lowering.builder.i64(0)
        if loop is None or loop.name != FOR or body.parent is not loop:
            return None
        if definition is body.arguments[0]:
            return self._scalar(loop.operands[2])
        owner = body.operations[-1].operands[body.arguments.index(definition) - 1].owner
        if owner is None or owner.block is not body or owner.name != "arith.addi":
            return None
        others = [operand for operand in owner.operands if operand is not definition]
        return self._scalar(others[0]) if len(others) == 1 and not is_inside(others[0], loop) else None

    def _keeps_all_bits(self, definition: Def, owner: Operation) -> bool:
        """Whether `owner` computes an i64 from others, or from an i32 that does not wrap around.

        Such are the loop's index, and its product with a factor by which, or by a larger one, the number of iterations
        was divided.
        """
        (narrow,) = owner.operands if owner.name == "arith.extsi" else (definition,)
        if narrow.type.element == "i64":
            return definition.type.element == "i64"
        assert self._loop is not None
        index, product = self._loop.regions[0].arguments[0], narrow.owner
        if narrow is index:
            return True
        if product is None or product.name != "arith.muli" or product.operands.count(index) != 1:
            return False
        (factor,) = (self._constant(operand) for operand in product.operands if operand is not index)
        first, end = self._constant(self._loop.operands[0]), self._loop.operands[1].owner
        if first is None or first < 0 or end is None or end.name != "arith.divsi":
            return False
        divisor = self._constant(end.operands[1])
        return factor is not None and divisor is not None and 1 <= factor <= divisor

    def _scalar(self, definition: Def) -> Value | None:
        """A scalar as i64; None if it is not computed yet."""
        scalar = self._lowering.scalars.get(definition)
        return None if scalar is None else wide(self._lowering.builder, scalar)

    def _constant(self, definition: Def) -> int | None:
        scalar = self._lowering.scalars.get(definition)
        return scalar.constant if scalar is not None and isinstance(scalar.constant, int) else None


def wide(builder: LoopBuilder, value: Value) -> Value:
    """A signed integer as i64."""
    if isinstance(value.constant, int):
        return builder.i64(value.constant)
    return value if value.type == "i64" else builder.cast("arith.extsi", value, "i64")

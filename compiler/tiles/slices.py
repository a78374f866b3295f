"""What an operation in a loop is computed from, and copies of that for another iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton_porting_kit.compiler.dialect import Trait, having
from triton_porting_kit.compiler.dialect.npu import NpuProgram
from triton_porting_kit.toolchain.mlir import ir

PURE = having(Trait.MOVABLE) | {
    "llvm.getelementptr",
    "llvm.ptrtoint",
    "llvm.inttoptr",
    NpuProgram.OPERATION_NAME,
}
"""What may be computed an iteration early: it accesses no memory and cannot fail."""

DIVISIONS = (
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.ceildivsi",
    "arith.floordivsi",
)
"""What may be computed early if there is such an iteration: that would fail by it, too."""


def captured(operation: Any) -> Iterator[Any]:
    """The values that an operation and its regions use."""
    yield from operation.operands
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from captured(inner.operation)


def owner_in(value: Any, block: Any) -> Any | None:
    """The operation of `block` that defines a value; None for arguments, and for what is defined elsewhere."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    operation = owner.operation
    return operation if operation.block == block else None


class Slice:
    """The operations of a loop's body that some operations are computed from, in order; and the carried values used.

    `possible`: all of them are pure, also those from which the next carried values are computed. `varies`: they differ
    from iteration to iteration. `guarded`: they may only be computed for an iteration that there is.
    """

    def __init__(self, loop: Any, roots: list[Any], skipped: list[Any]) -> None:
        self._block = loop.regions[0].blocks[0]
        terminator = self._block.operations[len(self._block.operations) - 1].operation
        self.following = list(terminator.operands)
        self._arguments = list(self._block.arguments)
        self._skipped = skipped
        self.possible = True
        self.varies = False
        self.guarded = False
        self._order: dict[Any, int] | None = None
        self.carried: set[int] = set()
        self._needed: set[Any] = set()
        for root in roots:
            for value in captured(root):
                self._need(value)
        self._ahead: set[Any] = set()
        pending = list(self.carried)
        while pending:  # what the next values are computed from, and the values after those
            found: set[int] = set()
            self._visit(self.following[pending.pop()], self._ahead, found)
            pending += found - self.carried
            self.carried |= found

    def _visit(self, value: Any, found: set[Any], carried: set[int]) -> None:
        stack = [value]
        while stack:
            current = stack.pop()
            if current in self._skipped:
                continue
            owner = current.owner
            if isinstance(owner, ir.Block):
                self.varies |= owner == self._block
                if owner == self._block and current != self._arguments[0]:
                    if isinstance(current.type, ir.RankedTensorType):
                        self.possible = False
                    carried.add(self._arguments.index(current) - 1)
                continue
            operation = owner.operation
            if operation.block != self._block or operation in found:
                continue
            self.guarded |= operation.name in DIVISIONS
            if operation.name not in PURE and operation.name not in DIVISIONS:
                self.possible = False
                return
            found.add(operation)
            stack += list(captured(operation))

    def _need(self, value: Any) -> None:
        self._visit(value, self._needed, self.carried)

    def copied(self, copies: dict[Any, Any], place: Any) -> dict[Any, Any]:
        """Copy the operations before `place`. `copies` gives the induction variable, the carried values, and what
        there are copies of already; it gets the copy of each value. Returns it.
        """
        return self._copy(self._needed, copies, place)

    def next_carried(self, copies: dict[Any, Any], place: Any) -> dict[Any, Any]:
        """Compute the carried values of the iteration behind the one that `copies` gives, before `place`; without an
        induction variable, that is the current one. `copies` gets what is computed. Returns the values by the loop's
        own argument.
        """
        self._copy(self._ahead, copies, place)
        return {
            self._arguments[1 + number]: copies.get(self.following[number], self.following[number])
            for number in self.carried
        }

    def _copy(self, operations: set[Any], copies: dict[Any, Any], place: Any) -> dict[Any, Any]:
        for operation in self._in_order(operations):
            if operation.results[0] not in copies:
                made = copy(operation, copies, place)
                copies.update(zip(operation.results, made.results, strict=True))
        return copies

    def _in_order(self, operations: set[Any]) -> list[Any]:
        if len(operations) < 2:
            return list(operations)
        if self._order is None:
            self._order = {op.operation: number for number, op in enumerate(self._block.operations)}
        return sorted(operations, key=self._order.__getitem__)


def copy(operation: Any, copies: dict[Any, Any], place: Any) -> Any:
    """A copy of an operation before `place`, with other values in place of those that have a copy."""
    made = operation.clone(ip=place).operation
    _substitute(made, copies)
    if "current" in made.attributes:
        del made.attributes["current"]
    return made


def _substitute(operation: Any, copies: dict[Any, Any]) -> None:
    for number, value in enumerate(list(operation.operands)):
        if value in copies:
            operation.operands[number] = copies[value]
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _substitute(inner.operation, copies)

"""What the work-items of a work-group do together, and where they wait for each other.

All work-items run the code outside of loops over points, with the same values. What must happen once there, the first
one does; the others get its results through scratch. So conditions outside of loops over points are the same for all,
and each reaches the same barriers. There is one wherever a work-item may read or write what another one has accessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.loops.ir.regions import CONTINUES
from triton_porting_kit.compiler.simt.accesses import GLOBAL, NONE, SLOTS, Accesses, Survey, points
from triton_porting_kit.compiler.simt.distribution import Distribution
from triton_porting_kit.compiler.simt.writer import Writer

SLOT = 128
"""Bytes for a result that the first work-item gives to the others."""

_ENDS = ("scf.yield", "scf.condition", "llvm.return")


@dataclass
class Group:
    """Rewrites a function for a work-group.

    `first` is the condition of the first work-item. `slots` is a pointer to where it leaves results. `programs` is the
    loop over programs, which no barrier needs to separate except for scratch; None if scratch is not known apart.
    """

    survey: Survey
    writer: Writer
    distribution: Distribution
    first: Any
    slots: Any
    programs: Any
    used: int = 0
    """Slots that are needed."""

    def block(self, block: Any, since: Accesses = NONE) -> Accesses:
        """Rewrite a block. `since` is what was accessed after the last barrier; returns that of its end."""
        waiting: list[
            Any
        ] = []  # for the first work-item; between them, only pure operations that do not use them
        earlier = since  # what was accessed before the loop that the next one may continue
        for operation in [view.operation for view in block.operations]:
            found = self.survey.of(operation)
            if found.once and not found.fails and not found.spreads:
                waiting.append(operation)
                continue
            if waiting and (found != NONE or operation.name in _ENDS or _uses(operation, waiting)):
                since = earlier = self._once(waiting, since)
                waiting = []
            if _is_shared(operation, found):
                since = earlier = self._regions(operation, found, since)
            elif found != NONE:
                met = earlier if CONTINUES in operation.attributes else since
                remaining = self._wait(operation, found, met)
                if remaining != met:
                    since = met = remaining
                earlier, since = met, since | found
                if points(operation) and not found.fails:  # all work-items must meet what ends the kernel
                    self.distribution.spread(operation)
        return since

    def _regions(self, operation: Any, found: Accesses, since: Accesses) -> Accesses:
        """Rewrite the blocks of an operation that all work-items run.

        A barrier separates it from writes before it, even where nothing in it needs one: PoCL 3.1 loses writes of a
        loop that few work-items enter if a loop with barriers follows.
        """
        if since.writes:
            self.writer.before(operation).call(kernel.BARRIER)
            since = NONE
        blocks = [region.blocks[0] for region in operation.regions if len(region.blocks)]
        if operation.name == "scf.if":
            ends = [self.block(block, since) for block in blocks]
            return reduce(or_, ends, since)
        earlier = found | Accesses(frozenset([SLOTS]), frozenset([SLOTS]))  # of the previous iteration
        before = since | earlier
        if operation == self.programs:
            before = before.without(GLOBAL)
        if operation.name == "scf.for":
            return since | self.block(blocks[0], before)
        end = self.block(blocks[0], before)
        self.block(blocks[1], end)
        return end

    def _wait(self, operation: Any, found: Accesses, since: Accesses) -> Accesses:
        """Put a barrier before an operation if it meets accesses since the last one. Returns those that remain."""
        if not found.reads & since.writes and not found.writes & (since.reads | since.writes):
            return since
        self.writer.before(operation).call(kernel.BARRIER)
        return NONE

    def _once(self, operations: list[Any], since: Accesses) -> Accesses:
        """Let the first work-item run operations, and give their results to the others."""
        anchor = operations[-1]
        group = [*operations, *_parts(operations)]
        passed = [
            (result, uses) for each in group for result in each.results if (uses := _outside(result, group))
        ]
        found = reduce(or_, map(self.survey.of, operations), NONE)
        if passed:
            found |= Accesses(writes=frozenset([SLOTS]))
        since = self._wait(anchor, found, since) | found
        writer = self.writer.before(anchor)
        places = [writer.address(self.slots, number * SLOT) for number in range(len(passed))]
        end = writer.within(self.first)
        if passed:
            self.used = max(self.used, len(passed))
            writer.call(kernel.BARRIER)
            since = Accesses(frozenset([SLOTS]))
        for place, (result, uses) in zip(places, passed, strict=True):
            received = writer.load(place, result.type)
            for use in uses:
                use.owner.operands[use.operand_number] = received
        for each in group:
            each.move_before(end)
        writer.before(end)
        for place, (result, _) in zip(places, passed, strict=True):
            writer.store(result, place)
        return since


def _is_shared(operation: Any, found: Accesses) -> bool:
    """Whether an operation holds loops over points, or something else that needs barriers inside of it."""
    return (found.spreads or (found.fails and found.once)) and not points(operation)


def _uses(operation: Any, others: list[Any]) -> bool:
    """Whether an operation, or one inside of it, uses a result of `others`."""
    return any(
        _is_in(use.owner, [operation]) for other in others for result in other.results for use in result.uses
    )


def _parts(operations: list[Any]) -> list[Any]:
    """The operations that take the members out of structs that `operations` give."""
    structs = [result for each in operations for result in each.results if "struct" in str(result.type)]
    return [
        use.owner.operation for struct in structs for use in struct.uses if not _is_in(use.owner, operations)
    ]


def _outside(result: Any, group: list[Any]) -> list[Any]:
    """The uses of a result by operations that are not in a group."""
    return [use for use in result.uses if not _is_in(use.owner, group)]


def _is_in(owner: Any, operations: list[Any]) -> bool:
    operation = owner.operation
    while operation is not None:
        if operation in operations:
            return True
        parent = operation.parent
        operation = None if parent is None else parent.operation
    return False

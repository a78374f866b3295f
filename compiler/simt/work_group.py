"""What the work-items of a work-group do together, and where they wait for each other.

All work-items run the code outside of loops over points, with the same values. What must happen once there, the first
one does; the others get its results through scratch. So conditions outside of loops over points are the same for all,
and each reaches the same barriers. There is one wherever a work-item may read or write what another one has accessed: a
barrier of the sub-group, if both are in the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.loops.ir.regions import CONTINUES
from triton_porting_kit.compiler.simt.accesses import (
    GLOBAL,
    NONE,
    SLOTS,
    Accesses,
    Since,
    Survey,
    inner,
    points,
)
from triton_porting_kit.compiler.simt.distribution import Distribution
from triton_porting_kit.compiler.simt.writer import Writer

SLOT = 128
"""Bytes for a result that the first work-item gives to the others."""

_BARRIER = Since()
"""Behind a barrier."""

_ENDS = ("scf.yield", "scf.condition", "llvm.return")


@dataclass
class Group:
    """Rewrites a function for a work-group.

    `first` is the condition of the first work-item. `slots` is a pointer to where it leaves results. `programs` is the
    loop over programs, which no barrier needs to separate except for scratch; None if scratch is not known apart.
    `sub_group` is the number of work-items in a sub-group; 1 if there are none.
    """

    survey: Survey
    writer: Writer
    distribution: Distribution
    first: Any
    slots: Any
    programs: Any
    sub_group: int = 1
    used: int = 0
    """Slots that are needed."""
    uses_sub_groups: bool = False
    """Whether there is a barrier of a sub-group."""

    def block(self, block: Any, since: Since = _BARRIER) -> Since:
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
                is_narrow = self._is_narrow(operation)
                remaining = self._wait(operation, found, met, is_narrow=is_narrow)
                if remaining != met:
                    since = met = remaining
                earlier, since = met, since.after(found, is_narrow=is_narrow)
                if points(operation) and not found.fails:  # all work-items must meet what ends the kernel
                    self.distribution.spread(operation)
        return since

    def _is_narrow(self, operation: Any) -> bool:
        """Whether only work-items of the first sub-group do something in a loop over points."""
        return 0 < points(operation) <= self.sub_group > 1 and not any(map(points, inner(operation)))

    def _regions(self, operation: Any, found: Accesses, since: Since) -> Since:
        """Rewrite the blocks of an operation that all work-items run.

        A barrier separates it from writes before it, even where nothing in it needs one: PoCL 3.1 loses writes of a
        loop that few work-items enter if a loop with barriers follows.
        """
        if since.all.writes:
            self.writer.before(operation).call(kernel.BARRIER)
            since = _BARRIER
        blocks = [region.blocks[0] for region in operation.regions if len(region.blocks)]
        if operation.name == "scf.if":
            ends = [self.block(block, since) for block in blocks]
            return reduce(or_, ends, since)
        previous = found | Accesses(frozenset([SLOTS]), frozenset([SLOTS]))  # of the previous iteration
        before = since.after(previous, is_narrow=False)
        if operation == self.programs:
            before = before.without(GLOBAL)
        if operation.name == "scf.for":
            return since | self.block(blocks[0], before)
        end = self.block(blocks[0], before)
        self.block(blocks[1], end)
        return end

    def _wait(self, operation: Any, found: Accesses, since: Since, *, is_narrow: bool) -> Since:
        """Put a barrier before an operation if it meets accesses since the last one. Returns those that remain."""
        if found.meets(since.wide if is_narrow else since.all):
            self.writer.before(operation).call(kernel.BARRIER)
            return _BARRIER
        if is_narrow and found.meets(since.recent):
            self.writer.before(operation).call(kernel.SUB_GROUP_BARRIER)
            self.uses_sub_groups = True
            return replace(since, recent=NONE)
        return since

    def _once(self, operations: list[Any], since: Since) -> Since:
        """Let the first work-item run operations, and give their results to the others."""
        anchor = operations[-1]
        group = [*operations, *_parts(operations)]
        passed = [
            (result, uses) for each in group for result in each.results if (uses := _outside(result, group))
        ]
        found = reduce(or_, map(self.survey.of, operations), NONE)
        if passed:
            found |= Accesses(writes=frozenset([SLOTS]))
        is_narrow = self.sub_group > 1
        since = self._wait(anchor, found, since, is_narrow=is_narrow).after(found, is_narrow=is_narrow)
        writer = self.writer.before(anchor)
        places = [writer.address(self.slots, number * SLOT) for number in range(len(passed))]
        end = writer.within(self.first)
        if passed:
            self.used = max(self.used, len(passed))
            writer.call(kernel.BARRIER)
            since = Since(Accesses(frozenset([SLOTS])))
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

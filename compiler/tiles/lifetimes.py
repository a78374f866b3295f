"""When each buffer of a kernel is in use, in the order of the program.

Operations are numbered in order, nested ones within the operation that contains them. What uses a buffer that was made
outside of a loop uses it in every iteration, so a lifetime ends with an operation of the buffer's own block, or of one
around it. A tensor read from a buffer is evaluated where it is consumed (`loops.state.Uses`), so the buffer lives until
then. A transfer uses its buffers until something waits for its token, or for a later one of its unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuDma, NpuMatrix, NpuOrder, NpuRead, NpuWait
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation, Program, walk
from triton_porting_kit.compiler.loops.state import Uses

from .products import MATRIX

_FOLLOWED = ("llvm.getelementptr", "arith.select")


@dataclass
class Lifetime:
    """A buffer, and the first and the last operation, by number, that use it. `bytes` are those of all its copies."""

    handle: Any
    """The operation `tpk.npu_buffer` in MLIR's bindings."""
    memory: str
    bytes: int
    holds: str
    line: int | None
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are in use at one time."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(program: Program) -> list[Lifetime]:
    """The lifetimes of all buffers, in the order of the program."""
    numbering = Numbering(program.body)
    uses = Uses()
    found: dict[Any, Lifetime] = {}
    for operation in walk(program.body):
        view = NpuBuffer.dyn_cast(operation)
        if view is None:
            continue
        first, last = numbering.span(operation, _users(view.result, uses))
        place = operation.location
        lifetime = Lifetime(
            operation.handle,
            view.memory,
            view.bytes * view.copies,
            view.holds,
            None if place is None else place.line,
            first,
            last,
        )
        same = found.get(operation.handle)
        if same is not None:  # of a function that is called several times
            lifetime.first, lifetime.last = min(same.first, first), max(same.last, lifetime.last)
        found[operation.handle] = lifetime
    return list(found.values())


class Numbering:
    """The number of each operation, and of the last one nested in it."""

    def __init__(self, block: Block) -> None:
        self.first: dict[Operation, int] = {}
        self.last: dict[Operation, int] = {}
        self.count = 0
        """Of all numbers."""
        self._block(block)

    def _block(self, block: Block) -> None:
        for operation in block.operations:
            self.first[operation] = self.count
            self.count += 1
            for region in operation.regions:
                self._block(region)
            self.last[operation] = self.count
            self.count += 1

    def span(self, buffer: Operation, users: list[Operation]) -> tuple[int, int]:
        """The first and the last operation of the time in which `users` use a buffer."""
        first, last = self.first[buffer], self.last[buffer]
        for user in users:
            around: Operation | None = buffer
            while around is not None and (ancestor := user.ancestor_in(around.block)) is None:
                around = around.block.parent
            assert around is not None
            assert ancestor is not None
            last = max(last, self.last[ancestor])
            if (
                self.last[ancestor] < self.first[around]
            ):  # in the next iteration: all of the loop is in between
                loop = around.block.parent
                assert loop is not None
                first, last = min(first, self.first[loop]), max(last, self.last[loop])
        return first, last


def _users(pointer: Def, uses: Uses) -> list[Operation]:
    """The operations at which a buffer is used, which may be nested deeper than the buffer."""
    found: list[Operation] = []
    for user in pointer.users:
        found.append(user)
        if user.name in _FOLLOWED:
            found += _users(user.results[0], uses)
        elif NpuRead.isa(user):
            found += uses.roots(user.results[0])
        elif user.results and user.name.startswith("tpk.npu_"):
            found += token_users(user.results[0]) or _next_wait(user)
    return found


def _next_wait(command: Operation) -> list[Operation]:
    """What waits next for a command's unit: its own wait is redundant, and has been removed, if another one follows."""
    unit = NpuDma(command).unit if NpuDma.isa(command) else MATRIX if NpuMatrix.isa(command) else None
    for other in command.block.operations[command.position + 1 :]:
        if (NpuWait.isa(other) and NpuWait(other).unit == unit) or (
            NpuOrder.isa(other) and NpuOrder(other).other == unit
        ):
            return [other]
    return []


def token_users(token: Def) -> list[Operation]:
    """The operations that use a token, through branches and loops that pass it on."""
    found: dict[Operation, None] = {}
    seen: set[Def] = set()
    stack = [token]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        for user in current.users:
            found[user] = None
            stack += _passed_on(current, user)
    return list(found)


def _passed_on(value: Def, user: Operation) -> list[Def]:
    """The values that have `value`, by a terminator or by the operands of a loop."""
    if user.name == "arith.select":
        return list(user.results)
    numbers = [number for number, operand in enumerate(user.operands) if operand is value]
    if user.name == "scf.for":
        return [v for n in numbers if n >= 3 for v in (user.results[n - 3], user.regions[0].arguments[n - 2])]
    parent = user.block.parent
    if user.name == "scf.while":
        return [user.regions[0].arguments[n] for n in numbers]
    if user.name == "scf.condition" and parent is not None:
        return [v for n in numbers if n for v in (parent.results[n - 1], parent.regions[1].arguments[n - 1])]
    if user.name != "scf.yield" or parent is None:
        return []
    if parent.name == "scf.if":
        return [parent.results[n] for n in numbers]
    if parent.name == "scf.for":
        return [v for n in numbers for v in (parent.results[n], parent.regions[0].arguments[n + 1])]
    return [parent.regions[0].arguments[n] for n in numbers]

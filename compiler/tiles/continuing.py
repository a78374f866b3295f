"""Starts the next program's first product in the last iteration of this program's loop, so that it is computed while
this program finishes.

The first commands of an inner loop stand before it, and those of later iterations in branches of it (`pipelining`).
Where there is no later iteration of this program, the branch starts what the next program begins with, into the copies
of the buffers that the next iteration would use. The outer loop carries the tokens, the numbers of the copies, and
whether the next program has begun; then the commands before its loop do not start again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuDma, NpuMatrix, NpuOrder

from .ahead import with_nested, writes_global
from .editing import EQ, SLT, Editor, origin
from .loops import with_carried
from .orders import units
from .pipelining import Count, later, positions
from .products import MATRIX
from .slices import Slice, copy, owner_in


@dataclass(frozen=True)
class _Start:
    """Commands that start before a loop, the number of their token among the loop's carried values, and the branch of
    the loop that starts the same ones of later iterations.
    """

    before: Any
    commands: list[Any]
    number: int
    inside: Any

    def pointers(self, filled: dict[Any, None]) -> dict[Any, Any]:
        """The copies of buffers that the branch's commands use in place of those before the loop."""
        found: dict[Any, Any] = {}
        later_ones = _commands(self.inside)
        for first, other in zip(reversed(self.commands), reversed(later_ones), strict=False):
            if not NpuOrder.isa(first):
                pairs = zip(first.operands, other.operands, strict=True)
                found |= {a: b for a, b in pairs if origin(a) in filled}
        return found


def continue_early(editor: Editor, loop: Any, inner: Any, rings: Sequence[int]) -> Any | None:
    """Rewrite a loop over programs in place. Returns the new loop; None if it cannot.

    `rings`: which of the inner loop's carried values are the numbers of copies.
    """
    block = loop.regions[0].blocks[0]
    starts = list(_starts(block, inner))
    branches = list(dict.fromkeys(start.before for start in starts))
    if not any(NpuMatrix.isa(command) for start in starts for command in start.commands):
        return None
    if len(starts) != sum(len(branch.results) for branch in branches) or not all(map(_is_plain, starts)):
        return None
    if any(writes_global(op) for each in _until(block, inner) for op in with_nested(each)):
        return None
    filled = dict.fromkeys(
        origin(c.operands[0]) for start in starts for c in start.commands if not NpuOrder.isa(c)
    )
    if not all(_is_own(block, inner, branches, buffer) for buffer in filled):
        return None
    tokens = [result for branch in branches for result in branch.results]
    piece = Slice(loop, branches, [*filled, *tokens])
    if not piece.possible or piece.guarded or not piece.varies:
        return None
    awaited = _awaited(block, inner, starts, filled)
    if awaited is None:
        return None
    return _Continuing(editor, loop, inner, starts, rings, awaited).run(piece, filled)


def _until(block: Any, inner: Any) -> Iterator[Any]:
    """The operations of a block before a loop of it."""
    for operation in block.operations:
        if operation.operation == inner:
            return
        yield operation.operation


def _commands(branch: Any) -> list[Any]:
    """What is started if a branch is taken."""
    found = [operation.operation for operation in branch.regions[0].blocks[0].operations]
    return [op for op in found if NpuDma.isa(op) or NpuMatrix.isa(op) or NpuOrder.isa(op)]


def _starts(block: Any, inner: Any) -> Iterator[_Start]:
    following = inner.regions[0].blocks[0]
    last = following.operations[len(following.operations) - 1]
    for number, value in enumerate(list(inner.operands)[3:]):
        before = owner_in(value, block)
        inside = owner_in(last.operands[number], following)
        if before is None or inside is None or before.name != "scf.if" or inside.name != "scf.if":
            continue
        commands = _commands(before)
        ends = [c for c in before.regions[0].blocks[0].operations if c.operation.name == "scf.yield"]
        which = list(before.results).index(value)
        owners = [owner_in(token, before.regions[0].blocks[0]) for token in ends[0].operands]
        if not all(owner in commands for owner in owners):
            continue
        places = [commands.index(owner) for owner in owners]
        begin = max((place for place in places if place < places[which]), default=-1) + 1
        yield _Start(before, commands[begin : places[which] + 1], number, inside)


def _is_plain(start: _Start) -> bool:
    """Whether commands need nothing that is computed in their branch."""
    values = [value for command in start.commands for value in command.operands]
    inside = [owner for value in values if (owner := owner_in(value, start.before.regions[0].blocks[0]))]
    return len(start.inside.results) == 1 and all(owner in start.commands for owner in inside)


def _is_own(block: Any, inner: Any, branches: list[Any], buffer: Any) -> bool:
    """Whether a buffer of the block is used by the inner loop and by these branches alone."""
    made = owner_in(buffer, block)
    if made is None or not NpuBuffer.isa(made):
        return False
    pending = list(buffer.uses)
    for use in pending:  # which grows
        user = use.owner.operation
        while user.block != block:
            user = user.parent.operation
        if user.name == "llvm.getelementptr":
            pending += list(user.results[0].uses)
        elif user != inner and user not in branches:
            return False
    return True


def _awaited(block: Any, inner: Any, starts: list[_Start], filled: dict[Any, None]) -> list[Any] | None:
    """The orders for which the matrix unit waits before the loop: those of the next program stand in its place then.
    None if a product needs anything else.
    """
    arguments, last = list(block.arguments), block.operations[len(block.operations) - 1]
    found, moved = [], set()
    for operation in _until(block, inner):
        if not NpuOrder.isa(operation) or NpuOrder(operation).unit != MATRIX:
            continue
        token = NpuOrder(operation).token
        if token not in arguments:
            return None
        start = owner_in(last.operands[arguments.index(token) - 1], block)
        if start is None or not any(each == start for each in _until(block, inner)):
            return None
        found.append(operation)
        moved |= {origin(NpuDma(op).target) for op in with_nested(start) if NpuDma.isa(op)}
    products = [command for start in starts for command in start.commands if NpuMatrix.isa(command)]
    operands = {origin(value) for command in products for value in list(command.operands)[:3]}
    return found if operands <= filled.keys() | moved else None


class _Continuing:
    """Rewrites a loop over programs in place."""

    def __init__(
        self,
        editor: Editor,
        loop: Any,
        inner: Any,
        starts: list[_Start],
        rings: Sequence[int],
        awaited: list[Any],
    ) -> None:
        self._editor, self._loop, self._inner = editor, loop, inner
        self._block = loop.regions[0].blocks[0]
        self._starts, self._rings, self._awaited = starts, rings, awaited
        branches = dict.fromkeys(start.before for start in starts)
        self._conditions = [(branch, branch.operands[0]) for branch in branches]

    def run(self, piece: Slice, filled: dict[Any, None]) -> Any:
        editor, loop = self._editor, self._loop
        for buffer in filled:
            buffer.owner.operation.move_before(loop)
        editor.before(loop)
        zero, no = editor.constant(0), editor.constant(0, editor.types.i1)
        carried = [*([zero] * len(self._starts)), *([zero] * len(self._rings)), no]
        counting = Count(self._block.arguments[0], loop.operands[1], loop.operands[2])

        def following(added: Any) -> list[Any]:
            tokens, numbers, begun = self._split(added)
            editor.before(self._inner)
            copies = positions(editor, counting, piece, 1)
            more = later(editor, counting, 1)
            self._start_only_new(tokens, begun)
            for ring, number in zip(self._rings, numbers, strict=True):
                own = self._inner.operands[3 + ring]
                self._inner.operands[3 + ring] = editor.value("arith.select", [begun, number, own], own.type)
            inner_lower, inner_upper = list(self._inner.operands)[:2]
            some = editor.compare(SLT, inner_lower, inner_upper)
            self._filled = filled
            for start in self._starts:
                self._go_on(start, copies, more)
            results = list(self._inner.results)
            first = next(start for start in self._starts if not self._is_second(start))
            editor.before(self._inner)
            goes = editor.both([more, some, self._condition(first, copies)])
            return [
                *(results[start.number] for start in self._starts),
                *(results[ring] for ring in self._rings),
                goes,
            ]

        return with_carried(loop, carried, following)

    def _split(self, added: Any) -> tuple[list[Any], list[Any], Any]:
        count = len(self._starts)
        return list(added[:count]), list(added[count:-1]), added[len(added) - 1]

    def _is_second(self, start: _Start) -> bool:
        """Whether commands are those of the second iteration."""
        return bool(start.before != self._starts[0].before)

    def _condition(self, start: _Start, copies: dict[Any, Any]) -> Any:
        """Whether the next program starts these commands."""
        own = next(condition for branch, condition in self._conditions if branch == start.before)
        return copies.get(own, own)

    def _start_only_new(self, tokens: list[Any], begun: Any) -> None:
        """Let the branches before the loop start nothing, and give the tokens, if the program has begun."""
        editor = self._editor
        for before, condition in self._conditions:
            editor.before(before)
            fresh = editor.value("arith.xori", [begun, editor.constant(1, begun.type)], begun.type)
            before.operands[0] = editor.both([fresh, condition])
        for start, token in zip(self._starts, tokens, strict=True):
            value = self._inner.operands[3 + start.number]
            otherwise = start.before.regions[1].blocks[0]
            end = otherwise.operations[len(otherwise.operations) - 1]
            end.operands[list(start.before.results).index(value)] = token

    def _go_on(self, start: _Start, copies: dict[Any, Any], more: Any) -> None:
        """Let a branch of the loop start the next program's commands where it starts none of this one's."""
        editor, branch = self._editor, start.inside
        otherwise = branch.regions[1].blocks[0]
        end = otherwise.operations[len(otherwise.operations) - 1].operation
        own = self._inner.regions[0].blocks[0].arguments[0]
        counting = Count(own, self._inner.operands[1], self._inner.operands[2])
        known = {**copies, **start.pointers(self._filled)}

        def begun(commands: Sequence[Any], *needed: Any) -> list[Any]:
            conditions = editor.both([more, *needed])
            return list(
                editor.if_else(
                    conditions,
                    [editor.types.i64],
                    lambda: [self._copied(commands, known)],
                    lambda: [editor.constant(0)],
                )
            )

        editor.before(end)
        condition = self._condition(start, copies)
        fed = self._fed_by(start)
        if fed is None:
            (token,) = begun(start.commands, condition)
        else:  # the branch is not taken in the last iteration but one, either
            first, command = fed
            known |= {command.operands[0]: _commands(branch)[-1].operands[0]}
            (token,) = editor.if_else(
                later(editor, counting, 1),
                [editor.types.i64],
                lambda: begun([command], self._condition(first, copies)),
                lambda: begun(start.commands, condition),
            )
        end.operands[0] = token

    def _fed_by(self, start: _Start) -> tuple[_Start, Any] | None:
        """For what a later product is fed with: the first product, and the command that moves the same for it."""
        if not self._is_second(start):
            return None
        (buffer,) = (origin(command.operands[0]) for command in start.commands)
        for first in self._starts:
            for command in first.commands:
                if not self._is_second(first) and NpuDma.isa(command) and command.operands[0] == buffer:
                    return first, command
        return None

    def _copied(self, commands: Sequence[Any], known: dict[Any, Any]) -> Any:
        """Start the next program's commands. Returns the last one's token."""
        editor, made = self._editor, None
        known = dict(known)
        feeding = {fed[1]: start for start in self._starts if (fed := self._fed_by(start)) is not None}
        if any(NpuMatrix.isa(command) for command in commands):
            self._wait_for_next()
        for command in commands:
            if len(commands) > 1 and command in feeding:
                token = self._now_or_before(command, known, feeding[command])
                known |= {command.results[0]: token}
                continue
            made = copy(command, known, editor.at)
            known |= dict(zip(command.results, made.results, strict=True))
        assert made is not None
        return made.results[0]

    def _now_or_before(self, command: Any, known: dict[Any, Any], second: _Start) -> Any:
        """The token of a transfer that has started in the iteration before, if there is one, and else starts now."""
        editor, arguments = self._editor, self._inner.regions[0].blocks[0].arguments
        alone = editor.compare(EQ, arguments[0], self._inner.operands[0])
        (token,) = editor.if_else(
            alone,
            [editor.types.i64],
            lambda: [copy(command, known, editor.at).results[0]],
            lambda: [arguments[1 + second.number]],
        )
        return token

    def _wait_for_next(self) -> None:
        """Let the matrix unit wait for what has been moved for the next program."""
        arguments = list(self._block.arguments)
        last = self._block.operations[len(self._block.operations) - 1]
        for operation in self._awaited:
            view = NpuOrder(operation)
            token = last.operands[arguments.index(view.token) - 1]
            self._editor.create(NpuOrder, [], units(MATRIX, view.other), token=token)

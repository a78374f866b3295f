"""Finishes a program in the first iteration of the next one's loop.

Behind its loop, a program waits for the last product, and computes and stores what it gives. If the next program's
first product has begun (`continuing`), that moves to where its loop first touches the sums: there, the core would wait
for the product before. So the core computes what the first iteration begins with while the last product of the program
before is multiplied. The outer loop carries the tokens and the scalars that are needed; tensors lie in buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.compiler.dialect.npu import (
    STORE,
    NpuBuffer,
    NpuDma,
    NpuMatrix,
    NpuOrder,
    NpuRead,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.compiler.loops.state import DEFERRED
from triton_porting_kit.toolchain.mlir import ir

from .ahead import with_nested
from .editing import EQ, SLT, Editor, bytes_of, element_of, number_of, origin, shape_of
from .loops import with_carried
from .products import MATRIX
from .slices import PURE, captured, copy, owner_in

MOST_BYTES = 1 << 12
"""Of the tensors that are kept for a program's end."""

_COMPUTED = PURE | (DEFERRED - {NpuRead.OPERATION_NAME})
"""What may be computed once more."""


@dataclass
class _Needed:
    """What a program's end is computed from: scalars to carry, results of the loop to keep in buffers, by number, and
    operations to copy.
    """

    scalars: list[Any] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    copied: set[Any] = field(default_factory=set)


def finish_late(editor: Editor, loop: Any, inner: Any) -> Any:
    """Rewrite a loop over programs in place whose last carried value says that a program has begun. Returns the loop,
    which may be a new one.
    """
    end = _End(_Program(loop, inner))
    return _Finishing(editor, end).run() if end.possible else loop


class _Program:
    """The loop over programs, and the loop in it."""

    def __init__(self, loop: Any, inner: Any) -> None:
        self.loop, self.inner = loop, inner
        self.block, self.body = (each.regions[0].blocks[0] for each in (loop, inner))
        operations = [operation.operation for operation in self.block.operations]
        self.order = {operation: number for number, operation in enumerate(operations)}
        self.terminator = operations[-1]
        self.arguments, self.following = list(self.block.arguments), list(self.terminator.operands)
        self.begun, self.goes = self.arguments[-1], self.following[-1]

    def is_result(self, value: Any) -> bool:
        """Whether a value is the inner loop's."""
        operation = owner_in(value, self.block)
        return operation is not None and operation == self.inner


class _End:
    """What stands behind a program's loop, and what it takes to move it. `possible`: whether it may."""

    def __init__(self, program: _Program) -> None:
        self.program = program
        behind = list(program.order)[program.order[program.inner] + 1 : -1]
        self.buffers = [operation for operation in behind if NpuBuffer.isa(operation)]
        self.tail = [operation for operation in behind if not NpuBuffer.isa(operation)]
        self.state = self._changed()
        """The numbers of the carried values that only the end of a program changes."""
        self.needed = _Needed()
        self.roots = {origin(op.operands[0]) for op in self.tail if NpuRead.isa(op)}
        """The buffers of the sums."""
        self.first_writes: list[Any] = []
        """What writes the sums before the loop."""
        self.place: Any = None
        """Where the loop waits for the product of the iteration before, or else adds to it."""
        self.late: list[Any] = []
        """What reads the sums in the loop, and stands before that place, but is computed behind it."""
        self.possible = self._plan()

    def _changed(self) -> list[int]:
        """The numbers of the carried values that only the end of a program changes."""
        found = {n for n, value in enumerate(self.program.following) if self._at_end(value)}
        while more := {
            n
            for n, value in enumerate(self.program.following)
            if n not in found and any(value == self.program.arguments[1 + other] for other in found)
        }:
            found |= more
        return sorted(found)

    def _at_end(self, value: Any) -> bool:
        operation = owner_in(value, self.program.block)
        return operation is not None and operation in self.tail

    def _plan(self) -> bool:
        tail = [op for each in self.tail for op in with_nested(each)]
        return (
            bool(tail)
            and all(map(_is_plain, tail))
            and self._find_place()
            and self._find_stateful()
            and all(self._need(value) for op in self.tail for value in captured(op))
            and self._find_first_writes()
            and self._find_late()
        )

    def _find_place(self) -> bool:
        """Find where the loop waits for the product of the iteration before, or else adds to it."""
        arguments, results = list(self.program.body.arguments), list(self.program.inner.results)
        for operation in self.tail:
            if not NpuWait.isa(operation) or NpuWait(operation).unit != MATRIX:
                continue
            token = NpuWait(operation).token
            if token not in results:
                return False
            own = arguments[1 + results.index(token)]
            waits = (use.owner.operation for use in own.uses if NpuWait.isa(use.owner.operation))
            self.place = next((wait for wait in waits if wait.block == self.program.body), None)
        if self.place is None:
            products = (op.operation for op in self.program.body.operations if NpuMatrix.isa(op.operation))
            self.place = next((op for op in products if self._touches(op)), None)
        return self.place is not None

    def _find_stateful(self) -> bool:
        """Find what is computed before the loop from what the end of a program changes. Nothing else may need that."""
        ends = {op for each in self.tail for op in with_nested(each)} | {self.program.terminator}
        changed = [self.program.arguments[1 + number] for number in self.state]
        pending = list(changed)
        while pending:  # which grows
            for use in pending.pop().uses:
                user = use.owner.operation
                if user in ends:
                    continue
                if user.block != self.program.block or user.name not in PURE:
                    return False
                if user not in self.needed.copied:
                    self.needed.copied.add(user)
                    pending += list(user.results)
        given = [self.program.following[number] for number in self.state]
        return all(self._at_end(value) or value in changed for value in given)

    def _need(self, value: Any) -> bool:
        """Note what a value of this program is kept by. Returns whether that is possible."""
        needed, owner = self.needed, value.owner
        if isinstance(owner, ir.Block):
            if owner != self.program.block or self.program.arguments.index(value) - 1 in self.state:
                return True
            return self._carry(value)
        operation = owner.operation
        if operation.block != self.program.block or operation in self.tail or NpuBuffer.isa(operation):
            return True
        if operation == self.program.inner:
            if shape_of(value) is None:
                return self._carry(value)
            if value.result_number not in needed.tensors:
                needed.tensors.append(value.result_number)
            return bytes_of(value) <= MOST_BYTES
        if operation not in needed.copied:
            if _is_whole(value):
                return self._carry(value)
            if operation.name not in _COMPUTED:
                return False
            needed.copied.add(operation)
        return all(map(self._need, captured(operation)))

    def _carry(self, value: Any) -> bool:
        if value not in self.needed.scalars:
            self.needed.scalars.append(value)
        return _is_whole(value)

    def _find_first_writes(self) -> bool:
        """Find what writes the sums before the loop: that has to wait for the end of the program before."""
        for operation in list(self.program.order)[: self.program.order[self.program.inner]]:
            if NpuBuffer.isa(operation) or operation.name == "llvm.getelementptr":
                continue
            if not self._touches(operation):
                continue
            if not NpuWrite.isa(operation) or not self._computable(NpuWrite(operation).value):
                return False
            self.first_writes.append(operation)
        return True

    def _computable(self, value: Any) -> bool:
        """Whether a tensor of the block is computed from no memory."""
        operation = owner_in(value, self.program.block)
        if operation is None:
            return True
        return operation.name in _COMPUTED and all(map(self._computable, captured(operation)))

    def _touches(self, operation: Any) -> bool:
        return any(origin(value) in self.roots for op in with_nested(operation) for value in op.operands)

    def _find_late(self) -> bool:
        """Find what reads the sums in the loop, and stands before that place, but is computed behind it."""
        late: set[Any] = set()
        for view in self.program.body.operations:
            operation = view.operation
            if operation == self.place:
                return True
            owners = (owner_in(value, self.program.body) for value in captured(operation))
            from_late = any(owner is not None and owner in late for owner in owners)
            if not from_late and not self._touches(operation):
                continue
            if operation.name not in DEFERRED and not NpuRead.isa(operation):
                return False
            late.add(operation)
            self.late.append(operation)
        return False


class _Finishing:
    """Rewrites a loop over programs in place."""

    def __init__(self, editor: Editor, end: _End) -> None:
        self._editor, self._end, self._program = editor, end, end.program
        self._inner = end.program.inner

    def run(self) -> Any:
        editor, program, loop = self._editor, self._program, self._program.loop
        editor.before(loop)
        kept = {n: self._kept(self._inner.results[n]) for n in self._end.needed.tensors}
        roots = [
            root.owner.operation
            for root in self._end.roots
            if owner_in(root, self._program.block) is not None
        ]
        for buffer in (*self._end.buffers, *roots):
            buffer.move_before(loop)
        tokens = self._tokens()
        scalars = self._end.needed.scalars
        zeros = [editor.constant(0, value.type) for value in scalars]
        numbers = {n: v.result_number for n, v in enumerate(scalars) if program.is_result(v)}

        def following(added: Any) -> list[Any]:
            for number, token in zip(tokens, added, strict=False):
                self._inner.operands[3 + number] = token
            before = dict(zip(scalars, added[len(tokens) :], strict=True))
            self._write_if_empty()
            state = [self._program.arguments[1 + number] for number in self._end.state]
            made = with_carried(self._inner, state, lambda carried: self._first(carried, before, kept))
            self._inner = made
            self._finish(list(made.results)[len(made.results) - len(state) :], kept)
            own = [made.results[numbers[n]] if n in numbers else value for n, value in enumerate(scalars)]
            return [*(made.results[number] for number in tokens), *own]

        return with_carried(loop, [*(editor.constant(0) for _ in tokens), *zeros], following)

    def _kept(self, value: Any) -> Any:
        """A buffer for a result of the loop."""
        shape = shape_of(value)
        assert shape is not None
        return self._editor.buffer(shape, element_of(value), "kept")

    def _tokens(self) -> list[int]:
        """The numbers of the tokens that the loop carries from nothing: now from the program before."""
        found = []
        for number, value in enumerate(list(self._inner.operands)[3:]):
            own = self._program.body.arguments[1 + number]
            users = [use.owner.operation for use in own.uses]
            awaited = any(NpuWait.isa(user) or NpuOrder.isa(user) for user in users)
            if shape_of(value) is None and number_of(value) == 0 and awaited:
                found.append(number)
        return found

    def _write_if_empty(self) -> None:
        """Before a loop without iterations, write the sums."""
        editor = self._editor
        if not self._end.first_writes:
            return
        editor.before(self._inner)
        some = editor.compare(SLT, *list(self._inner.operands)[:2])
        editor.if_else(some, [], list, lambda: self._copied(self._end.first_writes, {}))

    def _copied(self, operations: list[Any], known: dict[Any, Any]) -> list[Any]:
        """Copy operations to the editor's place. `known` gets what they give."""
        for operation in operations:
            made = copy(operation, known, self._editor.at)
            known.update(zip(operation.results, made.results, strict=True))
        return []

    def _first(self, carried: Any, before: Mapping[Any, Any], kept: Mapping[int, Any]) -> list[Any]:
        """In the loop's first iteration, finish the program before, and write the sums. Returns what that changes."""
        editor, inner, carried = self._editor, self._inner, list(carried)
        editor.before(self._end.place)
        first = editor.compare(EQ, self._program.body.arguments[0], inner.operands[0])
        kinds = [value.type for value in carried]

        def finished() -> list[Any]:
            known = dict(before)
            for number, buffer in kept.items():
                result = inner.results[number]
                known[result] = editor.read(buffer, result.type)
            return self._finished(known, carried)

        def begin() -> list[Any]:
            results = list(editor.if_else(self._program.begun, kinds, finished, lambda: carried))
            self._copied(self._end.first_writes, {})
            return results

        results = list(editor.if_else(first, kinds, begin, lambda: carried))
        for operation in self._end.first_writes:
            operation.erase()
        for operation in self._end.late:
            operation.move_before(self._end.place)
        return results

    def _finished(self, known: dict[Any, Any], state: list[Any]) -> list[Any]:
        """A program's end at the editor's place. Returns what it changes."""
        known.update(
            {self._program.arguments[1 + n]: value for n, value in zip(self._end.state, state, strict=True)}
        )
        before = sorted(self._end.needed.copied, key=self._program.order.__getitem__)
        self._copied([*before, *self._end.tail], known)
        return [known.get(self._program.following[n], self._program.following[n]) for n in self._end.state]

    def _finish(self, state: list[Any], kept: Mapping[int, Any]) -> None:
        """Behind the loop, finish the program if the next one has not begun."""
        editor = self._editor
        editor.before(self._program.terminator)

        def keep() -> list[Any]:
            for number, buffer in kept.items():
                editor.write(buffer, self._inner.results[number])
            return state

        kinds = [value.type for value in state]
        results = editor.if_else(self._program.goes, kinds, keep, lambda: self._finished({}, state))
        for number, value in zip(self._end.state, results, strict=True):
            self._program.terminator.operands[number] = value
        for operation in reversed(self._end.tail):
            operation.erase()


def _is_plain(operation: Any) -> bool:
    """Whether an operation may be a part of a program's end that moves."""
    if NpuDma.isa(operation):
        return bool(NpuDma(operation).direction == STORE)
    known = _COMPUTED | {"linalg.yield"}
    return operation.name in known or any(cls.isa(operation) for cls in (NpuRead, NpuWrite, NpuWait))


def _is_whole(value: Any) -> bool:
    """Whether a value is an integer, not a tensor."""
    return shape_of(value) is None and isinstance(value.type, ir.IntegerType)

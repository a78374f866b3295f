"""Starts what the next program's loop begins with while this program finishes: behind this program's loop, whose
buffers are free then.

The first transfers of an inner loop stand before it (`pipelining`). For a loop whose iterations may run in any order,
they move behind the inner loop of the iteration before, and the outer loop carries their tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuDma, NpuMatrix, NpuOrder, NpuWait

from .ahead import with_nested, writes_global
from .continuing import continue_early
from .editing import SLT, Editor, origin
from .finishing import finish_late
from .loops import with_carried
from .pipelining import Count, later, positions
from .slices import Slice, copy, owner_in


def begin_early(editor: Editor, loop: Any, numbers: Sequence[tuple[Any, range]]) -> Any:
    """Rewrite a loop over programs in place. Returns the new loop. `numbers`: which of the values that loops carry are
    the numbers of copies, by the loop's body.
    """
    block = loop.regions[0].blocks[0]
    inner = next((op.operation for op in block.operations if op.operation.name == "scf.for"), None)
    for body, rings in numbers:
        if inner is not None and body == inner.regions[0].blocks[0]:
            made = continue_early(editor, loop, inner, rings)
            if made is not None:
                return finish_late(editor, made, inner)
    starts = [] if inner is None else _starts(block, inner)
    if not starts:
        return loop
    buffers = dict.fromkeys(buffer for start in starts for buffer in _targets(start))
    if not all(_is_own(block, inner, starts, buffer) for buffer in buffers):
        return loop
    given = [*buffers, *_tokens(starts)]
    piece = Slice(loop, starts, given)
    if not piece.possible or not piece.varies:
        return loop
    for buffer in buffers:
        buffer.owner.operation.move_before(loop)
    lower, upper, step, *initial = loop.operands
    editor.before(loop)
    first = {block.arguments[0]: lower, **dict(zip(list(block.arguments)[1:], initial, strict=True))}
    some = editor.compare(SLT, lower, upper)
    tokens = _started(editor, some, starts, lambda: piece.copied(first, editor.at))
    counting = Count(block.arguments[0], upper, step)

    def following(added: Any) -> list[Any]:
        operations = [operation.operation for operation in block.operations]
        behind = operations.index(inner) + 1
        while NpuWait.isa(operations[behind]):
            behind += 1
        editor.before(operations[behind])
        more = later(editor, counting, 1)
        results = _started(editor, more, starts, lambda: positions(editor, counting, piece, 1))
        for own, token in zip(_tokens(starts), added, strict=True):
            own.replace_all_uses_with(token)
        for start in starts:
            start.erase()
        return results

    return with_carried(loop, tokens, following)


def _started(
    editor: Editor, condition: Any, starts: list[Any], copies: Callable[[], dict[Any, Any]]
) -> list[Any]:
    """Start the transfers of another iteration, if there is one. Returns their tokens."""

    def made() -> list[Any]:
        found = copies()
        return _tokens([copy(start, found, editor.at) for start in starts])

    count = len(_tokens(starts))
    kinds = [editor.types.i64] * count
    return list(editor.if_else(condition, kinds, made, lambda: [editor.constant(0)] * count))


def _tokens(starts: list[Any]) -> list[Any]:
    return [token for start in starts for token in start.results]


def _starts(block: Any, inner: Any) -> list[Any]:
    """The branches before the inner loop that start its first transfers, if no store is before them."""
    found = []
    for value in list(inner.operands)[3:]:
        start = owner_in(value, block)
        if start is None or start.name != "scf.if":
            continue
        users = [[use.owner.operation for use in token.uses] for token in start.results]
        if users != [[inner]] * len(users):
            continue
        inside = list(with_nested(start))
        if any(NpuMatrix.isa(op) or NpuOrder.isa(op) for op in inside):
            return []  # a product starts first, and what is moved for the next one would delay it
        if any(map(NpuDma.isa, inside)) and start not in found:
            found.append(start)
    for operation in block.operations:
        if operation.operation == inner:
            return found
        if any(map(writes_global, with_nested(operation.operation))):
            return []
    return []


def _targets(start: Any) -> dict[Any, None]:
    """The buffers that a branch's transfers fill, but those of the branch itself."""
    return dict.fromkeys(origin(NpuDma(op).target) for op in with_nested(start) if NpuDma.isa(op))


def _is_own(block: Any, inner: Any, starts: list[Any], buffer: Any) -> bool:
    """Whether a buffer of the block is used by the inner loop and by these branches alone."""
    made = owner_in(buffer, block)
    if made is None or not NpuBuffer.isa(made):
        return False
    for use in buffer.uses:
        user = use.owner.operation
        while user.block != block:
            user = user.parent.operation
        if user.name == "llvm.getelementptr":
            user = next((u.owner.operation for u in user.results[0].uses), user)
            while user.block != block:
                user = user.parent.operation
        if user != inner and user not in starts:
            return False
    return True

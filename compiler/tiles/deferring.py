"""Lets the matrix unit finish a loop's last product while the core begins the next iteration.

The core waits where it first needs the sums, in the next iteration and behind the loop. What is moved into the
operands' buffers waits for the product by itself (`tpk.npu_order`), and the product for what is moved there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.compiler.dialect.npu import (
    MOVE,
    NpuDma,
    NpuGather,
    NpuMatrix,
    NpuOrder,
    NpuRead,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.compiler.loops.state import DEFERRED
from triton_porting_kit.toolchain.mlir import ir

from .ahead import with_nested
from .editing import Editor, origin
from .loops import with_carried
from .orders import units
from .products import MATRIX
from .slices import owner_in


@dataclass(frozen=True)
class _Touches:
    """Where a loop's body uses buffers, in its own block: the core by itself, and DMA channels by their units."""

    core: list[Any]
    channels: list[tuple[Any, set[str]]]


def defer(editor: Editor, loop: Any) -> Any:
    """Rewrite a loop in place, if the core does not need what its last product gives in the same iteration. Returns the
    loop, which may be a new one.
    """
    block = loop.regions[0].blocks[0]
    order = {operation.operation: number for number, operation in enumerate(block.operations)}
    found = _last_product(block, order)
    if found is None:
        return loop
    commands, wait = found
    views = [NpuMatrix(command) for command in commands]
    roots = dict.fromkeys(origin(value) for view in views for value in (view.a, view.b, view.c))
    touches = _touches(block, roots, order, reads=True)
    if any(order[op] > order[wait] for op in (*touches.core, *(op for op, _ in touches.channels))):
        return loop
    moves = _moves(block, {origin(value) for view in views for value in (view.a, view.b)}, order)
    for root in roots:
        _out_of(root, loop)
    waits = {each: _touches(block, {origin(NpuDma(start).source)}, order) for each, start in moves}
    moved = [(each, start) for each, start in moves if owner_in(origin(NpuDma(start).source), block)]
    for each, start in moved:
        _out_of(origin(NpuDma(start).source), loop)
        editor.before(each)
        editor.create(NpuOrder, [], units(MATRIX, NpuWait(each).unit), token=start.results[0])

    def following(added: Any) -> list[Any]:
        _wait_first(editor, touches, order, MATRIX, added[0])
        for (each, _), token in zip(moved, added[1:], strict=True):
            _wait_first(editor, waits[each], order, NpuWait(each).unit, token)
            each.erase()
        wait.erase()
        return [commands[-1].results[0], *(start.results[0] for _, start in moved)]

    editor.before(loop)
    zero = editor.constant(0)
    made = with_carried(loop, [zero] * (1 + len(moved)), following)
    editor.at = ir.InsertionPoint.after(made)
    editor.wait(made.results[len(made.results) - 1 - len(moved)], MATRIX)
    return made


def _last_product(block: Any, order: dict[Any, int]) -> tuple[list[Any], Any] | None:
    """The commands of the matrix unit for which a block waits last, and the wait."""
    waits = [
        (operation, command)
        for operation in order
        if NpuWait.isa(operation)
        and NpuWait(operation).unit == MATRIX
        and (command := owner_in(NpuWait(operation).token, block)) is not None
        and NpuMatrix.isa(command)
    ]
    if not waits:
        return None
    wait, last = waits[-1]
    before = max((order[command] for _, command in waits[:-1]), default=-1)
    commands = [op for op in order if NpuMatrix.isa(op) and before < order[op] <= order[last]]
    inside = any(
        NpuMatrix.isa(op) and op not in order and order[_ancestor(op, block)] > order[last]
        for top in order
        for op in with_nested(top)
    )
    return None if inside else (commands, wait)


def _out_of(root: Any, loop: Any) -> None:
    """Let a buffer be there from before the loop until behind it."""
    if owner_in(root, loop.regions[0].blocks[0]) is not None:
        root.owner.operation.move_before(loop)


def _ancestor(operation: Any, block: Any) -> Any:
    while operation.block != block:
        operation = operation.parent.operation
    return operation


def _touches(block: Any, roots: Container[Any], order: dict[Any, int], *, reads: bool = False) -> _Touches:
    """What writes the buffers, and with `reads` also what reads them; but not the matrix unit."""
    core: list[Any] = []
    channels: list[tuple[Any, set[str]]] = []
    for top in order:
        channel: set[str] = set()
        for operation in with_nested(top):
            if NpuRead.isa(operation) and reads and origin(operation.operands[0]) in roots:
                core += [_ancestor(user, block) for user in _consumers(operation.results[0])]
            elif NpuWrite.isa(operation) and origin(operation.operands[0]) in roots:
                core.append(top)
            elif NpuDma.isa(operation):
                view = NpuDma(operation)
                if origin(view.target) in roots or (reads and origin(view.source) in roots):
                    channel.add(view.unit)
            elif NpuGather.isa(operation) and origin(NpuGather(operation).buffer) in roots:
                channel.add(NpuGather(operation).unit)
        if channel:
            channels.append((top, channel))
    return _Touches(sorted(core, key=lambda op: order[op]), channels)


def _consumers(value: Any) -> Iterator[Any]:
    """The operations in whose loops a tensor is evaluated, each once: a sort uses each of its tensors twice."""
    pending, seen = [value], set[Any]()
    while pending:
        users = {use.owner.operation for use in pending.pop().uses} - seen
        seen |= users
        for user in users:
            if user.name in DEFERRED:
                pending += user.results
            else:
                yield user


def _moves(block: Any, operands: set[Any], order: dict[Any, int]) -> list[tuple[Any, Any]]:
    """The waits for what is moved from vector memory to operands, and what they wait for."""
    found = []
    for operation in order:
        start = owner_in(NpuWait(operation).token, block) if NpuWait.isa(operation) else None
        if start is None or not NpuDma.isa(start) or NpuDma(start).direction != MOVE:
            continue
        if origin(NpuDma(start).target) in operands:
            found.append((operation, start))
    return found


def _wait_first(editor: Editor, touches: _Touches, order: dict[Any, int], unit: str, token: Any) -> None:
    """Wait for the last iteration's command where a buffer is first used."""
    first = order[touches.core[0]] if touches.core else len(order)
    for operation, channels in touches.channels:
        if order[operation] < first:
            for other in sorted(channels - {unit}):
                editor.before(operation)
                editor.create(NpuOrder, [], units(other, unit), token=token)
    if touches.core:
        editor.before(touches.core[0])
        editor.wait(token, unit)

"""Moves the next iteration's tiles while this one is computed.

A loop's fetch is a buffer, a transfer into it, and a wait. If the addresses of the next iteration can be computed at
the start of this one, the buffer gets a second copy. The first transfer starts before the loop, and each iteration
starts the next one's, then waits for its own. Tokens and the number of the copy are carried by the loop.

What is the same in every iteration is moved once, before the loop.

Where only the matrix unit reads what is fetched, and the core does not touch the sums in the loop, the core does not
wait at all: the units wait for each other (`tpk.npu_order`), and the core waits behind the loop.

A load may not pass a store that is before it. So a loop that writes global memory, or waits for other programs, keeps
its order; but not the loops over a core's programs and over the pieces of a tile, which may run in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.npu import (
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuBuffer,
    NpuDma,
    NpuElementLoad,
    NpuMatrix,
    NpuOrder,
    NpuRead,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.toolchain.mlir import ir

from .ahead import Fetch, early_products, fetches, writes_global
from .deferring import defer
from .editing import SLT, Editor, functions, nested
from .loops import with_carried
from .products import MATRIX
from .programs import UNORDERED
from .slices import Slice, copy

_SYNCHRONISES = tuple(cls.OPERATION_NAME for cls in (NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll))


class Level(IntEnum):
    """How much memory loops may take to overlap."""

    TRANSFERS = 0
    """Two copies of what is moved."""
    SUMS = 1
    """Two copies of sums, so that products start an iteration early; one of what is moved for the matrix unit."""
    BOTH = 2
    """Two copies of sums and of what is moved."""


def overlap(module: Any, chip: ChipDescription, level: Level = Level.BOTH) -> bool:
    """Rewrite the loops of a module of the stage ``tiles``, in MLIR's bindings, in place; inner loops first.

    Returns whether a lower level would take less memory.
    """
    less = False
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            loops = [op for op in nested(function.regions[0].blocks[0]) if op.name == "scf.for"]
            for loop in reversed(loops):
                less |= _overlap(editor, loop, level)
    return less


def _overlap(editor: Editor, loop: Any, level: Level) -> bool:
    body = list(nested(loop.regions[0].blocks[0]))
    if any(
        op.name in _SYNCHRONISES or (NpuElementLoad.isa(op) and NpuElementLoad(op).volatile) for op in body
    ):
        return False
    if any(map(writes_global, body)) and UNORDERED not in loop.attributes:
        return False
    for operation in body:
        if NpuRead.isa(operation) and not list(operation.results[0].uses):
            operation.erase()
    found = [(fetch, piece) for fetch in fetches(loop) if (piece := fetch.slice(loop)).possible]
    for fetch, piece in found:
        if not piece.varies:
            _hoist(editor, loop, fetch, piece)
    varying = [fetch for fetch, piece in found if piece.varies]
    ahead = early_products(editor, loop, varying) if level > Level.TRANSFERS else varying
    early = any(fetch.inner for fetch in ahead)
    if early and level is Level.SUMS:
        moved = [fetch for fetch in ahead if fetch.for_matrix and not fetch.inner]
        for fetch in moved:
            _at_top(editor, loop, fetch)
        ahead = [fetch for fetch in ahead if fetch not in moved]
    if ahead:
        ahead.sort(
            key=lambda fetch: not fetch.inner
        )  # products first: what is moved for others may wait for one
        loop = _pipeline(editor, loop, [(fetch, fetch.slice(loop)) for fetch in ahead])
    defer(editor, loop)
    return early


def _hoist(editor: Editor, loop: Any, fetch: Fetch, piece: Slice) -> None:
    """Move what every iteration would move again once, before the loop, if there is an iteration."""
    lower, upper = list(loop.operands)[:2]
    editor.before(loop)
    some = editor.compare(SLT, lower, upper)
    fetch.buffer.move_before(loop)
    copies = piece.copied({}, ir.InsertionPoint(loop))
    editor.wait(_started(editor, some, fetch, copies), fetch.unit)
    fetch.wait.erase()
    for start in reversed(fetch.starts):
        start.erase()


def _at_top(editor: Editor, loop: Any, fetch: Fetch) -> None:
    """Start what is moved for the matrix unit at the start of its own iteration, and let that unit wait for it."""
    fetch.buffer.move_before(loop)
    top = ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0])
    (start,) = fetch.starts
    made = copy(start, fetch.slice(loop).copied({}, top), top)
    start.results[0].replace_all_uses_with(made.results[0])
    start.erase()
    _order(editor, fetch)


def _order(editor: Editor, fetch: Fetch) -> None:
    """Let the matrix unit wait for a transfer in the core's place."""
    editor.before(fetch.wait)
    editor.create(NpuOrder, [], _units(MATRIX, fetch.unit), token=NpuWait(fetch.wait).token)
    fetch.wait.erase()


def _pipeline(editor: Editor, loop: Any, fetches: list[tuple[Fetch, Slice]]) -> Any:
    """Start what an iteration waits for in the iteration before. Returns the new loop."""
    types = editor.types
    lower, upper, step = list(loop.operands)[:3]
    initial = list(loop.operands)[3:]
    block = loop.regions[0].blocks[0]
    arguments = list(block.arguments)
    free = _free_running(loop, [fetch for fetch, _ in fetches])
    orders = [fetch for fetch, _ in fetches if free is None and fetch.for_matrix and not fetch.inner]

    editor.before(loop)
    some = editor.compare(SLT, lower, upper)
    first = {arguments[0]: lower, **dict(zip(arguments[1:], initial, strict=True))}
    tokens = []
    for fetch, piece in fetches:
        for buffer in (fetch.buffer, *fetch.inner):
            buffer.move_before(loop)
        editor.double(fetch.buffer)
        copies = piece.copied(first, ir.InsertionPoint(loop))
        tokens.append(_started(editor, some, fetch, copies))
    zero = editor.constant(0)

    top = block.operations[0].operation
    editor.before(top)

    def following(added: Any) -> list[Any]:
        *running, number = added[: len(fetches) + 1]
        editor.before(block.operations[0].operation)
        other = editor.value("arith.subi", [editor.constant(1), number], types.i64)
        ahead = editor.value("arith.addi", [arguments[0], step], arguments[0].type)
        more = editor.compare(SLT, ahead, upper)
        if free is not None:
            editor.create(NpuOrder, [], _units(fetches[0][0].unit, MATRIX), token=added[-1])
        results = []
        for (fetch, piece), token in zip(fetches, running, strict=True):
            size = NpuBuffer(fetch.buffer).bytes
            own = fetch.buffer.results[0]
            here, there = (_copy_of(editor, own, index, size) for index in (number, other))
            copies = piece.next_carried(editor.at)
            copies[arguments[0]] = ahead
            copies = piece.copied(copies, editor.at)
            copies[own] = there
            if fetch.inner:  # which the last product reads
                fetch.wait.move_before(top)
                fetch.wait.operands[0] = token
            results.append(_started(editor, more, fetch, copies))
            _use_copy(fetch, loop_block=block, here=here, token=token)
        results.append(other)
        if free is not None:
            results.append(free.results[0])
        return results

    extra = [*tokens, zero] + ([zero] if free is not None else [])
    made = with_carried(loop, extra, following)
    for fetch in orders:
        _order(editor, fetch)
    if free is not None:
        _let_run(editor, made, fetches)
    return made


def _units(unit: str, other: str) -> dict[str, Any]:
    return {"unit": ir.StringAttr.get(unit), "other": ir.StringAttr.get(other)}


def _started(editor: Editor, condition: Any, fetch: Fetch, copies: dict[Any, Any]) -> Any:
    """The transfer of another iteration, if there is one. Returns its token."""
    (token,) = editor.if_else(
        condition,
        [editor.types.i64],
        lambda: [_all(editor, fetch.starts, copies)],
        lambda: [editor.constant(0)],
    )
    return token


def _all(editor: Editor, starts: Sequence[Any], copies: dict[Any, Any]) -> Any:
    """Copies of some commands in order. Returns the last one's token."""
    made, copies = None, dict(copies)
    for start in starts:
        made = copy(start, copies, editor.at)
        copies.update(zip(start.results, made.results, strict=True))
    assert made is not None
    return made.results[0]


def _copy_of(editor: Editor, buffer: Any, number: Any, size: int) -> Any:
    """A copy of a buffer by its number."""
    return editor.advanced(
        buffer, editor.value("arith.muli", [number, editor.constant(size)], editor.types.i64), "i8"
    )


def _use_copy(fetch: Fetch, loop_block: Any, here: Any, token: Any) -> None:
    """Let the loop's body use the copy `here`, which `token`'s transfer has filled."""
    own = fetch.buffer.results[0]
    for operation in nested(loop_block):
        if operation in (here.owner.operation, *fetch.starts):
            continue
        if NpuDma.isa(operation) or operation.name == "tpk.npu_gather":
            continue  # of the next iteration, which have their copy already
        for number, value in enumerate(list(operation.operands)):
            if value == own and operation.name != "llvm.getelementptr":
                operation.operands[number] = here
    fetch.wait.operands[0] = token
    for start in reversed(fetch.starts):
        start.erase()


# --- units that wait for each other -------------------------------------------------------------------


def _free_running(loop: Any, fetches: list[Fetch]) -> Any | None:
    """The last command of the matrix unit in a loop in which the core needs to wait for none; None otherwise."""
    block = loop.regions[0].blocks[0]
    inside = list(nested(block))
    commands = [op for op in inside if NpuMatrix.isa(op)]
    if not commands or any(command.block != block for command in commands):
        return None
    sums = {NpuMatrix(command).c for command in commands}
    operands = {value for command in commands for value in (NpuMatrix(command).a, NpuMatrix(command).b)}
    fetched = {fetch.buffer.results[0] for fetch in fetches}
    if len({fetch.unit for fetch in fetches}) != 1 or not fetched <= operands:
        return None
    for value in operands - fetched:
        if not isinstance(value.owner, ir.Block) and value.owner.operation.block == block:
            return None
    for operation in inside:
        touches = NpuRead.isa(operation) or NpuWrite.isa(operation)
        if touches and operation.operands[0] in sums | fetched:
            return None
        if NpuDma.isa(operation) and operation.operands[1] in sums:
            return None
    return commands[-1]


def _let_run(editor: Editor, loop: Any, fetches: list[tuple[Fetch, Slice]]) -> None:
    """Let the matrix unit wait for the transfers, and the core only for the matrix unit, behind the loop."""
    for fetch, _ in fetches:
        editor.before(fetch.wait)
        editor.create(NpuOrder, [], _units(MATRIX, fetch.unit), token=NpuWait(fetch.wait).token)
        fetch.wait.erase()
    for operation in list(loop.regions[0].blocks[0].operations):
        wait = NpuWait.dyn_cast(operation.operation)
        if wait is not None and wait.unit == MATRIX:
            operation.operation.erase()
    editor.at = ir.InsertionPoint.after(loop)
    editor.wait(loop.results[len(loop.results) - 1], MATRIX)

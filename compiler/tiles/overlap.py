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

from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    STORE,
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuBuffer,
    NpuDma,
    NpuElementLoad,
    NpuElementStore,
    NpuMatrix,
    NpuOrder,
    NpuRead,
    NpuScatter,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.toolchain.mlir import ir

from .editing import SLT, Editor, functions, nested
from .loops import with_carried
from .products import MATRIX
from .programs import UNORDERED
from .slices import Slice, copy

_WRITES = tuple(
    cls.OPERATION_NAME for cls in (NpuScatter, NpuElementStore, NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll)
)
_SYNCHRONISES = tuple(cls.OPERATION_NAME for cls in (NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll))


@dataclass(frozen=True)
class Fetch:
    """A transfer into a buffer of a loop's body: what starts it (a transfer, or a branch with one), and the wait."""

    buffer: Any
    start: Any
    wait: Any
    unit: str


def overlap(module: Any, chip: ChipDescription) -> None:
    """Rewrite the loops of a module of the stage ``tiles``, in MLIR's bindings, in place; inner loops first."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            loops = [op for op in nested(function.regions[0].blocks[0]) if op.name == "scf.for"]
            for loop in reversed(loops):
                _overlap(editor, loop)


def _overlap(editor: Editor, loop: Any) -> None:
    body = list(nested(loop.regions[0].blocks[0]))
    unordered = UNORDERED in loop.attributes
    if any(
        op.name in _SYNCHRONISES or (NpuElementLoad.isa(op) and NpuElementLoad(op).volatile) for op in body
    ):
        return
    if any(map(_writes, body)) and not unordered:
        return
    for operation in body:
        if NpuRead.isa(operation) and not list(operation.results[0].uses):
            operation.erase()
    fetches = [
        (fetch, piece)
        for fetch in _fetches(loop)
        if (piece := Slice(loop, [fetch.start], [fetch.buffer.results[0]])).possible
    ]
    for fetch, piece in fetches:
        if not piece.varies:
            _hoist(editor, loop, fetch, piece)
    varying = [(fetch, piece) for fetch, piece in fetches if piece.varies]
    if varying:
        _pipeline(editor, loop, varying)


def _hoist(editor: Editor, loop: Any, fetch: Fetch, piece: Slice) -> None:
    """Move what every iteration would move again once, before the loop, if there is an iteration."""
    lower, upper = list(loop.operands)[:2]
    editor.before(loop)
    some = editor.compare(SLT, lower, upper)
    fetch.buffer.move_before(loop)
    copies = piece.copied({}, ir.InsertionPoint(loop))
    editor.wait(_started(editor, some, fetch, copies), fetch.unit)
    fetch.wait.erase()
    fetch.start.erase()


def _writes(operation: Any) -> bool:
    """Whether an operation writes global memory."""
    return operation.name in _WRITES or (NpuDma.isa(operation) and NpuDma(operation).direction == STORE)


def _fetches(loop: Any) -> list[Fetch]:
    """The fetches of a loop's own body, in order, up to the first that is behind a store of its iteration."""
    block = loop.regions[0].blocks[0]
    found = []
    for operation in block.operations:
        inner = (op for region in operation.operation.regions for b in region.blocks for op in nested(b))
        if any(map(_writes, (operation.operation, *inner))):
            break
        wait = NpuWait.dyn_cast(operation.operation)
        if wait is None or not wait.unit.startswith("dma"):
            continue
        start = wait.token.owner
        if isinstance(start, ir.Block) or start.operation.block != block:
            continue
        start = start.operation
        targets = {
            NpuDma(op).target
            for op in (
                start,
                *(inner for region in start.regions for b in region.blocks for inner in nested(b)),
            )
            if NpuDma.isa(op) and NpuDma(op).direction == LOAD
        }
        if len(targets) != 1:
            continue
        buffer = targets.pop().owner
        if isinstance(buffer, ir.Block) or not NpuBuffer.isa(buffer.operation):
            continue
        if buffer.operation.block == block:
            found.append(Fetch(buffer.operation, start, operation.operation, wait.unit))
    return found


def _pipeline(editor: Editor, loop: Any, fetches: list[tuple[Fetch, Slice]]) -> None:
    types = editor.types
    lower, upper, step = list(loop.operands)[:3]
    initial = list(loop.operands)[3:]
    block = loop.regions[0].blocks[0]
    arguments = list(block.arguments)
    free = _free_running(loop, [fetch for fetch, _ in fetches])

    editor.before(loop)
    some = editor.compare(SLT, lower, upper)
    first = {arguments[0]: lower, **dict(zip(arguments[1:], initial, strict=True))}
    tokens = []
    for fetch, piece in fetches:
        fetch.buffer.move_before(loop)
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
            results.append(_started(editor, more, fetch, copies))
            _use_copy(fetch, loop_block=block, here=here, there=there, token=token)
        results.append(other)
        if free is not None:
            results.append(free.results[0])
        return results

    extra = [*tokens, zero] + ([zero] if free is not None else [])
    made = with_carried(loop, extra, following)
    if free is not None:
        _let_run(editor, made, fetches)


def _units(unit: str, other: str) -> dict[str, Any]:
    return {"unit": ir.StringAttr.get(unit), "other": ir.StringAttr.get(other)}


def _started(editor: Editor, condition: Any, fetch: Fetch, copies: dict[Any, Any]) -> Any:
    """The transfer of another iteration, if there is one. Returns its token."""
    (token,) = editor.if_else(
        condition,
        [editor.types.i64],
        lambda: [copy(fetch.start, copies, editor.at).results[0]],
        lambda: [editor.constant(0)],
    )
    return token


def _copy_of(editor: Editor, buffer: Any, number: Any, size: int) -> Any:
    """A copy of a buffer by its number."""
    return editor.advanced(
        buffer, editor.value("arith.muli", [number, editor.constant(size)], editor.types.i64), "i8"
    )


def _use_copy(fetch: Fetch, loop_block: Any, here: Any, there: Any, token: Any) -> None:
    """Let the loop's body use the copy `here`, which `token`'s transfer has filled, and parts of it; `there` is the
    copy that is filled for the next iteration.
    """
    own = fetch.buffer.results[0]
    for operation in nested(loop_block):
        if operation in (here.owner.operation, there.owner.operation):
            continue
        for number, value in enumerate(list(operation.operands)):
            if value == own:
                operation.operands[number] = here
    fetch.wait.operands[0] = token
    fetch.start.erase()


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

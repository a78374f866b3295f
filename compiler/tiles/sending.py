"""Lets a core compute its next program, or the next piece of a tile, while what the last one stores is still moved.

The buffer of a store in a loop whose iterations may run in any order gets a second copy. The core waits for the store
before the last one before it writes the same copy again, and behind the loop for the last. A store that something in
the same iteration may read or write again keeps its wait. Single elements that the core stores through another pointer
argument wait for it only if both arguments are the same address.

In a kernel's own loop, the stores are sent ahead if all arrays that it loads are other ones (`arrays.apart`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    NpuGather,
    NpuScatter,
    NpuWait,
    NpuWrite,
)
from triton_porting_kit.toolchain.mlir import ir

from .ahead import with_nested, writes_global
from .arrays import apart, argument, differ
from .editing import Editor, functions, nested, origin, walked
from .loops import with_carried
from .programs import UNORDERED

_OTHER = tuple(
    cls.OPERATION_NAME
    for cls in (
        NpuGather, NpuElementLoad, NpuElementStore, NpuScatter, NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll,
    )
)  # fmt: skip


@dataclass(frozen=True)
class _Send:
    """A store in a loop: its buffer, the vector code that fills it, the transfer, what starts it (itself, or a loop
    over parts of the tile), and the wait. `elements`: what stores single elements behind it, to what is another array
    if its pointer is another one.
    """

    buffer: Any
    write: Any
    transfer: Any
    start: Any
    wait: Any
    elements: list[Any] = field(default_factory=list)


def send_ahead(module: Any, chip: ChipDescription) -> None:
    """Rewrite the loops over programs and pieces of a module of the stage ``tiles``, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            inside = list(nested(function.regions[0].blocks[0]))
            for loop in reversed([op for op in inside if op.name == "scf.for"]):
                if UNORDERED in loop.attributes:
                    _carry(editor, loop, _sends(loop), None)
                elif any(map(writes_global, walked(loop))):
                    free = apart(editor, loop)
                    if free is not None:
                        _carry(editor, loop, _sends(loop, alone=True), free)


def _sends(loop: Any, *, alone: bool = False) -> list[_Send]:
    """The stores of a loop's own block that nothing behind them may touch in an iteration; `alone`: nothing may."""
    block = loop.regions[0].blocks[0]
    found: list[_Send] = []
    for operation in block.operations:
        last = operation.operation
        inside = [last, *(op for region in last.regions for inner in region.blocks for op in nested(inner))]
        if alone:
            pass
        elif NpuElementStore.isa(last):
            found = [send for send in found if _differ(send.transfer, last)]
            for send in found:
                send.elements.append(last)
        elif any(op.name in _OTHER or (NpuDma.isa(op) and NpuDma(op).direction == LOAD) for op in inside):
            found.clear()  # it may touch what has been stored
        wait = NpuWait.dyn_cast(last)
        start = None if wait is None or isinstance(wait.token.owner, ir.Block) else wait.token.owner.operation
        transfer = _transfer(start) if start is not None and start.block == block else None
        if transfer is None:
            continue
        source = origin(NpuDma(transfer).source)
        writes = [use.owner.operation for use in source.uses if NpuWrite.isa(use.owner.operation)]
        if (
            isinstance(source.owner, ir.Block)
            or not NpuBuffer.isa(source.owner.operation)
            or len(writes) != 1
        ):
            continue
        buffer = source.owner.operation
        if buffer.block == writes[0].block == block:
            found.append(_Send(buffer, writes[0], transfer, start, last))
    return found


def _transfer(start: Any) -> Any | None:
    """The one transfer of an operation or of a loop over parts of a tile, if it stores; else None."""
    if not NpuDma.isa(start) and start.name != "scf.while":
        return None
    found = [operation for operation in with_nested(start) if NpuDma.isa(operation)]
    return found[0] if len(found) == 1 and NpuDma(found[0]).direction == STORE else None


def _differ(transfer: Any, element: Any) -> bool:
    """Whether two stores are by different arguments."""
    one, other = _pair(transfer, element)
    return one is not None and other is not None and one != other


def _pair(transfer: Any, element: Any) -> tuple[Any | None, Any | None]:
    return argument(NpuDma(transfer).target), argument(NpuElementStore(element).base)


def _carry(editor: Editor, loop: Any, sends: list[_Send], free: Any | None) -> None:
    """Let a loop carry the tokens of its stores. `free`: an i1 without which the core waits for each at once."""
    if not sends:
        return
    block = loop.regions[0].blocks[0]
    editor.before(loop)
    zero = editor.constant(0)
    for send in sends:
        send.buffer.move_before(loop)
        editor.copies(send.buffer, 2)
    sizes = {NpuBuffer(send.buffer).bytes for send in sends}
    step = sizes.pop() if len(sizes) == 1 else 1  # then the number of the copy is its offset
    apart_from = [[differ(editor, [_pair(send.transfer, op)]) for op in send.elements] for send in sends]

    def following(added: Any) -> list[Any]:
        *tokens, number = added
        results = []
        for index, send in enumerate(sends):
            last, before_last = tokens[2 * index : 2 * index + 2]
            unit = NpuDma(send.transfer).unit
            editor.before(send.write)
            editor.wait(before_last, unit)
            offset = number
            if step == 1:
                size = editor.constant(NpuBuffer(send.buffer).bytes)
                offset = editor.value("arith.muli", [number, size], editor.types.i64)
            here = editor.advanced(send.buffer.results[0], offset, "i8")
            send.write.operands[0] = here
            for operation in with_nested(send.start):
                for place, value in enumerate(list(operation.operands)):
                    if value == send.buffer.results[0]:
                        operation.operands[place] = here
            places = list(zip(send.elements, apart_from[index], strict=True))
            for place, condition in places if free is None else [(send.wait, free)]:
                editor.before(place)
                token = NpuWait(send.wait).token
                editor.wait(editor.value("arith.select", [condition, zero, token], editor.types.i64), unit)
            results += [NpuWait(send.wait).token, last]
            send.wait.erase()
        editor.before(block.operations[len(block.operations) - 1].operation)
        results.append(editor.value("arith.subi", [editor.constant(step), number], editor.types.i64))
        return results

    count = 2 * len(sends)
    units = [NpuDma(send.transfer).unit for send in sends]
    made = with_carried(loop, [zero] * (count + 1), following)
    editor.at = ir.InsertionPoint.after(made)
    first = len(made.results) - count - 1
    for index, unit in enumerate(units):
        editor.wait(made.results[first + 2 * index], unit)

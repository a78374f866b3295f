"""Lets units wait for each other, and not the core."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.npu import NpuDma, NpuMatrix, NpuOrder, NpuRead, NpuWait, NpuWrite
from triton_porting_kit.toolchain.mlir import ir

from .ahead import Fetch
from .editing import Editor, nested
from .products import MATRIX


def units(unit: str, other: str) -> dict[str, Any]:
    """The attributes of an order: `unit` waits for `other`."""
    return {"unit": ir.StringAttr.get(unit), "other": ir.StringAttr.get(other)}


def order(editor: Editor, fetch: Fetch) -> None:
    """Let the matrix unit wait for a transfer in the core's place."""
    editor.before(fetch.wait)
    editor.create(NpuOrder, [], units(MATRIX, fetch.unit), token=NpuWait(fetch.wait).token)
    fetch.wait.erase()


def free_running(loop: Any, fetches: list[Fetch]) -> Any | None:
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


def let_run(editor: Editor, loop: Any, fetches: list[Fetch]) -> None:
    """Let the matrix unit wait for the transfers, and the core only for the matrix unit, behind the loop."""
    for fetch in fetches:
        order(editor, fetch)
    for operation in list(loop.regions[0].blocks[0].operations):
        wait = NpuWait.dyn_cast(operation.operation)
        if wait is not None and wait.unit == MATRIX:
            operation.operation.erase()
    editor.at = ir.InsertionPoint.after(loop)
    editor.wait(loop.results[len(loop.results) - 1], MATRIX)

"""Lets the core load scalars itself, where their buffers would be too much."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.npu import LOAD, NpuBuffer, NpuDma, NpuElementLoad, NpuRead, NpuWait
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, functions, nested, shape_of


def moved_scalars(module: Any) -> list[Any]:
    """The operations `tpk.npu_read` that give a scalar which has a transfer, a buffer and a wait of its own."""
    return [read for function in functions(module) for read in _reads(function)]


def _reads(function: Any) -> list[Any]:
    return [
        op
        for op in nested(function.regions[0].blocks[0])
        if NpuRead.isa(op) and shape_of(op.results[0]) in (None, ()) and _transfer(op) is not None
    ]


def load_by_core(module: Any, chip: ChipDescription) -> None:
    """Rewrite the loads of scalars of a module behind the pass ``transfer``, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            for read in _reads(function):
                transfer = _transfer(read)
                assert transfer is not None
                buffer = read.operands[0].owner.operation
                editor.before(transfer)
                value = editor.create(
                    NpuElementLoad,
                    [read.results[0].type],
                    base=NpuDma(transfer).source,
                    offsets=editor.constant(0),
                ).results[0]
                read.results[0].replace_all_uses_with(value)
                waits = [use.owner.operation for use in transfer.results[0].uses]
                for operation in (read, *waits, transfer, buffer):
                    operation.erase()


def _transfer(read: Any) -> Any | None:
    """The transfer of what is read, if that is all that uses its buffer, and waits are all that use its token."""
    buffer = read.operands[0].owner
    if isinstance(buffer, ir.Block) or not NpuBuffer.isa(buffer.operation):
        return None
    users = [use.owner.operation for use in read.operands[0].uses]
    transfers = [user for user in users if NpuDma.isa(user) and NpuDma(user).direction == LOAD]
    if len(users) != 2 or len(transfers) != 1:
        return None
    waited = all(NpuWait.isa(use.owner.operation) for use in transfers[0].results[0].uses)
    return transfers[0] if waited else None

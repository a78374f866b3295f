"""Tells the chip when vector code reads a buffer, so that it finds transfers that overwrite the buffer too early.

A tensor in a buffer is read where it is consumed. The announcement therefore stands before each operation that consumes
it, and behind it, too, if that is a loop or a branch in which units are commanded. Between two announcements of a
buffer, there is a command. What vector code writes is announced by the lowering.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.building import create
from triton_porting_kit.compiler.dialect.npu import NpuAnnounce, NpuBuffer, NpuRead
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation, Program, walk
from triton_porting_kit.compiler.loops.state import Uses
from triton_porting_kit.toolchain.mlir import ir

from .editing import bytes_of

_SILENT = (NpuBuffer.OPERATION_NAME, NpuRead.OPERATION_NAME)
"""Operations that command nothing."""


def announce(program: Program) -> None:
    """Add the announcements to a kernel and to its module, in MLIR's bindings, in place."""
    uses = Uses()
    wanted: _Wanted = {}
    for operation in walk(program.body):
        if NpuRead.isa(operation):
            for root in uses.roots(operation.results[0]):
                if (
                    root.handle.block == operation.handle.block
                ):  # not in a function that was inlined when it was read
                    size = bytes_of(operation.handle.results[0])
                    wanted.setdefault(root, {}).setdefault(operation.operands[0], size)
    with program.module.context, ir.Location.unknown():
        _Announcing(wanted).block(program.body)
    buffers = dict.fromkeys(buffer for found in wanted.values() for buffer in found)
    order = {operation: number for number, operation in enumerate(walk(program.body))}
    for buffer in buffers:
        buffer.users.sort(key=lambda user: order[user])


_Wanted = dict[Operation, dict[Def, int]]
"""The buffers that are read where an operation consumes them, and how many bytes of each."""


class _Announcing:
    """Adds announcements. A function that is called twice has two operations for one in MLIR's bindings."""

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self._made: dict[tuple[Any, Any, bool], Any] = {}

    def block(self, block: Block) -> bool:
        """Add those of a block. Returns whether it has a command."""
        known: set[Def] = set()
        commands = False
        result: list[Operation] = []
        for operation in block.operations:
            buffers = self._wanted.get(operation, {})
            result += [
                self._announced(operation, buffer, size)
                for buffer, size in buffers.items()
                if buffer not in known
            ]
            result.append(operation)
            known |= buffers.keys()
            inside = sum(self.block(region) for region in operation.regions) > 0
            if inside:  # the last one that is made stands first
                result += [
                    self._announced(operation, buffer, size, behind=True) for buffer, size in buffers.items()
                ][::-1]
            if inside or (operation.name.startswith("tpk.npu_") and operation.name not in _SILENT):
                known, commands = set(buffers) if inside else set(), True
        for position, operation in enumerate(result):
            operation.position = position
        block.operations = result
        return commands

    def _announced(self, root: Operation, buffer: Def, size: int, *, behind: bool = False) -> Operation:
        assert buffer.owner is not None
        handle, operand = root.handle, buffer.owner.handle.results[0]
        made = self._made.get((handle, operand, behind))
        if made is None:
            place = ir.InsertionPoint.after(handle) if behind else ir.InsertionPoint(handle)
            made = self._made[handle, operand, behind] = create(
                NpuAnnounce,
                {"buffer": operand},
                [],
                {"bytes": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), size)},
                at=place,
                location=handle.location,
            )
        announcement = Operation(NpuAnnounce.OPERATION_NAME, [buffer], [], [], root.block, made, 0)
        buffer.users.append(announcement)
        return announcement

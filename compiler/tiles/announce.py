"""Tells the chip when vector code reads a buffer, so that it finds transfers that overwrite the buffer too early.

A tensor in a buffer is read where it is consumed. The announcement therefore stands before each operation that consumes
it, and behind it, too, if that is a loop or a branch. What vector code writes is announced by the lowering.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.building import create
from triton_porting_kit.compiler.dialect.npu import NpuAnnounce, NpuRead
from triton_porting_kit.compiler.loops.ir.program import Operation, Program, walk
from triton_porting_kit.compiler.loops.state import Uses
from triton_porting_kit.toolchain.mlir import ir

from .editing import bytes_of


def announce(program: Program) -> None:
    """Add the announcements to the module of a kernel, in MLIR's bindings, in place."""
    uses = Uses()
    done: set[tuple[Any, Any]] = set()
    with program.module.context, ir.Location.unknown():
        for operation in list(walk(program.body)):
            if not NpuRead.isa(operation):
                continue
            for root in uses.roots(operation.results[0]):
                _announce(operation.handle, root, done)


def _announce(read: Any, root: Operation, done: set[tuple[Any, Any]]) -> None:
    buffer, value = read.operands[0], read.results[0]
    handle = root.handle
    if handle.block != read.block:  # in a function that was inlined when the program was read
        return
    if (handle, buffer) in done:
        return
    done.add((handle, buffer))
    size = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bytes_of(value))
    places = [ir.InsertionPoint(handle)]
    if root.regions:
        places.append(ir.InsertionPoint.after(handle))
    for place in places:
        create(NpuAnnounce, {"buffer": buffer}, [], {"bytes": size}, at=place, location=handle.location)

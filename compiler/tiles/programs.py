"""The loop over a core's programs as a loop of the form, so that it can be overlapped like any other.

Without it, the loop lowering writes that loop around the kernel's body.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.npu import NpuProgram, NpuPrograms
from triton_porting_kit.compiler.dialect.operations import ProgramId
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, functions, nested

UNORDERED = "tpk.unordered"
"""The attribute of a loop whose iterations may run in any order, although they write global memory."""


def loop_over_programs(module: Any, chip: ChipDescription) -> None:
    """Put the kernel's body into a loop over programs, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            if "tpk.kernel" in function.attributes:
                _loop(Editor(function, chip), function)


def _loop(editor: Editor, function: Any) -> None:
    entry = function.regions[0].blocks[0]
    body = [operation.operation for operation in entry.operations]
    *moved, last = body
    editor.before(last)
    types = editor.types
    begin, end = editor.create(NpuPrograms, [types.i64, types.i64]).results
    loop = editor.op(
        "scf.for", [begin, end, editor.constant(1)], [], {UNORDERED: ir.UnitAttr.get()}, regions=1
    )
    block = loop.regions[0].blocks.append(types.i64)
    editor.at = ir.InsertionPoint(block)
    terminator = editor.op("scf.yield", [], [])
    for operation in moved:
        operation.move_before(terminator)
    editor.at = ir.InsertionPoint.at_block_begin(block)
    ids = editor.create(
        NpuProgram, [types.i32] * 3, {"current": ir.UnitAttr.get()}, program=block.arguments[0]
    ).results
    for operation in list(nested(block)):
        if ProgramId.isa(operation):
            operation.results[0].replace_all_uses_with(ids[ProgramId(operation).axis])
            operation.erase()

"""Lets vector code write what it rounds for a unit in the loop that reduces it: `tl.sum(p)` beside `p.to(tl.float16)`.

Otherwise the loop of the sum would keep what it has computed, and another loop would round it.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect import ELEMENTWISE
from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuWrite
from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.toolchain.mlir import ir

from .editing import functions, nested
from .slices import owner_in


def write_beside(module: Any) -> None:
    """Put such writes before the reductions of a module of the stage ``tiles``, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            for operation in list(nested(function.regions[0].blocks[0])):
                if NpuWrite.isa(operation):
                    _move(operation)


def _move(write: Any) -> None:
    block = write.block
    buffer, rounded = (owner_in(value, block) for value in write.operands)
    if buffer is None or rounded is None or not NpuBuffer.isa(buffer) or rounded.name not in ELEMENTWISE:
        return
    if len(rounded.operands) != 1 or len(list(rounded.results[0].uses)) != 1:
        return
    users = [use.owner.operation for use in rounded.operands[0].uses if use.owner.operation != rounded]
    if len(users) != 1 or not Reduce.isa(users[0]) or users[0].block != block:
        return
    (reduction,) = users
    if len(reduction.operands) == 1 and reduction.is_before_in_block(write):
        for operation in (buffer, rounded, write):
            if not operation.is_before_in_block(reduction):
                operation.move_before(reduction)

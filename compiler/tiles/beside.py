"""Lets vector code write what it rounds for a unit in the loop that reduces it: `tl.sum(p)` beside `p.to(tl.float16)`.

Otherwise the loop of the sum would keep what it has computed, and another loop would round it. What is written for the
matrix unit is moved as soon as it is there, beside what else the core computes before the product.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect import ELEMENTWISE
from triton_porting_kit.compiler.dialect.npu import MOVE, NpuBuffer, NpuDma, NpuWrite
from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.toolchain.mlir import ir

from .editing import functions, nested
from .slices import owner_in

_PART = "llvm.getelementptr"


def write_beside(module: Any) -> None:
    """Put such writes before the reductions of a module of the stage ``tiles``, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            for operation in list(nested(function.regions[0].blocks[0])):
                if NpuWrite.isa(operation):
                    _move(operation)
                    _start_early(operation)


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


def _start_early(write: Any) -> None:
    """Start the transfers of what is written behind the write, and behind the reduction that it is a part of."""
    block, buffer = write.block, write.operands[0]
    operations = [operation.operation for operation in block.operations]
    last = operations[operations.index(write) + 1]
    last = last if Reduce.isa(last) else write
    moved: list[Any] = []
    for user in [use.owner.operation for use in buffer.uses]:
        parts = [use.owner.operation for use in user.results[0].uses] if user.name == _PART else [user]
        if len(parts) != 1 or not NpuDma.isa(parts[0]) or NpuDma(parts[0]).direction != MOVE:
            if user != write:
                return
            continue
        target = owner_in(NpuDma(parts[0]).target, block)
        if target is None or not NpuBuffer.isa(target) or parts[0].block != block:
            return
        moved += [target, user, parts[0]] if user.name == _PART else [target, user]
    for operation in sorted(moved, key=operations.index):
        if last.is_before_in_block(operation):
            operation.move_after(last)
            last = operation

"""Removes waits that a later one makes redundant.

Commands of a unit run in order. So of two waits for commands of one unit, the first is redundant if its command was
issued before, and nothing between the two evaluates a tensor or starts a command. The same is true of two orders
between the same units. When a kernel's function returns, its core waits for all units, so waits at its end are
redundant, too.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect import Trait, having
from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuDma, NpuGather, NpuMatrix, NpuOrder, NpuWait
from triton_porting_kit.toolchain.mlir import ir

from .editing import functions, nested, number_of

_IDLE = having(Trait.DEFERRABLE) | {NpuBuffer.OPERATION_NAME, "llvm.getelementptr"}
"""Operations that evaluate nothing: tensors are computed where they are consumed."""


def remove_redundant(module: Any) -> None:
    """Remove redundant waits and orders of a module of the stage ``tiles``, in MLIR's bindings, in place."""
    with module.context, ir.Location.unknown():
        for function in functions(module):
            entry = function.regions[0].blocks[0]
            blocks = [entry]
            for operation in nested(entry):
                blocks += [block for region in operation.regions for block in region.blocks]
            for block in blocks:
                _block(block)
            if "tpk.kernel" in function.attributes:
                _at_end(entry)


def _block(block: Any) -> None:
    pending: list[Any] = []
    for operation in [operation.operation for operation in block.operations]:
        if NpuWait.isa(operation) or NpuOrder.isa(operation):
            for earlier in list(pending):
                if _units(earlier) == _units(operation) and _before(
                    earlier.operands[0], operation.operands[0]
                ):
                    pending.remove(earlier)
                    earlier.erase()
            pending.append(operation)
        elif operation.name not in _IDLE:
            pending.clear()


def _units(operation: Any) -> tuple[str, ...]:
    names = [name for name in ("unit", "other") if name in operation.attributes]
    return (operation.name, *(str(operation.attributes[name].value) for name in names))


def _at_end(block: Any) -> None:
    operations = [operation.operation for operation in block.operations]
    for operation in reversed(operations[:-1]):
        if NpuWait.isa(operation):
            operation.erase()
        elif operation.name not in _IDLE:
            return


_Pairs = frozenset[tuple[Any, Any]]


def _before(first: Any, second: Any, assumed: _Pairs = frozenset()) -> bool:
    """Whether the command of one token is known to be issued before that of another, wherever there is one. `assumed`:
    pairs that a loop carries of which that holds in its last iteration.
    """
    a, b = first.owner, second.owner
    if number_of(first) == 0 or (first, second) in assumed:
        return True
    if isinstance(a, ir.Block) or isinstance(b, ir.Block):
        return isinstance(a, ir.Block) and a == b and _carried_before(a, first, second, assumed)
    one, other = a.operation, b.operation
    if one == other and one.name == "scf.if":
        return all(_yielded_before(region, first, second, assumed) for region in one.regions)
    if one.block != other.block or not one.is_before_in_block(other):
        return False
    if all(map(_issues, (one, other))):
        return True
    given = (one, first.result_number), (other, second.result_number)
    branches = all(op.name == "scf.if" and _starts(op, number) for op, number in given)
    return branches and one.operands[0] == other.operands[0] and _surely(*given[1])


def _issues(operation: Any) -> bool:
    """Whether an operation is a command, or the loop of a tile that wraps around, which starts one for each part."""
    if operation.name != "scf.while":
        return NpuDma.isa(operation) or NpuMatrix.isa(operation)
    body = operation.regions[1].blocks[0].operations
    first = body[len(body) - 1].operation.operands[0].owner
    return not isinstance(first, ir.Block) and _issues(first.operation)


def _yielded_before(region: Any, first: Any, second: Any, assumed: _Pairs) -> bool:
    """Of two results of one branch: whether that holds for what a region of it yields."""
    operations = region.blocks[0].operations
    given = list(operations[len(operations) - 1].operation.operands)
    one, other = (given[value.result_number] for value in (first, second))
    return one == other or _before(one, other, assumed)


def _surely(branch: Any, number: int) -> bool:
    """Whether a branch, by its result of that number, has started a command whenever its condition holds, or the core
    has waited for a later one of the same unit: for the gather in a transfer's place.
    """
    source, inner = _given(branch, number)
    if source is None or source.name != "scf.if":
        return source is not None and _issues(source)
    transfer, _ = _given(source, inner)
    if transfer is None or not NpuDma.isa(transfer):
        return False
    rest = [op.operation for op in source.regions[1].blocks[0].operations]
    waits = [NpuWait(op) for op in rest if NpuWait.isa(op)]
    return any(
        wait.unit == NpuDma(transfer).unit and NpuGather.isa(wait.token.owner.operation) for wait in waits
    )


def _given(branch: Any, number: int) -> tuple[Any | None, int]:
    """What gives a token of a branch whose condition holds, and as which of its results."""
    operations = branch.regions[0].blocks[0].operations
    token = operations[len(operations) - 1].operation.operands[number]
    if isinstance(token.owner, ir.Block):
        return None, 0
    return token.owner.operation, token.result_number


def _starts(branch: Any, number: int) -> bool:
    """Whether a branch, by its result of that number, starts one transfer if its condition holds, and else has no
    command, or one that the core has waited for.
    """
    source, inner = _given(branch, number)
    if source is None:
        return False
    otherwise = [op.operation for op in branch.regions[1].blocks[0].operations]
    started = _issues(source) or (source.name == "scf.if" and _starts(source, inner))
    waits = [op for op in otherwise if NpuWait.isa(op)]
    others = [
        op for op in otherwise if op.name.startswith("tpk.npu_") and op.results and op.name not in _IDLE
    ]
    return started and len(waits) >= bool(others)


def _carried_before(block: Any, first: Any, second: Any, assumed: _Pairs) -> bool:
    """Of two values that a loop carries: whether that holds for what it begins with, and for what it goes on with."""
    loop = block.owner
    if loop.name != "scf.for":
        return False
    arguments = list(block.arguments)
    one, other = arguments.index(first), arguments.index(second)
    last = block.operations[len(block.operations) - 1].operation
    return _before(loop.operands[2 + one], loop.operands[2 + other], assumed) and _before(
        last.operands[one - 1], last.operands[other - 1], assumed | {(first, second)}
    )

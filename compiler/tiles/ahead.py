"""What an iteration of a loop can start for the next one: transfers into buffers, and products of what they bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.compiler.dialect.npu import (
    LOAD,
    STORE,
    NpuAtomicCas,
    NpuAtomicPoll,
    NpuAtomicRmw,
    NpuBuffer,
    NpuDma,
    NpuElementStore,
    NpuGather,
    NpuMatrix,
    NpuOrder,
    NpuScatter,
    NpuWait,
)
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, origin, walked
from .products import MATRIX
from .slices import Slice, owner_in

_WRITES = tuple(
    cls.OPERATION_NAME for cls in (NpuScatter, NpuElementStore, NpuAtomicRmw, NpuAtomicCas, NpuAtomicPoll)
)


@dataclass(frozen=True)
class Fetch:
    """A buffer of a loop's body, what fills it, in order, of which the last gives a token, and the wait for that.

    `inner`: what is moved for a product alone, and starts with it. Its buffers may only be overwritten when the product
    is complete. `feeds`: for such a product of the next iteration, before which it starts; nothing else waits for it.
    """

    buffer: Any
    starts: tuple[Any, ...]
    wait: Any
    unit: str
    inner: tuple[Fetch, ...] = ()
    feeds: bool = False

    def slice(self, loop: Any) -> Slice:
        """What the commands are computed from."""
        given = [self.buffer.results[0], *(fetch.buffer.results[0] for fetch in self.inner)]
        return Slice(loop, list(self.starts), [*given, *(r for op in self.starts for r in op.results)])

    @property
    def channels(self) -> set[str]:
        """The DMA channels that fill the buffer."""
        own = self.buffer.results[0]
        inside = [op for start in self.starts for op in with_nested(start)]
        moves = {NpuDma(op).unit for op in inside if NpuDma.isa(op) and origin(NpuDma(op).target) == own}
        return moves | {
            NpuGather(op).unit for op in inside if NpuGather.isa(op) and NpuGather(op).buffer == own
        }

    @property
    def branches(self) -> bool:
        """Whether there is code for tiles that no transfer moves, so that each more copy takes long to compile."""
        return any(len(start.regions) for start in self.starts)

    @property
    def for_matrix(self) -> bool:
        """Whether only the matrix unit reads the buffer."""
        filling = {op for start in self.starts for op in with_nested(start)}
        return all(NpuMatrix.isa(user) for user in self.users - filling)

    @property
    def users(self) -> set[Any]:
        """What uses the buffer, or a part of it."""
        found = [use.owner.operation for use in self.buffer.results[0].uses]
        parts = [op for op in found if op.name == "llvm.getelementptr"]
        return {op for op in found if op not in parts} | {
            use.owner.operation for part in parts for use in part.results[0].uses
        }


def with_nested(operation: Any) -> Sequence[Any]:
    """An operation, and those in its regions."""
    return walked(operation) if len(operation.regions) else (operation,)


def writes_global(operation: Any) -> bool:
    """Whether an operation writes global memory."""
    name = operation.name
    return name in _WRITES or (name == NpuDma.OPERATION_NAME and NpuDma(operation).direction == STORE)


def fetches(loop: Any) -> list[Fetch]:
    """The fetches of a loop's own body, in order, up to the first that is behind a store of its iteration."""
    block = loop.regions[0].blocks[0]
    found = []
    for operation in block.operations:
        if any(map(writes_global, with_nested(operation.operation))):
            break
        wait = NpuWait.dyn_cast(operation.operation)
        start = None if wait is None else owner_in(wait.token, block)
        if wait is None or start is None or not wait.unit.startswith("dma"):
            continue
        moves = (NpuDma(op) for op in with_nested(start) if NpuDma.isa(op))
        targets = {origin(move.target) for move in moves if move.direction == LOAD}
        buffer = owner_in(targets.pop(), block) if len(targets) == 1 else None
        if buffer is not None and NpuBuffer.isa(buffer):
            found.append(Fetch(buffer, (start,), operation.operation, wait.unit))
    return found


def early_products(editor: Editor, loop: Any, found: list[Fetch], *, feeding: bool) -> list[Fetch]:
    """The fetches of a loop, of which some become a part of the product that they are for: its sums are in a buffer
    that it fills from the start, and its other operand is the same in all iterations.

    The matrix unit then waits for the transfers, and not the core. With `feeding`, they start one more iteration early
    than the product, into a second copy of their buffers.
    """
    block = loop.regions[0].blocks[0]
    result = list(found)
    waits = [op.operation for op in block.operations if NpuWait.isa(op.operation)]
    for operation in [op for op in waits if NpuWait(op).unit == MATRIX]:
        command = owner_in(NpuWait(operation).token, block)
        if command is None or not NpuMatrix.isa(command):
            continue
        operands = [fetch for fetch in result if _is_for(fetch, command)]
        made = _product(block, command, operation, operands)
        if made is None:
            continue
        piece = made.slice(loop)
        if not piece.possible or not piece.varies:
            continue
        starts = list(made.starts)
        for fetch in operands:
            editor.before(command)
            units = {"unit": ir.StringAttr.get(MATRIX), "other": ir.StringAttr.get(fetch.unit)}
            editor.create(NpuOrder, [], units, token=fetch.starts[-1].results[0])
            starts.insert(len(starts) - 1, _before(command))
            fetch.wait.erase()
            result.remove(fetch)
        result.append(Fetch(made.buffer, tuple(starts), made.wait, MATRIX, made.inner))
        if feeding:
            result += [replace(fetch, feeds=True) for fetch in operands]
    return result


def _before(operation: Any) -> Any:
    """The operation before another one in its block."""
    operations = [each.operation for each in operation.block.operations]
    return operations[operations.index(operation) - 1]


def _is_for(fetch: Fetch, command: Any) -> bool:
    """Whether only this command of the matrix unit reads what is fetched."""
    return fetch.for_matrix and {user for user in fetch.users if NpuMatrix.isa(user)} == {command}


def _product(block: Any, command: Any, wait: Any, operands: list[Fetch]) -> Fetch | None:
    view = NpuMatrix(command)
    sums = owner_in(view.c, block)
    if sums is None or not NpuBuffer.isa(sums) or not operands or not _is_false(view.accumulate):
        return None
    others = [use.owner.operation for use in view.c.uses if use.owner.operation != command]
    if any(NpuMatrix.isa(other) or NpuDma.isa(other) for other in others):
        return None
    mine = [fetch.buffer.results[0] for fetch in operands]
    if any(value not in mine and owner_in(value, block) is not None for value in (view.a, view.b)):
        return None
    starts = tuple(start for fetch in operands for start in fetch.starts)
    return Fetch(sums, (*starts, command), wait, MATRIX, tuple(operands))


def _is_false(value: Any) -> bool:
    owner = value.owner
    return getattr(owner, "name", "") == "arith.constant" and not bool(owner.attributes["value"].value)

"""Lets the first transfers of a loop over programs start in the loop itself, by iterations before its first one that do
nothing else: so their code stands there once, however many programs ahead they start.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.npu import NpuProgram
from triton_porting_kit.toolchain.mlir import ir

from .editing import SGE, Editor
from .slices import PURE, owner_in


def rotates(loop: Any) -> bool:
    """Whether the body of a loop begins with the program that it runs, so that `rotate` finds it."""
    return _begins(loop.regions[0].blocks[0].operations[0].operation)


def _begins(operation: Any) -> bool:
    return NpuProgram.isa(operation) and NpuProgram(operation).current


def rotate(editor: Editor, loop: Any, start: Any) -> None:
    """Let a loop begin at `start`. Up to its first iteration, only what stands before its program runs."""
    block = loop.regions[0].blocks[0]
    operations = [operation.operation for operation in block.operations]
    body = operations[next(n for n, operation in enumerate(operations) if _begins(operation)) : -1]
    body = _without_scalars(operations, body)
    terminator = operations[-1]
    values, inside = list(terminator.operands), set(body)
    made_by = [owner_in(value, block) for value in values]
    changed = [number for number, owner in enumerate(made_by) if owner is not None and owner in inside]
    editor.before(body[0])
    runs = editor.compare(SGE, block.arguments[0], loop.operands[0])
    made = editor.op("scf.if", [runs], [values[number].type for number in changed], regions=2)
    then, otherwise = (region.blocks.append() for region in made.regions)
    editor.at = ir.InsertionPoint(then)
    end = editor.op("scf.yield", [values[number] for number in changed], [])
    for operation in body:
        operation.move_before(end)
    editor.at = ir.InsertionPoint(otherwise)
    editor.op("scf.yield", [block.arguments[1 + number] for number in changed], [])
    for result, number in zip(made.results, changed, strict=True):
        terminator.operands[number] = result
    loop.operands[0] = start


def _without_scalars(operations: list[Any], body: list[Any]) -> list[Any]:
    """The operations of the body that remain if the positions that it computes stand before the transfers that start.

    Then those do not start right behind the stores of the program before: while one channel starts a transfer, the
    other one moves bytes.
    """
    first = next(operation for operation in operations if operation.name == "scf.if")
    carried = list(operations[-1].operands)  # changes only in iterations that run
    rest: list[Any] = []
    found: set[Any] = set()
    for operation in body:
        results = list(operation.results)
        scalar = operation.name in PURE and not any(
            isinstance(result.type, ir.RankedTensorType) or result in carried for result in results
        )
        needed = (
            owner for value in operation.operands if (owner := owner_in(value, first.block)) is not None
        )
        if scalar and not any(owner in found for owner in needed):
            operation.move_before(first)
        else:
            rest.append(operation)
            found.add(operation)
    return rest

"""Branches that only choose elements, as selections, before the import.

A tile that a branch returns lives in memory. Where both sides only compare and select, one selection more lets each
element stay in a register: a softmax that leaves out the label in one of many programs is such a branch.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

MAX_OPERATIONS = 8
"""Operations of both sides, which are computed whether or not the branch is taken."""
_CHEAP = frozenset(
    {
        "arith.andi",
        "arith.cmpf",
        "arith.cmpi",
        "arith.constant",
        "arith.ori",
        "arith.select",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.splat",
    }
)


def select_elements(module: Any) -> None:
    """Turn the branches of a TTIR module for which that pays into selections, in place."""
    branches: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "scf.if":
            branches.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    for branch in branches:
        if _only_chooses(branch):
            _select(branch)


def _only_chooses(branch: Any) -> bool:
    """Whether the branch returns tiles of floating-point elements, and each side is a few cheap operations."""
    kinds = [result.type for result in branch.results]
    if not kinds or not all(
        isinstance(kind, ir.RankedTensorType) and isinstance(kind.element_type, ir.FloatType)
        for kind in kinds
    ):
        return False
    count = 0
    for region in branch.regions:
        *body, _ = region.blocks[0].operations
        count += len(body)
        if not all(operation.operation.name in _CHEAP for operation in body):
            return False
    return count <= MAX_OPERATIONS


def _select(branch: Any) -> None:
    at, location = ir.InsertionPoint(branch), branch.location
    sides = []
    for region in branch.regions:
        *body, terminator = (operation.operation for operation in region.blocks[0].operations)
        known: dict[Any, Any] = {}
        for operation in body:
            copy = operation.clone(ip=at)
            for place, operand in enumerate(operation.operands):
                copy.operands[place] = known.get(operand, operand)
            known.update(zip(operation.results, copy.results, strict=True))
        sides.append([known.get(value, value) for value in terminator.operands])
    for result, taken, other in zip(branch.results, *sides, strict=True):
        kind = ir.RankedTensorType.get(result.type.shape, ir.IntegerType.get_signless(1))
        condition = ir.Operation.create("tt.splat", [kind], [branch.operands[0]], loc=location, ip=at).result
        chosen = ir.Operation.create(
            "arith.select", [result.type], [condition, taken, other], loc=location, ip=at
        )
        result.replace_all_uses_with(chosen.result)
    branch.erase()

"""Evaluating a region on elements: the region of a reduction or scan, or a function mapped over tensors.

Straight-line regions, and conditions without effects in them, are evaluated on whole vectors. Regions with loops are
evaluated on one element at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.dialect.operations import Assert, Yield
from triton_porting_kit.compiler.loops.arithmetic.library import OPERATIONS
from triton_porting_kit.compiler.loops.control.host_calls import fail_unless
from triton_porting_kit.compiler.loops.ir.values import Value

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation
    from triton_porting_kit.compiler.loops.lowering import Lowering

_LEAVES = ("arith.constant", "ub.poison")
_ENDS = (Yield.OPERATION_NAME, "scf.yield")


def takes_vectors(region: Block) -> bool:
    """Whether `evaluate` can take vectors for the region's arguments, not only scalars."""
    return all(Assert.isa(operation) or _is_simple(operation) for operation in region.operations)


def _is_simple(operation: Operation) -> bool:
    if operation.name == "scf.if":
        # Both branches are evaluated, so neither may trap.
        return all(_is_simple(inner) for branch in operation.regions for inner in branch.operations)
    return operation.name in OPERATIONS or operation.name in _LEAVES or operation.name in _ENDS


def evaluate(lowering: Lowering, region: Block, arguments: Sequence[Value]) -> list[Value]:
    """The values that the region yields for scalar arguments, or for vectors of equal lanes if it `takes_vectors`."""
    if not takes_vectors(region):
        for definition, value in zip(region.arguments, arguments, strict=True):
            lowering.scalars[definition] = value
        lowering.block(region)
        return [lowering.scalar(operand) for operand in region.operations[-1].operands]
    values = dict(zip(region.arguments, arguments, strict=True))
    return _straight(lowering, region, values, max((value.lanes for value in arguments), default=1))


def combine(lowering: Lowering, region: Block, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """The region's results for left operands `a` and right operands `b`, lane by lane."""
    return evaluate(lowering, region, [*a, *b])


def _straight(lowering: Lowering, block: Block, values: dict[Def, Value], lanes: int) -> list[Value]:
    builder = lowering.builder

    def value_of(definition: Def) -> Value:
        # A value from outside the region is a scalar of the kernel.
        known = values.get(definition)
        return lowering.scalar(definition) if known is None else known

    for operation in block.operations:
        operands = [value_of(operand) for operand in operation.operands]
        if operation.name in _ENDS:
            return [builder.broadcast(operand, lanes) for operand in operands]
        if operation.name == "scf.if":
            then, otherwise = (
                _straight(lowering, branch, values, lanes) if branch.operations else []
                for branch in operation.regions
            )
            condition = builder.broadcast(operands[0], lanes)
            for definition, a, b in zip(operation.results, then, otherwise, strict=True):
                values[definition] = builder.select(condition, a, b)
        elif operation.name in _LEAVES:
            lowering.operation(operation)
        elif Assert.isa(operation):
            # It is not known any more which elements were combined.
            fail_unless(lowering, operation, operands[0], builder.i64(0), lowering.data.table([0]))
        else:
            operands = [builder.broadcast(operand, lanes) for operand in operands]
            results = OPERATIONS[operation.name].emit(builder, lowering.mode, operation, operands)
            values.update(zip(operation.results, results, strict=True))
    raise AssertionError("a region ends in a yield")

"""Evaluating the combine region of a reduction or scan on scalars or on whole vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.loops.builder import Value
from triton_porting_kit.compiler.loops.host_calls import fail_unless
from triton_porting_kit.compiler.loops.library import OPERATIONS

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.lowering import Lowering
    from triton_porting_kit.compiler.loops.program import Block, Def


def combine(lowering: Lowering, region: Block, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """The region's results for left operands `a` and right operands `b`, lane by lane."""
    builder = lowering.builder
    values: dict[Def, Value] = dict(zip(region.arguments, (*a, *b), strict=True))
    lanes = max(value.lanes for value in values.values())

    def value_of(definition: Def) -> Value:
        # A value from outside the region is a scalar of the kernel.
        known = values.get(definition)
        return lowering.scalar(definition) if known is None else known

    for operation in region.operations:
        operands = [value_of(operand) for operand in operation.operands]
        if operation.name == "tpk.yield":
            return [builder.broadcast(operand, lanes) for operand in operands]
        entry = OPERATIONS.get(operation.name)
        if entry is not None:
            operands = [builder.broadcast(operand, lanes) for operand in operands]
            results = entry.emit(builder, lowering.mode, operation, operands)
            values.update(zip(operation.results, results, strict=True))
        elif operation.name == "arith.constant":
            lowering.operation(operation)
        elif operation.name == "tpk.assert":
            # Which elements were combined is not known any more.
            fail_unless(lowering, operation, operands[0], builder.i64(0), lowering.data.table([0]))
        else:
            raise operation.unsupported(
                f"{operation.name} in the combine function of a reduction or scan",
                "use arithmetic and tl.where only in the combine function",
            )
    raise AssertionError("a combine region ends in tpk.yield")

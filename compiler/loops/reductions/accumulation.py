"""Partial results of reductions and scans: sums and products of narrow floats are held as f32.

A running sum that is rounded to bfloat16 at every step stops growing at 256 times its first element. Triton's GPU
backends avoid this by adding in a tree; here, results are rounded once, when they are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.arithmetic.elementwise import narrow, widen
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.reductions import quiet_extremes
from triton_porting_kit.compiler.loops.reductions.combine import combine

_SUMS_AND_PRODUCTS = ("arith.addf", "arith.subf", "arith.mulf")


class Accumulation:
    """Combines partial results by a region.

    They are `held` as f32 if the region only adds and multiplies narrow floats.
    """

    def __init__(self, lowering: Lowering, region: Block, inputs: Sequence[Def] = ()) -> None:
        """`inputs` are what is combined, where that is known."""
        self._lowering = lowering
        self._region = region
        self._operations, self._yield = region.operations[:-1], region.operations[-1]
        self._wide = bool(self._operations) and all(_is_narrow(op) for op in self._operations)
        self._quiet = quiet_extremes.applies(lowering, region, inputs)
        self._elements = [operand.type.element for operand in self._yield.operands]

    def held_element(self, element: str) -> str:
        """The type that a partial result of this element type is held in."""
        return "f32" if self._wide and element in types.NARROW_FLOATS else element

    def hold(self, values: Sequence[Value]) -> list[Value]:
        """Convert elements to partial results."""
        if not self._wide:
            return list(values)
        builder = self._lowering.builder
        return [widen(builder, v, element) for v, element in zip(values, self._elements, strict=True)]

    def release(self, held: Sequence[Value]) -> list[Value]:
        """Convert partial results to elements."""
        if not self._wide:
            return list(held)
        builder = self._lowering.builder
        return [narrow(builder, v, element) for v, element in zip(held, self._elements, strict=True)]

    def combine(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The region's results for partial results `a` and `b`, lane by lane."""
        if self._quiet:
            return [
                quiet_extremes.extreme(self._lowering.builder, self._operations[0].name, left, right)
                for left, right in zip(a, b, strict=True)
            ]
        if not self._wide:
            return combine(self._lowering, self._region, a, b)
        builder = self._lowering.builder
        values: dict[Def, Value] = dict(zip(self._region.arguments, [*a, *b], strict=True))
        lanes = max(value.lanes for value in values.values())

        def value_of(definition: Def) -> Value:
            known = values.get(definition)
            if known is None:  # a scalar of the kernel
                known = widen(builder, self._lowering.scalar(definition), definition.type.element)
            return builder.broadcast(known, lanes)

        flags = " fastmath<contract>" if self._lowering.mode.fuse_multiply_add else ""
        for operation in self._operations:
            left, right = (value_of(operand) for operand in operation.operands)
            values[operation.results[0]] = builder.binary(operation.name, left, right, flags)
        return [value_of(operand) for operand in self._yield.operands]


def _is_narrow(operation: Operation) -> bool:
    return operation.name in _SUMS_AND_PRODUCTS and operation.results[0].type.element in types.NARROW_FLOATS

"""Extremes of rows in which some elements may be NaN, by one operation for each: x86's MAXPS and MINPS.

Where one of two values is NaN, they take the second one: so the extreme so far stays if an element is NaN. It must be a
number, and begins as an infinity. Where it is still that infinity in the end, all elements may have been NaN, which is
then the result: such rows, which are rare, are reduced a second time as ``arith.maxnumf`` says, by three operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation, only_operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering

PREDICATES = {"arith.maxnumf": "ogt", "arith.minnumf": "olt"}
FIRST = {"arith.maxnumf": -math.inf, "arith.minnumf": math.inf}
"""What the extreme begins with."""


def extreme_of(lowering: Lowering, operations: Sequence[Operation]) -> str | None:
    """The name of the operation by which one reduction combines elements, if `combined` can do it instead."""
    inputs, combines = operations[0].operands, only_operation(operations[0].regions[0])
    applies = (
        lowering.target.keeps_second
        and len(operations) == len(inputs) == 1
        and combines is not None
        and combines.name in PREDICATES
        and inputs[0].type.element in ("f32", "f64")
    )
    return combines.name if applies and combines is not None else None


def combined(builder: LoopBuilder, name: str, number: Value, element: Value) -> Value:
    """The extreme of a `number` and an `element`, which may be NaN, lane by lane."""
    type = vector_type("i1", element.lanes)
    text = f"arith.cmpf {PREDICATES[name]}, {element.name}, {number.name} : {element.type}"
    beyond = builder.pure(text, type, (element, number))
    return builder.select(beyond, element, number)


def some_unchanged(builder: LoopBuilder, name: str, found: Value) -> Value:
    """i1: whether an extreme is still what it began with."""
    began = builder.broadcast(builder.constant(FIRST[name], found.element), found.lanes)
    type = vector_type("i1", found.lanes)
    text = f"arith.cmpf oeq, {found.name}, {began.name} : {found.type}"
    same = builder.pure(text, type, (found, began))
    if not same.is_vector:
        return same
    return builder.pure(f"vector.reduction <or>, {same.name} : {same.type} into i1", "i1", (same,))

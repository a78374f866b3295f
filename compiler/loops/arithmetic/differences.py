"""Differences that are not above 0, as those of a softmax: x - max(x).

An exponential of one takes fewer operations, since it needs no power of two above 1.
"""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.compiler.loops.ir.program import Def, only_operation

MAXIMA = ("arith.maxnumf", "arith.maximumf")
MOST_STEPS = 8
"""How many operations are looked through for the number that is subtracted."""


def never_positive(definition: Def) -> bool:
    """Whether no element is above 0, since something that is at least as large is subtracted; it may be NaN.

    A product is left out: fused with the difference, it is not rounded, but what is subtracted is.
    """
    owner = definition.owner
    if owner is None or owner.name != "arith.subf":
        return False
    number, subtracted = owner.operands
    is_product = number.owner is not None and number.owner.name == "arith.mulf"
    return not is_product and _at_least(subtracted, number, (), MOST_STEPS)


def _at_least(upper: Def, number: Def, along: tuple[int, ...], steps: int) -> bool:
    """Whether `upper` is at least `number` where neither is NaN; it lacks the dimensions `along` of `number`."""
    if upper is number and not along:
        return True
    owner = upper.owner
    if owner is None or not steps:
        return False
    if owner.name in MAXIMA:
        return any(_at_least(operand, number, along, steps - 1) for operand in owner.operands)
    if owner.name == "tensor.splat" and not along:
        every = range(len(number.type.shape or ()))
        return _at_least(owner.operands[0], number, tuple(every), steps - 1)
    if owner.name == "linalg.broadcast" and not along:
        added = tuple(owner.integers("dimensions"))
        return _at_least(owner.operands[0], number, added, steps - 1)
    if not Reduce.isa(owner) or len(owner.operands) > 1 or along != (Reduce(owner).axis,):
        return False
    combines = only_operation(owner.regions[0])
    is_maximum = combines is not None and combines.name in MAXIMA
    return is_maximum and _at_least(owner.operands[0], number, (), steps - 1)

"""Factors of a scaled dot in bf16, where that is exact.

The structured form multiplies microscaling formats in f32 (`structured.scaled_dots`). Their elements have at most four
significant bits, and scales are powers of two, so an element times its scale is a bf16, too. Where the other factor is
bf16 or of fewer bits, both are multiplied as bf16. As in all products of bf16, denormals may count as zero.
"""

from __future__ import annotations

from triton_porting_kit.compiler.dialect.operations import Repeat
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.tiles.tensors import Tensor, is_operation

NARROW = "bf16"
ELEMENTS = "f4E2M1FN"
SCALES = "f8E8M0FNU"
"""Only a scaled dot has elements and scales of these types."""


def narrow(dot: Operation) -> bool:
    """Whether a dot, of f32 tensors that nothing else reads, is a scaled one whose factors are exact in bf16."""
    left, right, _ = dot.operands
    return (
        _is_exact(left)
        and _is_exact(right)
        and (_is_scaled(left) or _is_scaled(right))
        and left.users == right.users == [dot]
    )


def elements(dot: Operation) -> tuple[str, str]:
    """The element types that the factors of a dot are multiplied as, where the CPU can."""
    left, right, _ = dot.operands
    return (NARROW, NARROW) if narrow(dot) else (left.type.element, right.type.element)


def definition(dot: Operation) -> Def:
    """What defines the left factor of a dot, before it is widened in the dot's own block."""
    factor = dot.operands[0]
    if narrow(dot) and factor.owner is not None and factor.owner.name == "arith.extf":
        (source,) = factor.owner.operands
        return source if source.block is dot.block else factor
    return factor


def left(dot: Operation, tensor: Tensor) -> Tensor:
    """The tensor of the left factor of a dot, before it is widened."""
    return tensor.operands[0] if is_operation(tensor, "arith.extf") and narrow(dot) else tensor


def _is_exact(factor: Def) -> bool:
    """Whether a tensor has elements of bf16 or fewer bits, widened, perhaps times their scales."""
    owner = factor.owner
    if owner is not None and owner.name == "arith.mulf" and _is_power(owner.operands[1]):
        owner = owner.operands[0].owner
    kinds = (NARROW, *types.FLOAT8, ELEMENTS)
    return owner is not None and owner.name == "arith.extf" and owner.operands[0].type.element in kinds


def _is_scaled(factor: Def) -> bool:
    owner = factor.owner
    assert owner is not None
    return owner.name == "arith.mulf" or owner.operands[0].type.element == ELEMENTS


def _is_power(scales: Def) -> bool:
    """Whether a tensor holds scales, each for a group of elements."""
    owner = scales.owner
    if owner is None or owner.name != Repeat.OPERATION_NAME:
        return False
    while owner is not None and owner.name in (Repeat.OPERATION_NAME, "linalg.transpose"):
        owner = owner.operands[0].owner
    return owner is not None and owner.name == "arith.extf" and owner.operands[0].type.element == SCALES

"""Divisions of integers that are never negative, as unsigned ones.

Python's flattened indices are signed, so their quotients round towards zero. The unsigned forms are the same for
indices that are not negative, and behind this stage nobody has to ask about the sign again.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .rewriter import Rewriter

_UNSIGNED = {"arith.divsi": "arith.divui", "arith.remsi": "arith.remui"}


def division(rewriter: Rewriter, operation: Any) -> None:
    """arith.divsi and arith.remsi of tensors by a positive constant -> their unsigned forms, where they are equal."""
    info = rewriter.types.info(operation.results[0])
    if info.shape is None or not _is_natural(rewriter, operation.results[0]):
        return
    emitter = rewriter.emitter.before(operation)
    name = _UNSIGNED[operation.operation.name]
    rewriter.replace(operation, emitter.value(name, list(operation.operands), operation.results[0].type))


def _is_natural(rewriter: Rewriter, value: Any) -> bool:
    """Whether a tensor has no negative element: an affine index, possibly by the launch's promise, or what divisions by
    constants make of one."""
    while not isinstance(owner := value.owner, ir.Block):
        if owner.operation.name not in _UNSIGNED:
            break
        divisor = _constant(owner.operands[1])
        if divisor is None or divisor <= 0:
            return False
        value = owner.operands[0]
    analysis, info = rewriter.analysis, rewriter.types.info(value)
    form = analysis.affine(value)
    if form is None or info.shape is None or info.bits != 32:
        return False
    promises = analysis.ranges.natural(form, info.shape)
    if promises is None:
        return False
    rewriter.to_look_at(promises)
    return True


def _constant(value: Any) -> int | None:
    """The integer in every element of a constant tensor."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if not attribute.is_splat:
        return None
    return int(ir.IntegerAttr(attribute.get_splat_value()).value)

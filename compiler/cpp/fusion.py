"""Fused multiply-add where the kernel's options allow it.

Loops mark operations that may be fused with ``fastmath<contract>``. C has no such mark on single operations, so they
are fused here.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.cpp.emitter import Emitter

_SUMS = ("arith.addf", "arith.subf")


def _may_contract(operation: Any) -> bool:
    flags = str(operation.attributes["fastmath"]) if "fastmath" in operation.attributes else ""
    return "contract" in flags or "<fast>" in flags


def _product(addition: Any) -> tuple[int, Any] | None:
    """The position of an addition's operand that is a product, and that product.

    The product must be in the same block and have no other use.
    """
    if addition.name not in _SUMS or not _may_contract(addition):
        return None
    for position, operand in enumerate(addition.operands):
        owner = getattr(operand.owner, "operation", None)
        if owner is None or owner.name != "arith.mulf" or not _may_contract(owner):
            continue
        if owner.block == addition.block and len(list(operand.uses)) == 1:
            return position, owner
    return None


def is_fused(operation: Any) -> bool:
    """Whether a multiplication becomes part of an addition."""
    if operation.name != "arith.mulf":
        return False
    users = [use.owner.operation for use in operation.results[0].uses]
    found = _product(users[0]) if len(users) == 1 else None
    return found is not None and found[1] == operation


def fused(emitter: Emitter, addition: Any) -> str | None:
    """The fused expression of an addition; None if it is not fused."""
    found = _product(addition)
    if found is None:
        return None
    position, product = found
    a, b = emitter.operands(product)
    other = emitter.name_of(addition.operands[1 - position])
    if addition.name == "arith.subf":
        if position == 0:
            other = f"-({other})"
        else:
            a = f"-({a})"
    return f"{emitter.function('fused_multiply_add', emitter.result_type(addition))}({a}, {b}, {other})"

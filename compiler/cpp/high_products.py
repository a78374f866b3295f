"""The high half of a product of 64-bit integers, for languages without integers of 128 bits but with ``mul_hi``.

Loops widen both factors to 128 bits, shift the product right by 64, and truncate it.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import parse

_WIDENINGS = {"arith.extui": False, "arith.extsi": True}
_SHIFTS = ("arith.shrui", "arith.shrsi")
_HALF = 64


def _owner(value: Any) -> Any | None:
    """The operation that a value is the result of; None for the argument of a block."""
    return getattr(value.owner, "operation", None)


def _bits(value: Any) -> int:
    type = parse(str(value.type))
    return type.bits if type is not None and not type.is_float else 0


def _factors(truncation: Any) -> tuple[Any, Any, bool] | None:
    """The factors of which a truncation is the high half, and whether they are signed; None if it is none."""
    if truncation.name != "arith.trunci" or _bits(truncation.results[0]) != _HALF:
        return None
    shift = _owner(truncation.operands[0])
    if shift is None or shift.name not in _SHIFTS or _bits(shift.results[0]) != 2 * _HALF:
        return None
    product, amount = map(_owner, shift.operands)
    if product is None or product.name != "arith.muli" or amount is None or not _is_half(amount):
        return None
    widened = [_owner(operand) for operand in product.operands]
    if any(each is None or _bits(each.operands[0]) != _HALF for each in widened):
        return None
    signs = {_WIDENINGS.get(each.name) for each in widened if each is not None}
    if len(signs) != 1 or None in signs:
        return None
    a, b = (each.operands[0] for each in widened if each is not None)
    return a, b, signs == {True}


def _is_half(constant: Any) -> bool:
    """Whether an operation is the constant 64, or a vector of it."""
    if constant.name != "arith.constant":
        return False
    text = str(constant.attributes["value"]).partition(" : ")[0]
    return text.removeprefix("dense<").removesuffix(">") == str(_HALF)


def is_part(emitter: Emitter, operation: Any) -> bool:
    """Whether an operation only serves high halves, which then stand for it."""
    if not emitter.dialect.spaces or operation.name not in (*_WIDENINGS, "arith.muli", *_SHIFTS):
        return False
    if _bits(operation.results[0]) != 2 * _HALF:
        return False
    users = {use.owner.operation for use in operation.results[0].uses}  # a square uses its factor twice
    return all(_factors(user) is not None or is_part(emitter, user) for user in users)


def high_half(emitter: Emitter, operation: Any) -> str | None:
    """The expression of a high half; None for another operation."""
    if not emitter.dialect.spaces:
        return None
    found = _factors(operation)
    if found is None:
        return None
    *factors, is_signed = found
    type = emitter.result_type(operation)
    names = [emitter.name_of(factor) for factor in factors]
    if not is_signed:
        return f"mul_hi({', '.join(names)})"
    signed = ", ".join(emitter.reinterpreted(name, type.signed) for name in names)
    return emitter.reinterpreted(f"mul_hi({signed})", type)

"""Shifts by any amount. LLVM leaves a shift by the type's width or more undefined."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value


def shift(builder: LoopBuilder, name: str, value: Value, amount: Value) -> Value:
    """``arith.shli``, ``arith.shrsi`` or ``arith.shrui`` by an unsigned amount.

    For amounts of at least the type's width, the result is 0, or all sign bits for ``arith.shrsi``.
    """
    bits = int(value.element[1:])
    if isinstance(amount.constant, int) and 0 <= amount.constant < bits:
        return builder.binary(name, value, amount)
    if name == "arith.shrsi":
        most = builder.constant(bits - 1, amount.type)
        return builder.binary(name, value, builder.binary("arith.minui", amount, most))
    shifted = builder.binary(name, value, amount)
    inside = builder.compare("ult", amount, builder.constant(bits, amount.type))
    return builder.select(inside, shifted, builder.constant(0, value.type))

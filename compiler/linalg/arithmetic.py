"""Functions of libdevice as operations of `arith` and `math` on scalars, which compilers take, unlike external calls.

The functions are those that the CPU backend expands on vectors (`bit_functions`); what it
writes with intrinsics of LLVM is written here with upstream's operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import cast

from triton_porting_kit.compiler.loops.arithmetic import bit_functions
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes
from triton_porting_kit.compiler.loops.arithmetic.library import BITS
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, float_literal

from .expansion import Text


class _Scalars:
    """Writes the operations of `Lanes` to a function's body: the part of `LoopBuilder` that they use."""

    def __init__(self, body: Text) -> None:
        self._body = body

    def pure(self, text: str, type: str, operands: Sequence[Value]) -> Value:
        return Value(self._body.let(text), type, 0)

    def constant(self, value: int | float | str, type: str) -> Value:
        literal = value if isinstance(value, str) else str(value)
        if type.startswith("f") and not isinstance(value, str):
            literal = float_literal(float(value), type)
        return Value(self._body.constant(literal, type), type, 0)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        return self.pure(f"{op} {a.name}, {b.name} : {a.type}", a.type, (a, b))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.pure(f"arith.select {condition.name}, {a.name}, {b.name} : {a.type}", a.type, ())

    def cast(self, op: str, value: Value, type: str) -> Value:
        return (
            value
            if value.type == type
            else self.pure(f"{op} {value.name} : {value.type} to {type}", type, ())
        )


def expand(body: Text, name: str, operands: Sequence[str], kinds: Sequence[str], result: str) -> str:
    """The function `name` of `EXPANDED` on scalars. 16-bit floats are computed in f32."""
    return compute(body, EXPANDED[name], operands, kinds, result)


def compute(
    body: Text, function: Callable[..., Lanes], operands: Sequence[str], kinds: Sequence[str], result: str
) -> str:
    """A function of `Lanes` on scalars. 16-bit floats are computed in f32."""
    builder = _Scalars(body)
    given = [Value(operand, kind, 0) for operand, kind in zip(operands, kinds, strict=True)]
    wide = [builder.cast("arith.extf", x, "f32") if x.type in ("f16", "bf16") else x for x in given]
    found = function(*(Lanes(cast(LoopBuilder, builder), value) for value in wide)).value
    last = "arith.extui" if result.startswith("i") else "arith.truncf"
    return builder.cast(last, found, result).name


def _brev(x: Lanes) -> Lanes:
    """The bits in reverse order: neighbours change places, then pairs, then groups of four and so on."""
    size = x.bits // 2
    while size:
        low = sum(((1 << size) - 1) << place for place in range(0, x.bits, 2 * size))
        x = ((x >> size) & low) | ((x & low) << size)
        size //= 2
    return x


def _to_integer(x: Lanes, rounding: str, element: str, *, unsigned: bool) -> Lanes:
    """As `bit_functions.to_integer`, which docs/libdevice.md describes."""
    bits = int(element[1:])
    low = 0 if unsigned else -(1 << (bits - 1))
    beyond = 1 << (bits if unsigned else bits - 1)
    whole = x.unary(rounding)
    fits = (whole >= float(low)) & (whole < float(beyond))
    bounded = fits.select(whole, 0.0)  # what does not fit has no meaning to upstream's operation
    number = bounded.cast("arith.fptoui" if unsigned else "arith.fptosi", element)
    number = (whole >= float(beyond)).select(-1 if unsigned else beyond - 1, number)
    number = (whole < float(low)).select(low, number)
    if x.element == "f32" and element == "i32":
        return number
    return x.is_nan().select(-(1 << (bits - 1)), number)


EXPANDED: dict[str, Callable[..., Lanes]] = {
    **{name: getattr(bit_functions, name) for name in BITS},
    "brev": _brev,
    "llrint": functools.partial(_to_integer, rounding="math.roundeven", element="i64", unsigned=False),
    "llround": functools.partial(_to_integer, rounding="math.round", element="i64", unsigned=False),
    **{
        name: functools.partial(_to_integer, rounding=rounding, element=element, unsigned=unsigned)
        for name, (rounding, element, unsigned) in bit_functions.CONVERSIONS.items()
    },
}
"""The functions that become arithmetic, by the `name` of ``tpk.function``."""

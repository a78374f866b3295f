"""Operations that AscendNPU-IR does not have for a chip, as others that both chips have.

Each entry of `OPERATIONS` was refused by its release 1.2.0, for the 910B or the 950.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes

from .accesses import generic
from .arithmetic import compute
from .expansion import Functions, Text


def _round(x: Lanes) -> Lanes:
    """Halves go away from zero. Small numbers keep their sign, large ones are whole."""
    size = x.absolute()
    whole = size.unary("math.floor")
    nearest = (size - whole >= 0.5).select(whole + 1.0, whole)
    return (size < 0.5).select(x * 0.0, (x < 0.0).select(-nearest, nearest))


def copysign(x: Lanes, sign: Lanes) -> Lanes:
    low = -(1 << (x.bits - 1))
    return ((x.pattern() & ~low) | (sign.pattern() & low)).pattern()


def _trunc(x: Lanes) -> Lanes:
    return (x < 0.0).select(x.unary("math.ceil"), x.unary("math.floor"))


def cbrt(x: Lanes) -> Lanes:
    """By logarithm and exponential, then a step of Newton's method for the digits that these lose. Small and large
    numbers are scaled by a power of 8, whose cubes would be no normal numbers."""
    given = x.absolute()
    small, large = given < 2.0**-60, given > 2.0**60
    size = small.select(given * 2.0**96, large.select(given * 2.0**-96, given))
    guess = (size.unary("math.log") * (1.0 / 3.0)).unary("math.exp")
    square = guess * guess
    better = guess - (guess * square - size) / (square * 3.0)
    better = small.select(better * 2.0**-32, large.select(better * 2.0**32, better))
    special = given.equals(0.0) | given.equals(math.inf) | x.differs(x)
    return special.select(x, (x < 0.0).select(-better, better))


def _ctpop(x: Lanes) -> Lanes:
    """Counts in pairs of bits, then in groups of four and so on."""
    size = 1
    while size < x.bits:
        low = sum(((1 << size) - 1) << place for place in range(0, x.bits, 2 * size))
        x = (x & low) + ((x >> size) & low)
        size *= 2
    return x


def _cttz(x: Lanes) -> Lanes:
    """The bits below the lowest one."""
    return _ctpop((x & (0 - x)) - 1)


def _asin(x: Lanes) -> Lanes:
    root = ((1.0 - x) * (1.0 + x)).unary("math.sqrt")
    return (x / (1.0 + root)).unary("math.atan") * 2.0


def _acos(x: Lanes) -> Lanes:
    """By the tangent of half the angle, which is not finite at -1."""
    root = ((1.0 - x) / (1.0 + x)).unary("math.sqrt")
    return x.equals(-1.0).select(math.pi, root.unary("math.atan") * 2.0)


def _atan2(y: Lanes, x: Lanes) -> Lanes:
    """By the quotient that is at most 1, and the angle from the nearest axis."""
    along, across = x.absolute(), y.absolute()
    steep = across > along
    least, most = steep.select(along, across), steep.select(across, along)
    ratio = least.equals(most).select(1.0, least / most)  # both may be infinite
    ratio = most.equals(0.0).select(0.0, ratio)
    angle = ratio.unary("math.atan")
    angle = steep.select(math.pi / 2 - angle, angle)
    negative = x.pattern() < 0
    angle = negative.select(math.pi - angle, angle)
    angle = (y.pattern() < 0).select(-angle, angle)
    return (x.differs(x) | y.differs(y)).select(x + y, angle)


def _to_unsigned(x: Lanes, element: str) -> Lanes:
    """By way of a wider signed integer, or by halves of the range where there is none."""
    bits = int(element[1:])
    if bits < 64:
        return x.cast("arith.fptosi", "i32" if bits < 32 else "i64").cast("arith.trunci", element)
    half = 2.0**63
    upper = (x - half).cast("arith.fptosi", element) ^ (-(1 << 63))
    return (x >= half).select(upper, x.cast("arith.fptosi", element))


def _widen(x: Lanes, element: str) -> Lanes:
    return x.cast("arith.extsi", element) & ((1 << x.bits) - 1)


def _exponent(x: Lanes, element: str) -> Lanes:
    """A scale of 8 bits, which is an exponent."""
    bits = x.cast("arith.bitcast", "i8").cast("arith.extui", "i32")
    number = bits.equals(0).select(1 << 22, bits << 23)
    return bits.equals(255).select(0x7FC00000, number).cast("arith.bitcast", "f32")


def _unchanged(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """An operation whose result has its operands' type."""

    def run(*operands: Lanes, element: str) -> Lanes:
        return function(*operands)

    return run


def _unsigned(predicate: str) -> Callable[[Lanes, Lanes], Lanes]:
    """A comparison of unsigned integers by one of signed integers, which begin with the lowest."""

    def run(x: Lanes, y: Lanes) -> Lanes:
        low = -(1 << (x.bits - 1))
        return (x ^ low).compare(predicate, y ^ low)

    return run


COMPARISONS: dict[tuple[str, int], Callable[[Lanes, Lanes], Lanes]] = {
    ("arith.cmpf", 6): lambda x, y: (x < y) | (x > y),
    ("arith.cmpf", 7): lambda x, y: ~(x.differs(x) | y.differs(y)),
    ("arith.cmpf", 8): lambda x, y: ~((x < y) | (x > y)),
    ("arith.cmpf", 9): lambda x, y: ~(x <= y),
    ("arith.cmpf", 10): lambda x, y: ~(x < y),
    ("arith.cmpf", 11): lambda x, y: ~(x >= y),
    ("arith.cmpf", 12): lambda x, y: ~(x > y),
    ("arith.cmpf", 14): lambda x, y: x.differs(x) | y.differs(y),
    ("arith.cmpi", 6): _unsigned("slt"),
    ("arith.cmpi", 7): _unsigned("sle"),
    ("arith.cmpi", 8): _unsigned("sgt"),
    ("arith.cmpi", 9): _unsigned("sge"),
}
"""Comparisons by their numbers. AscendNPU-IR takes unordered comparisons of floats for ordered ones, and refuses
``ord`` and ``uno``; on the 910B it has no unsigned ones of 32 bits."""

LOOPED = ("arith.divui", "arith.remui")
"""Operations that are refused on tensors, but not on scalars: the elements are computed one after the other."""

OPERATIONS: dict[str, Callable[..., Lanes]] = {
    "arith.fptoui": _to_unsigned,
    "arith.extui": _widen,
    "arith.extf": _exponent,
    "math.copysign": _unchanged(copysign),
    "math.round": _unchanged(_round),
    "math.trunc": _unchanged(_trunc),
    "math.cbrt": _unchanged(cbrt),
    "math.ctpop": _unchanged(_ctpop),
    "math.cttz": _unchanged(_cttz),
    "math.acos": _unchanged(_acos),
    "math.asin": _unchanged(_asin),
    "math.atan2": _unchanged(_atan2),
}
_SOURCES = {"arith.cmpi": ("i32", "i64"), "arith.extui": ("i32",), "arith.extf": ("f8E8M0FNU",)}
"""The only element types of the operand with which an operation is refused."""


_COMPARISONS = ("arith.cmpf", "arith.cmpi")


def _comparison(operation: Any) -> Callable[[Lanes, Lanes], Lanes] | None:
    if operation.name not in _COMPARISONS:
        return None
    return COMPARISONS.get((operation.name, operation.attributes["predicate"].value))


def is_refused(operation: Any) -> bool:
    """Whether an operation is in the table, with the types that are refused. Indices and scalar bits are none."""
    name = operation.name
    if name in LOOPED:
        return shape_of(operation.results[0]) is not None
    if name not in OPERATIONS and (name not in _COMPARISONS or _comparison(operation) is None):
        return False
    source = element_of(operation.operands[0])
    if source == "index" or "f64" in (source, element_of(operation.results[0])):
        return False
    return source in _SOURCES.get(name, (source,))


def rewrite(functions: Functions, operation: Any) -> None:
    """Put a call of a function of operations that are not refused in an operation's place."""
    body = Text()
    (result,) = operation.results
    kinds = [element_of(value) for value in operation.operands]
    element, shape = element_of(result), shape_of(result)

    def one(names: list[str]) -> str:
        def function(*operands: Lanes) -> Lanes:
            compare = _comparison(operation)
            if operation.name in LOOPED:
                x, y = operands
                return x._binary(operation.name.removeprefix("arith."), x.value, y.value)
            if compare is not None:
                return compare(*operands)
            return OPERATIONS[operation.name](*operands, element=element)

        return compute(body, function, names, kinds, element)

    if shape is None:
        returned = one([f"%a{i}" for i in range(len(kinds))])
    else:
        inputs = [(f"%a{i}", str(value.type)) for i, value in enumerate(operation.operands)]
        returned, names = generic(body, shape, inputs, element)
        body.do(f"linalg.yield {one(names)} : {element}")
        body.do(f"}} -> {result.type}")
    values = functions.call(
        operation, "written", list(operation.operands), [str(result.type)], body, [returned]
    )
    result.replace_all_uses_with(values[0])
    operation.erase()

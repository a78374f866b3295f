"""Values of the text of loops, and what is known of constants when it is written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple


class Value(NamedTuple):
    """An SSA value: its name (``%12``), MLIR type, the depth of the region that defines it, its constant.

    `scalar` is what all lanes of a vector were broadcast from, where that is known.
    """

    name: str
    type: str
    level: int
    constant: int | float | None = None
    scalar: Value | None = None

    @property
    def is_vector(self) -> bool:
        return self.type.startswith("vector<")

    @property
    def lanes(self) -> int:
        """Lanes of a 1-D vector type; 1 for a scalar."""
        return parts(self.type)[0]

    @property
    def element(self) -> str:
        """The element type of a vector, or the scalar type itself."""
        return parts(self.type)[1]


@functools.cache
def parts(type: str) -> tuple[int, str]:
    """Lanes and element of a type."""
    if not type.startswith("vector<"):
        return 1, type
    lanes, _, element = type[7:-1].partition("x")
    return int(lanes), element


def vector_type(element: str, lanes: int) -> str:
    """``vector<lanes x element>``, or the element type itself for one lane."""
    return f"vector<{lanes}x{element}>" if lanes > 1 else element


PREDICATES = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}
"""Comparisons of MLIR's `arith.cmpi`."""


MOST_ZEROS = 64
"""The trailing zero bits of 0."""


def trailing_zeros(value: int) -> int:
    """The number of trailing zero bits."""
    return (value & -value).bit_length() - 1 if value else MOST_ZEROS


ZEROS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": min,
    "arith.subi": min,
    "arith.muli": lambda a, b: min(a + b, MOST_ZEROS),
    "arith.andi": max,
    "arith.ori": min,
    "arith.remui": min,
    "arith.remsi": min,
    "arith.minsi": min,
    "arith.maxsi": min,
}
"""The trailing zero bits of the result that follow from those of the operands."""

KEEPS_ZEROS = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")
"""Conversions whose result has at least the trailing zero bits of the operand."""


def wrapped(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as a signed number."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def fold(constant: Callable[[int, str], Value], op: str, a: Value, b: Value) -> Value | None:
    """What an operation on two i64 gives without being written; `constant` writes one. None where it has to be."""
    if not isinstance(a.constant, int) and not isinstance(b.constant, int):
        return None
    if a.element != "i64":
        return None
    x, y = a.constant, b.constant
    if op == "arith.addi":
        if x == 0:
            return b
        if y == 0:
            return a
        if isinstance(x, int) and isinstance(y, int):
            return constant(x + y, a.type)
    elif op == "arith.muli":
        if x == 1:
            return b
        if y == 1:
            return a
        if x == 0 or y == 0:
            return constant(0, a.type)
        if isinstance(x, int) and isinstance(y, int):
            return constant(x * y, a.type)
    elif op == "arith.subi":
        if y == 0:
            return a
        if isinstance(x, int) and isinstance(y, int):
            return constant(x - y, a.type)
    elif op == "arith.divui" and y == 1:
        return a
    return None


_FLOAT_BITS = {"f32": ("<f", "<I", 8), "f64": ("<d", "<Q", 16)}


def float_literal(value: float, type: str) -> str:
    """An MLIR literal for `value` that keeps every bit (hexadecimal for what decimal cannot say)."""
    import struct

    to, back, digits = _FLOAT_BITS[type]
    bits = struct.unpack(back, struct.pack(to, value))[0]
    return f"0x{bits:0{digits}X}"

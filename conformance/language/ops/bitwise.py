"""Bitwise operations and shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import expression
from triton_porting_kit.conformance.language.table import BITS, FLOAT, FP8, INTEGER, SIGNED, Op
from triton_porting_kit.conformance.types import Array, Kind

SECTION = "Bits"
TWO = ("T", "T")
FLOATS = (*FLOAT, *FP8)


def _shifts(x: Array, y: Array, kind: Kind) -> Any:
    return (y >= 0) & (y < kind.bits)


def _left(x: Array, y: Array) -> Any:
    return x * 2 ** np.clip(y, 0, 63)


def _right(x: Array, y: Array) -> Any:
    return x // 2 ** np.clip(y, 0, 63)


OPS: tuple[Op, ...] = (
    expression("and", SECTION, "x & y", lambda x, y: x & y, BITS, operands=TWO, refused=FLOATS),
    expression("or", SECTION, "x | y", lambda x, y: x | y, BITS, operands=TWO, refused=FLOATS),
    expression("xor", SECTION, "x ^ y", lambda x, y: x ^ y, BITS, operands=TWO, refused=FLOATS),
    expression("invert", SECTION, "~x", lambda x: ~x, BITS, refused=FLOATS),
    expression(
        "shl", SECTION, "x << y", _left, INTEGER, operands=TWO, defined=_shifts, refused=FLOATS,
        note="Shifts by the width or more must not trap; their result is not tested.",
    ),
    expression(
        "shr", SECTION, "x >> y", _right, INTEGER, operands=TWO, defined=_shifts, refused=FLOATS,
        note="An arithmetic shift for signed types.",
    ),
    expression("shl_constant", SECTION, "x << 3", lambda x: x * 8, INTEGER, refused=FLOATS),
    expression("shr_constant", SECTION, "x >> 3", lambda x: x // 8, INTEGER, refused=FLOATS),
    expression(
        "logical_and", SECTION, "x.logical_and(y)", lambda x, y: x & y, ("i1",), operands=TWO,
        refused=("i8", "i32", "i64", "fp32"),
    ),
    expression("logical_or", SECTION, "x.logical_or(y)", lambda x, y: x | y, ("i1",), operands=TWO, refused=("i8", "i32")),
    expression("not", SECTION, "not x", lambda x: 1 - x, ("i1",), refused=()),
    expression("mixed_signs", SECTION, "(x + y.to({T})) ^ y", lambda x, y: (x + y) ^ y, SIGNED, operands=TWO, refused=()),
)  # fmt: skip

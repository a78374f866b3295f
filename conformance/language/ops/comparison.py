"""Comparisons and selection."""

from __future__ import annotations

import operator

import numpy as np

from triton_porting_kit.conformance.language.expression import expression
from triton_porting_kit.conformance.language.shapes import ELEMENTWISE, RANKS
from triton_porting_kit.conformance.language.table import ALL, BITS, FLOAT, NUMBER, Op

SECTION = "Comparison and selection"
TWO = ("T", "T")
COMPARED = (*BITS, *FLOAT)


def _compare(name: str, sign: str, function: object) -> Op:
    return expression(
        name, SECTION, f"x {sign} y", lambda x, y: function(x, y).astype(int),  # type: ignore[operator]
        COMPARED, operands=TWO, results=("i1",), shapes=RANKS if name == "lt" else ELEMENTWISE, refused=(),
    )  # fmt: skip


OPS: tuple[Op, ...] = (
    _compare("lt", "<", operator.lt),
    _compare("le", "<=", operator.le),
    _compare("gt", ">", operator.gt),
    _compare("ge", ">=", operator.ge),
    _compare("eq", "==", operator.eq),
    _compare("ne", "!=", operator.ne),
    expression(
        "compare_chain", SECTION, "(x < y) & (x == x) | (y == 0) ^ (x > 0)",
        lambda x, y: ((x < y) & (x == x) | (y == 0) ^ (x > 0)).astype(int),
        NUMBER, operands=TWO, results=("i1",), refused=(),
    ),
    expression(
        "where", SECTION, "tl.where(c, x, y)".replace("c", "z"), lambda x, y, z: np.where(z.astype(bool), x, y), ALL,
        operands=("T", "T", "i1"), shapes=RANKS, refused=(),
    ),
    expression(
        "where_compared", SECTION, "tl.where(x > y, x, y)", lambda x, y: np.where(x > y, x, y), NUMBER, operands=TWO, refused=(),
    ),
    expression(
        "where_both_sides", SECTION, "tl.where(y != 0, x // y, x)",
        lambda x, y: np.where(y != 0, np.where(y != 0, x, 0) // np.where(y != 0, y, 1), x), ("u8", "u16", "u32", "u64"),
        operands=TWO, refused=(), note="Both sides are evaluated; a division by 0 in the other side must not trap.",
    ),
)  # fmt: skip

"""Tiles of up to 2**20 elements, the most that Triton allows, in one dimension: every kind of access, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression, small_numbers
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import Op
from triton_porting_kit.conformance.types import Array

SECTION = "Large tiles"
MOST = 1 << 20
"""The most elements of a tile in Triton."""
WHOLE = (Shape(f"tile_{MOST}", (MOST,), {"n": MOST}),)


def _large(name: str, code: str, oracle: Any, types: tuple[str, ...], **more: Any) -> Op:
    return expression(
        f"large_{name}",
        SECTION,
        code,
        oracle,
        types,
        **defaulted(more, {"inputs": small_numbers, "refused": (), "shapes": WHOLE}),
    )


def _order(n: int) -> Array:
    return (np.arange(n) * 5 + 3) % n


OPS: tuple[Op, ...] = (
    _large("copy", "x", lambda x: x, ("i8", "fp32"), form="tl.store(q, tl.load(p))", shapes=(tile(MOST), tile(70001))),
    _large("arithmetic", "x * 2 + y", lambda x, y, n: x * 2 + y, ("fp32",), operands=("T", "T")),
    _large("arange", "x + tl.arange(0, {n})", lambda x, n: x + np.arange(n), ("i32",)),
    _large("gather", "tl.load(X0 + (tl.arange(0, {n}) * 5 + 3) % {n})", lambda x, n: x[_order(n)], ("fp32",), form="tl.load(p + index)"),
    # What a chip reads as a whole has to fit its local memory.
    _large("sum", "tl.sum(x, 0)", lambda x: x.sum(0), ("i8",), shapes=(tile(MOST >> 3),), results=("sum",)),
    _large("max", "tl.max(x * 0 + tl.arange(0, {n}), 0)", lambda x, n: np.asarray(n - 1), ("i32",), form="tl.max(x, 0)"),
)  # fmt: skip

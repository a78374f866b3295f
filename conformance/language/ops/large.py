"""Tiles of up to 2**20 elements, the most that Triton allows, in one dimension: every kind of access, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression, small_numbers
from triton_porting_kit.conformance.language.shapes import Shape, tile
from triton_porting_kit.conformance.language.table import Op
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.types import Array, Kind

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


def _scatter() -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        (values,) = small_numbers((kind,), shape)
        source = (
            f"def kernel_large_scatter(X, O):\n    i = tl.arange(0, {MOST})\n"
            f"    tl.store(O + (i * 5 + 3) % {MOST}, tl.load(X + i), mask=i % 3 != 1)\n"
        )
        expected = np.zeros_like(values)
        kept = np.arange(MOST) % 3 != 1
        expected[_order(MOST)[kept]] = values[kept]
        return Work(source, ((values, kind),), (Result(kind, expected, initial=np.zeros_like(values)),))

    return Op("large_scatter", SECTION, "tl.store(p + index, x, mask=m)", build, ("i32",), WHOLE)


OPS: tuple[Op, ...] = (
    _large("copy", "x", lambda x: x, ("i8", "fp32"), form="tl.store(q, tl.load(p))", shapes=(tile(MOST), tile(70001))),
    _large("arithmetic", "x * 2 + y", lambda x, y, n: x * 2 + y, ("fp32",), operands=("T", "T")),
    _large("arange", "x + tl.arange(0, {n})", lambda x, n: x + np.arange(n), ("i32",)),
    _large("gather", "tl.load(X0 + (tl.arange(0, {n}) * 5 + 3) % {n})", lambda x, n: x[_order(n)], ("fp32",), form="tl.load(p + index)"),
    _scatter(),
    _large("sum", "tl.sum(x, 0)", lambda x, n: x.sum(0), ("i32",)),
    _large("max", "tl.max(x * 0 + tl.arange(0, {n}), 0)", lambda x, n: np.asarray(n - 1), ("i32",), form="tl.max(x, 0)"),
    _large("cumsum", "tl.cumsum(x, 0)", lambda x, n: np.cumsum(x), ("fp32",)),
)  # fmt: skip

"""Tiled matrix multiplication: all types, odd sizes, transposed operands, several tilings, an epilogue."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.problem import (
    Expected,
    Family,
    Operand,
    Problem,
    Random,
    empty,
    exact,
    expect,
    operand,
)
from triton_porting_kit.conformance.types import KINDS, Array
from triton_porting_kit.kernels.matmul import matmul_kernel

RESULT = {"i8": "i32", "fp8e4nv": "fp32", "fp8e5": "fp32"}
"""The type of the product, if it is not that of the operands."""
TILES = {"fp64": (32, 32, 16)}
"""Rows, columns and depth of a tile for types that do not use `DEFAULT_TILES`, so that it fits on every chip."""
DEFAULT_TILES = (64, 64, 32)


def accumulator_of(kind: str) -> Any:
    """The accumulator type for operands of `kind`."""
    return {"i8": tl.int32, "fp64": tl.float64}.get(kind, tl.float32)


def strides(array: Any, turned: bool) -> tuple[int, int]:
    """The shape in memory of a matrix, which is stored transposed if `turned`."""
    first, second = array.stride()
    return (second, first) if turned else (first, second)


def sizes(a: Any, b: Any, layout: str = "nn") -> tuple[int, int, int]:
    """M, N and K of a product whose operands are stored directly (n) or transposed (t)."""
    m, k = a.shape if layout[0] == "n" else reversed(a.shape)
    return m, (b.shape[1] if layout[1] == "n" else b.shape[0]), k


def matmul(
    a: Any,
    b: Any,
    *,
    layout: str = "nn",
    tiles: tuple[int, int, int] | None = None,
    leaky_relu: bool = False,
    precision: str = "ieee",
) -> Any:
    """Launch a program for each tile of a @ b. `layout`: which operands are stored transposed (t)."""
    m, n, k = sizes(a, b, layout)
    kind = a.kind.name
    block_m, block_n, block_k = tiles or TILES.get(kind, DEFAULT_TILES)
    c = empty((m, n), a, RESULT.get(kind, kind))
    matmul_kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        a, b, c, m, n, k, *strides(a, layout[0] == "t"), *strides(b, layout[1] == "t"), *c.stride(),
        LEAKY_RELU=leaky_relu, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=4,
        ACCUMULATOR=accumulator_of(kind), PRECISION=precision,
    )  # fmt: skip
    return c


# --- oracle ------------------------------------------------------------------------------------------


def matrix(random: Random, shape: tuple[int, ...], kind: str) -> Operand:
    """Normally distributed numbers, or integers of the whole range."""
    own = KINDS[kind]
    if own.is_integer:
        return Operand(random.integers(own.lowest, own.highest, shape, own.host, endpoint=True), own)
    return operand(random.standard_normal(shape), own)


def tolerance_of(kind: str, precision: str = "ieee") -> str:
    """The entry of the table of tolerances for products of operands of `kind`."""
    if KINDS[kind].is_integer:
        return "exact"
    if KINDS[kind].is_minifloat:
        return "matmul_fp8"
    return "matmul_tf32" if precision == "tf32" else "matmul"


def product_of(a: Array, b: Array, kind: str, result: str = "", precision: str = "ieee") -> Expected:
    """a @ b of operands of `kind` as a `result`."""
    result = result or RESULT.get(kind, kind)
    if KINDS[kind].is_integer:
        return exact("product", (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32), result)
    entry = tolerance_of(kind, precision)
    return expect("product", a @ b, result, entry, np.abs(a) @ np.abs(b), a.shape[-1])


def problem(
    m: int,
    n: int,
    k: int,
    kind: str,
    *,
    layout: str = "nn",
    tiles: tuple[int, int, int] | None = None,
    leaky_relu: bool = False,
    precision: str = "ieee",
    peer: bool = False,
) -> Problem:
    """(m, k) times (k, n)."""
    turned = [layout[0] == "t", layout[1] == "t"]
    shapes = [(k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)]

    def expected(a: Array, b: Array) -> Expected:
        left, right = a.T if turned[0] else a, b.T if turned[1] else b
        found = product_of(left, right, kind, precision=precision)
        if not leaky_relu:
            return found
        bent = np.where(found.values < 0, found.values / 100, found.values)
        return expect("product", bent, found.kind, "matmul", np.abs(left) @ np.abs(right), k)

    block = tiles or TILES.get(kind, DEFAULT_TILES)
    name = [
        f"{m}x{n}x{k}",
        layout if layout != "nn" else "",
        "tiles-" + "x".join(map(str, tiles)) if tiles else "",
    ]
    name += ["leaky-relu"] * leaky_relu + [precision] * (precision != "ieee")
    return Problem(
        "-".join(filter(None, name)),
        kind,
        lambda random: tuple(matrix(random, shape, kind) for shape in shapes),
        lambda a, b: matmul(a, b, layout=layout, tiles=tiles, leaky_relu=leaky_relu, precision=precision),
        expected,
        max(block[0] * block[1], block[0] * block[2], block[1] * block[2]),
        peer=np.matmul if peer else None,
        tolerance=tolerance_of(kind, precision),
    )


FAMILY = Family("matmul", "A matrix product in tiles", "matmul", ("feature:dot",))
HALVES = ("fp16", "bf16")
WIDE = ("fp32", "fp16", "bf16", "fp64")
ALL = (*WIDE, "i8", "fp8e4nv", "fp8e5")

for _kind, _mnk in product(ALL, ((1, 1, 1), (17, 33, 65), (128, 128, 128), (130, 67, 96))):
    FAMILY.add(problem(*_mnk, _kind))
for _kind, _layout in product(ALL, ("nt", "tn", "tt")):
    FAMILY.add(problem(72, 100, 88, _kind, layout=_layout))
for _kind, _tiles in product(("fp32", *HALVES, "i8"), ((32, 32, 32), (16, 64, 32), (64, 16, 64))):
    FAMILY.add(problem(70, 90, 100, _kind, tiles=_tiles))
for _kind in HALVES:
    FAMILY.add(problem(150, 140, 130, _kind, tiles=(128, 64, 64)))
for _kind in ("fp32", *HALVES):
    FAMILY.add(problem(65, 96, 80, _kind, leaky_relu=True))
    FAMILY.add(
        problem(512, 512, 512, _kind, peer=_kind != "fp16")
    )  # NumPy's product of fp16 is a slow scalar loop
for _kind in ("fp32", "bf16"):
    FAMILY.add(problem(1024, 1024, 1024, _kind, peer=True))
FAMILY.add(problem(256, 256, 256, "fp64", peer=True))
FAMILY.add(problem(512, 512, 512, "i8"))
FAMILY.add(problem(512, 512, 512, "fp8e4nv", layout="nt"))
FAMILY.add(problem(96, 96, 200, "fp32", precision="tf32"))

CHECKS = tuple(FAMILY.checks)

"""Persistent kernels, in which a fixed number of programs process all tiles, and autotuned kernels."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.kernels.matmul import accumulator_of, matrix, product_of, tolerance_of
from triton_porting_kit.conformance.kernels.problem import (
    Family,
    Problem,
    empty,
    expect,
    normal,
)
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.kernels import matmul as tuned

PROGRAMS = 6
TILE, DEPTH = 32, 32


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, ACCUMULATOR: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """Programs take tiles p, p + programs, …; each tile is a whole loop over K."""
    tiles_n = tl.cdiv(N, TILE)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, TILE) * tiles_n, tl.num_programs(0)):
        rows = tile // tiles_n * TILE + tl.arange(0, TILE)
        cols = tile % tiles_n * TILE + tl.arange(0, TILE)
        accumulator = tl.zeros((TILE, TILE), dtype=ACCUMULATOR)
        for start in range(0, K, DEPTH):
            k = start + tl.arange(0, DEPTH)
            a = tl.load(
                a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0
            )
            b = tl.load(
                b_ptr + k[:, None] * N + cols[None, :], mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0
            )
            accumulator = tl.dot(a, b, accumulator, input_precision="ieee", out_dtype=ACCUMULATOR)
        inside = (rows[:, None] < M) & (cols[None, :] < N)
        tl.store(
            c_ptr + rows[:, None] * N + cols[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=inside
        )


def _clear(arguments: dict[str, Any]) -> None:
    """Reset the output before each trial of the autotuner."""
    arguments["out_ptr"].write(np.zeros(1, np.float32))


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=4, pre_hook=_clear) for block in (256, 1024)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Each program adds the sum of its tile atomically. If tiles divide the size, there is no mask."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x.to(tl.float32), axis=0))


# --- persistent --------------------------------------------------------------------------------------


def persistent_matmul(a: Any, b: Any) -> Any:
    """Launch `PROGRAMS` programs."""
    (m, k), n = a.shape, b.shape[1]
    kind = a.kind.name
    c = empty((m, n), a, {"i8": "i32"}.get(kind, kind))
    persistent_matmul_kernel[(PROGRAMS,)](
        a, b, c, m, n, k, ACCUMULATOR=accumulator_of(kind), TILE=TILE, DEPTH=DEPTH
    )
    return c


def problem(m: int, n: int, k: int, kind: str, peer: bool = False) -> Problem:
    """(m, k) times (k, n)."""
    return Problem(
        f"{m}x{n}x{k}",
        kind,
        lambda random: (matrix(random, (m, k), kind), matrix(random, (k, n), kind)),
        persistent_matmul,
        lambda a, b: product_of(a, b, kind),
        TILE * max(TILE, DEPTH),
        peer=np.matmul if peer else None,
        tolerance=tolerance_of(kind),
    )


PERSISTENT = Family(
    "persistent-matmul", "A matrix product by persistent programs", "matmul", ("feature:dot",)
)
for _kind, _shape in product(("fp32", "fp16", "bf16", "i8"), ((1, 1, 1), (100, 70, 50), (97, 130, 64))):
    PERSISTENT.add(problem(*_shape, _kind))
for _kind in ("fp32", "bf16"):
    PERSISTENT.add(problem(256, 256, 256, _kind, peer=True))


# --- autotuned ---------------------------------------------------------------------------------------


def tuned_matmul(m: int, n: int, k: int, kind: str, leaky_relu: bool = False, peer: bool = False) -> Problem:
    """(m, k) times (k, n), with tiles chosen by the autotuner."""

    def expected(a: Any, b: Any) -> Any:
        found = product_of(a, b, kind)
        if not leaky_relu:
            return found
        bent = np.where(found.values < 0, found.values / 100, found.values)
        return expect("product", bent, kind, "matmul", np.abs(a) @ np.abs(b), k)

    return Problem(
        f"{m}x{n}x{k}" + "-leaky-relu" * leaky_relu,
        kind,
        lambda random: (matrix(random, (m, k), kind), matrix(random, (k, n), kind)),
        lambda a, b: tuned.matmul(a, b, leaky_relu=leaky_relu),
        expected,
        128 * 128,
        peer=np.matmul if peer else None,
        tolerance=tolerance_of(kind),
    )


TUNED = Family("tuned-matmul", "An autotuned matrix product", "matmul", ("feature:dot",))
for _kind in ("fp32", "fp16", "bf16"):
    TUNED.add(tuned_matmul(65, 130, 70, _kind))
TUNED.add(tuned_matmul(90, 33, 64, "fp32", leaky_relu=True))
for _kind in ("fp32", "bf16"):
    TUNED.add(tuned_matmul(512, 384, 256, _kind, peer=True))


def tuned_sum(x: Any) -> Any:
    """Launch as many programs as the chosen tile requires."""
    out, n = empty((1,), x, "fp32"), math.prod(x.shape)
    tuned_sum_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out


def tuned_sum_problem(n: int, kind: str) -> Problem:
    """n elements."""
    return Problem(
        f"{n}",
        kind,
        lambda random: (normal(random, (n,), kind),),
        tuned_sum,
        lambda x: expect("sum", x.sum(keepdims=True), KINDS["fp32"], "reduction", np.abs(x).sum(), n),
        1024,
        ("atomic:fp32", "feature:atomics"),
    )


TUNED_SUM = Family("tuned-sum", "An autotuned sum, whose trials are undone,", "reduction")
for _kind, _n in product(("fp32", "fp16"), (1000, 4096)):
    TUNED_SUM.add(tuned_sum_problem(_n, _kind))

CHECKS = (*PERSISTENT.checks, *TUNED.checks, *TUNED_SUM.checks)

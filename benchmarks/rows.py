"""The kernels that are measured, with their targets and the minimum that each must move and compute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case

EAGER, COMPILED = "torch", "torch.compile"
BEST = "torch's best / ours"
MEAN = "geometric mean"
WORKLOAD_BAR, WORKLOADS_BAR = 1.0, 1.3
"""The least that torch's time over ours may be, of one workload, and in the geometric mean of all."""

REDUCED = re.compile("softmax|matmul fp32|attention")
"""The rows that are measured again with AVX2 alone."""

SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8"}

Bars = Mapping[int, float]
"""The least that the peer's time over ours may be, by the number of threads; the last holds for more as well."""


def bar_of(bars: Bars, threads: int) -> float | None:
    """The target with a number of threads; None where there is none."""
    return bars.get(min(threads, max(bars))) if bars else None


@dataclass(frozen=True)
class Row:
    """A case, its targets (`bars`) by peer, and what limits it.

    `moved` is what must go between memory and the cores at least, in bytes; `flops` the operations that must be
    done, at the machine's peak for `dtype`. `quick` rows are part of a quick run.
    """

    name: str
    case: Case
    bars: Mapping[str, Bars]
    moved: int
    flops: int = 0
    dtype: str = "float32"
    quick: bool = True


def both(bar: float) -> Bars:
    """The same target for one thread and for two."""
    return {1: bar, 2: bar}


def rows() -> list[Row]:
    """All rows, in the order of the report."""
    return [*_elementwise(), *_normalisation(), *_fused(), *_matmuls(), *_attention(), *_ordered()]


def reduced_rows() -> list[Row]:
    """The rows that are measured again without the widest vectors, with the same bars."""
    return [replace(row, name=f"{row.name}, AVX2") for row in rows() if REDUCED.match(row.name)]


def _elementwise() -> list[Row]:
    n = 1 << 24
    add = cases.vector_add_case(n, "float32")
    return [Row("vector add fp32 16M", add, {EAGER: both(1.0)}, 12 * n)]


def _normalisation() -> list[Row]:
    m, n = 4096, 1024
    softmaxes = [
        Row(
            f"softmax fp32 {r}x{c}",
            cases.softmax_case(r, c, "float32"),
            {EAGER: both(1.2)},
            8 * r * c,
        )
        for r, c in ((m, n), (1823, 781))
    ]
    forward, backward = (
        make(m, n, "float32") for make in (cases.layer_norm_case, cases.layer_norm_backward_case)
    )
    return [
        *softmaxes,
        Row(f"layer norm fp32 {m}x{n}", forward, {EAGER: both(1.1)}, 8 * m * n),
        Row(f"layer norm backward fp32 {m}x{n}", backward, {EAGER: both(1.2)}, 12 * m * n),
    ]


def _fused() -> list[Row]:
    n, samples, boxes = 1 << 24, 256, 512
    gelu = cases.gelu_residual_case(n, "float32")
    giou = cases.giou_case(samples, boxes, "float32")
    return [
        Row("GELU(x·a+b)+residual fp32 16M", gelu, {EAGER: both(2.0), COMPILED: both(0.95)}, 12 * n),
        Row(
            f"GIoU loss fp32 {samples}x{boxes}",
            giou,
            {EAGER: both(5.0), COMPILED: both(1.0)},
            samples * boxes * (2 * 4 * 4 + 1),
        ),
    ]


def _matmuls() -> list[Row]:
    bars = {"float32": both(0.9), "bfloat16": {1: 0.9, 2: 1.1}, "float16": {1: 0.9, 2: 1.0}}
    found = [
        Row(
            f"matmul {SHORT[dtype]} {n}",
            cases.matmul_case(n, n, n, dtype, tiles=None),
            {EAGER: bars[dtype]},
            3 * n * n * (4 if dtype == "float32" else 2),
            2 * n**3,
            dtype,
            quick=n == 512,
        )
        for dtype in bars
        for n in (512, 1024, 2048)
    ]
    n = 1024
    integers = cases.matmul_case(n, n, n, "int8", tiles=None)
    return [*found, Row(f"matmul int8 {n}", integers, {EAGER: both(1.0)}, 6 * n * n, 2 * n**3, "int8")]


def _attention() -> list[Row]:
    heads, n, dim = 8, 1024, 64
    product, array = 2 * heads * n * n * dim, heads * n * dim
    found = []
    for what, make, bar, products, arrays in (
        ("", cases.attention_case, 1.3, 2, 4),
        (" backward", partial(cases.attention_backward_case, atomic=True), 1.0, 5, 8),
    ):
        for dtype, size in (("float32", 4), ("bfloat16", 2)):
            found.append(
                Row(
                    f"attention{what} {SHORT[dtype]} {heads}x{n}x{dim}",
                    make(heads, n, dim, dtype),
                    {EAGER: both(bar)},
                    arrays * array * size,
                    products * product,
                    dtype,
                    quick=dtype == "float32" and not what,
                )
            )
    return found


def _ordered() -> list[Row]:
    return [
        Row(
            "cumulative sum fp32 4096x1024",
            cases.cumulative_sum_case(4096, 1024, "float32"),
            {EAGER: both(1.0)},
            8 * 4096 * 1024,
        ),
        Row(
            "row sort fp32 4096x256",
            cases.sort_rows_case(4096, 256, "float32"),
            {EAGER: both(0.7)},
            8 * 4096 * 256,
        ),
    ]

"""What `tpk compile --summary` says of products in the linalg form: all of their multiply-adds are in named operations."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl
from linalg_kernels import product
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, artefacts, cpu_pipeline, linalg_stage
from triton_porting_kit.compiler.summary import MULTIPLY_ADDS, summarised
from triton_porting_kit.kernels.attention import (
    attention_backward_kv_kernel,
    attention_backward_q_kernel,
    attention_forward_kernel,
)


@triton.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + (i[:, None, None] * M + m[None, :, None]) * K + k[None, None, :])
    y = tl.load(b + (i[:, None, None] * K + k[None, :, None]) * N + n[None, None, :])
    tl.store(c + (i[:, None, None] * M + m[None, :, None]) * N + n[None, None, :], tl.dot(x, y))


def attention(kernel: Any) -> dict[str, str]:
    kinds = {name: "*fp16" if name.endswith("_ptr") else "i32" for name in kernel.arg_names if name.islower()}
    return kinds | {name: "*fp32" for name in ("lse_ptr", "delta_ptr") if name in kinds} | {"scale": "fp32"}


TILES = {"DIM": 32, "BLOCK_M": 16, "BLOCK_N": 64}
OF_ONE = 16 * 64 * 32
CASES: list[tuple[Any, dict[str, str], dict[str, int], int]] = [
    (
        product,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
        {"BM": 32, "BN": 64, "BK": 16},
        32 * 64 * 16,
    ),
    (
        batched,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32"},
        {"B": 4, "M": 16, "N": 32, "K": 64},
        4 * 16 * 32 * 64,
    ),
    (attention_forward_kernel, attention(attention_forward_kernel), TILES, 2 * OF_ONE),
    (attention_backward_kv_kernel, attention(attention_backward_kv_kernel), TILES, 4 * OF_ONE),
    (attention_backward_q_kernel, attention(attention_backward_q_kernel), TILES, 3 * OF_ONE),
]


@pytest.mark.parametrize("convention", ["triton-shared", "ascend", "iree"])
@pytest.mark.parametrize(
    ("kernel", "kinds", "constexprs", "expected"), CASES, ids=[str(case[0].__name__) for case in CASES]
)
def test_products_are_named(
    kernel: Any, kinds: dict[str, str], constexprs: dict[str, int], expected: int, convention: str
) -> None:
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = str(front.run(ttir_text(kernel, kinds, **constexprs), {})["structured"])
    made = linalg_stage(convention).run(structured, {})
    found = summarised(artefacts.parse_structured(structured), artefacts.parse_mlir(str(made)), "linalg")
    names = ("linalg.matmul", "linalg.batch_matmul")
    assert sum(found.total(MULTIPLY_ADDS, name) for name in names) == expected
    assert [row for row in found.rows if row.what == "product" and row.part != 1] == []

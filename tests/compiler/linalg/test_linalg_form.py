"""The form itself: upstream dialects only, named operations, and refusals that name the line and the convention."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
import triton.language as tl
from linalg_kernels import product
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.errors import CompilationError, OptionError
from triton_porting_kit.kernels.attention import (
    attention_backward_kv_kernel,
    attention_backward_q_kernel,
    attention_forward_kernel,
)
from triton_porting_kit.toolchain import mlir

DIALECTS = {"builtin", "func", "arith", "math", "scf", "linalg", "tensor", "memref", "bufferization"}


@triton.jit
def normalised(x, o, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, at < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(o + tl.program_id(0) * n + at, e / tl.sum(e, 0), at < n)


@triton.jit
def printed(x):
    tl.device_print("x", tl.load(x))


def form(kernel: Any, signature: dict[str, str], convention: str, **constexprs: Any) -> str:
    stages = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = stages.run(ttir_text(kernel, signature, **constexprs), {})["structured"]
    return str(linalg_stage(convention).run(structured, {}))


def operations(text: str) -> list[str]:
    found: list[str] = []

    def visit(operation: Any) -> Any:
        found.append(operation.name)
        return mlir.ir.WalkResult.ADVANCE

    mlir.parse_module(text).operation.walk(visit)
    return found


PRODUCT = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}


@pytest.mark.parametrize("convention", ["triton-shared", "ascend"])
def test_only_upstream_dialects_are_left(convention: str) -> None:
    text = form(product, PRODUCT, convention, BM=32, BN=64, BK=16)
    assert {name.partition(".")[0] for name in operations(text)} <= DIALECTS
    assert "tpk" not in re.sub(r"loc\(.*", "", text)


def test_the_signature_of_each_convention() -> None:
    shared, ascend = (
        form(product, PRODUCT, name, BM=32, BN=64, BK=16) for name in ("triton-shared", "ascend")
    )
    types = re.findall(
        r"%arg\d+: (\S+?)[ ,)]", shared.partition("func.func public @product(")[2].partition("{")[0]
    )
    assert types == ["memref<*xf16>", "memref<*xf16>", "memref<*xf32>", *["i32"] * 9]
    assert "(memref<?xi8>, memref<?xi8>, memref<?xf16>, memref<?xf16>, memref<?xf32>, i32" in ascend
    assert 'mix_mode = "mix"' in ascend
    assert '"func.func"() <{' in ascend


def test_products_and_blocks_stay_visible() -> None:
    names = operations(form(product, PRODUCT, "triton-shared", BM=32, BN=64, BK=16))
    assert names.count("linalg.matmul") == 1
    assert names.count("memref.copy") == 2
    assert names.count("bufferization.materialize_in_destination") == 1
    assert names.count("memref.load") == names.count("memref.store") == 0


ATTENTION = [
    (attention_forward_kernel, 2),
    (attention_backward_kv_kernel, 4),
    (attention_backward_q_kernel, 3),
]


@pytest.mark.parametrize(("kernel", "products"), ATTENTION)
def test_attention_keeps_its_products(kernel: Any, products: int) -> None:
    kinds = {name: "*fp16" if name.endswith("_ptr") else "i32" for name in kernel.arg_names if name.islower()}
    kinds |= {name: "*fp32" for name in ("lse_ptr", "delta_ptr") if name in kinds} | {"scale": "fp32"}
    names = operations(form(kernel, kinds, "triton-shared", DIM=32, BLOCK_M=32, BLOCK_N=32))
    assert names.count("linalg.matmul") == products


def test_reductions_are_named() -> None:
    names = operations(form(normalised, {"x": "*fp32", "o": "*fp32", "n": "i32"}, "triton-shared", B=64))
    assert names.count("linalg.reduce") == 2


def test_a_refusal_names_the_line_and_the_convention() -> None:
    with pytest.raises(CompilationError, match=r"convention ascend.*\n?.*tl.device_print"):
        form(printed, {"x": "*fp32"}, "ascend")


@triton.jit
def largest(x, o, B: tl.constexpr):
    tl.atomic_max(o, tl.load(x))
    tl.atomic_and(o, tl.load(x))
    at = tl.arange(0, B)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(x + at, tl.associative_scan(tl.load(x + at), 0, _larger))


@triton.jit
def _larger(a, b):
    return tl.where(a > b, a, b)


def test_atomic_kinds_have_the_numbers_of_the_compilers_llvm() -> None:
    """Of LLVM 19, as its own `MemRefBase.td` counts them: maxs 4, andi 12; later releases have 6 and 2."""
    kinds = {"x": "*i32", "o": "*i32"}
    pattern = r'"memref.atomic_rmw"\([^)]*\) <\{kind = (\d+) : i64'
    assert re.findall(pattern, form(largest, kinds, "ascend", B=16)) == ["4", "12"]
    assert re.findall(pattern, form(largest, kinds, "iree", B=16)) == ["6", "2"]


def test_regions_of_elements_become_operations_on_tensors() -> None:
    kinds = {"x": "*i32", "o": "*i32"}
    names = operations(form(largest, kinds, "triton-shared", B=16))
    assert names.count("linalg.generic") == 1
    ascend = form(largest, kinds, "ascend", B=16)
    assert '"linalg.generic"' not in ascend
    assert ": (tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4xi32>" in ascend


def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(OptionError, match=r"(?s)no convention 'other'.*triton-shared or ascend or iree"):
        linalg_stage("other")


def test_functions_that_are_not_called_any_more_are_dropped() -> None:
    structured = """
module attributes {tpk.structured = 1 : i32} {
  func.func public @kernel(%x: !llvm.ptr {tpk.pointee = f32}) attributes {tpk.kernel} { return }
  func.func private @unused(%x: tensor<4xi32>) -> tensor<4xi32> {
    %0 = "tpk.scan"(%x) ({
    ^bb0(%a: i32, %b: i32):
      %1 = arith.addi %a, %b : i32
      "tpk.yield"(%1) : (i32) -> ()
    }) {axis = 0 : i32, reverse = false} : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
"""
    text = str(linalg_stage("triton-shared").run(structured, {}))
    assert "@kernel" in text
    assert "@unused" not in text

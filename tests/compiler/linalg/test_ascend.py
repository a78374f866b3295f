"""The convention `ascend` before AscendNPU-IR's own compiler, up to the last step that is open: its closed assembler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from ascend_compiler import CHIPS, folder, verdict
from ascend_fits import compared
from ascend_table import cases, form, judged
from linalg_kernels import product
from ttir_source import ttir_text
from vendor_conform import conform

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.kernels.attention import attention_forward_kernel
from triton_porting_kit.kernels.softmax import softmax_kernel
from triton_porting_kit.kernels.vector_add import vector_add_kernel

pytestmark = pytest.mark.vendors


@triton.jit
def row_sums(x, o, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(o + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * n + at, at < n, other=0.0), 0))


@triton.jit
def transposed(x, o, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    tl.store(o + n[:, None] * M + m[None, :], tl.trans(tl.load(x + m[:, None] * N + n[None, :])))


@triton.jit
def gathered(x, at, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + tl.load(at + i)))


def kinds(kernel: Any, pointer: str, given: dict[str, Any]) -> dict[str, str]:
    """Types of the parameters: by name, pointers of one type, and i32 for the rest."""
    constexprs = {p.name for p in kernel.params if p.is_constexpr}
    names = [name for name in kernel.arg_names if name not in constexprs]
    return {name: given.get(name, f"*{pointer}" if name.endswith("_ptr") else "i32") for name in names}


CASES = {
    "vector-add": (vector_add_kernel, kinds(vector_add_kernel, "fp32", {}), {"BLOCK": 1024}),
    "softmax": (softmax_kernel, kinds(softmax_kernel, "fp32", {}), {"BLOCK": 1024}),
    "matmul": (
        product,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
        {"BM": 64, "BN": 64, "BK": 32},
    ),
    "attention": (
        attention_forward_kernel,
        kinds(attention_forward_kernel, "fp16", {"lse_ptr": "*fp32", "scale": "fp32"}),
        {"DIM": 64, "BLOCK_M": 32, "BLOCK_N": 32},
    ),
    "row-sums": (row_sums, {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 256}),
    "transposed": (transposed, {"x": "*fp16", "o": "*fp16"}, {"M": 32, "N": 64}),
    "gathered": (gathered, {"x": "*fp32", "at": "*i32", "o": "*fp32"}, {"B": 128}),
}


@pytest.fixture(scope="session")
def environment() -> Path:
    where = os.environ.get("TPK_VENDORS")
    assert where, "run this by `make test-vendors`, which installs the compiler"
    return Path(where)


@pytest.fixture(scope="session")
def programs(environment: Path) -> Path:
    return folder(environment)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", CASES)
def test_the_last_open_step_is_reached(programs: Path, tmp_path: Path, name: str, chip: str) -> None:
    kernel, signature, constexprs = CASES[name]
    used = {k: v for k, v in constexprs.items() if k in kernel.arg_names}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = front.run(ttir_text(kernel, signature, **used), {})["structured"]
    path = tmp_path / "kernel.mlir"
    path.write_text(str(linalg_stage("ascend").run(structured, {})))
    assert verdict(programs, path, chip) == ""


@triton.jit
def masked_beside_a_product(a, b, o, n, M: tl.constexpr):
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    x = tl.load(a + at % n, (i[:, None] + i[None, :]) % 3 == 1, other=0.0)
    tl.store(o + at % n, tl.dot(x, tl.load(b + at)), i[:, None] % 3 == i[None, :] % 2)


def test_masks_that_loops_read_beside_a_product(programs: Path, tmp_path: Path) -> None:
    """The 910B's compiler refuses such loops over tensors of booleans."""
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    kinds = {"a": "*fp16", "b": "*fp16", "o": "*fp32", "n": "i32"}
    structured = front.run(ttir_text(masked_beside_a_product, kinds, M=32), {})["structured"]
    path = tmp_path / "kernel.mlir"
    path.write_text(str(linalg_stage("ascend").run(structured, {})))
    assert [verdict(programs, path, chip) for chip in CHIPS] == ["", ""]


def test_operations_of_the_language_reach_the_last_open_step(programs: Path) -> None:
    """Every ninth operation, without those whose types or operations the compiler lacks."""
    for chip, verdicts in judged(programs, 9).items():
        assert verdicts.total >= 35
        assert verdicts.allowed >= 0.8 * verdicts.total
        assert verdicts.reached >= 0.95 * verdicts.allowed, (chip, verdicts)


def test_results_of_loops_along_a_dimension_are_stored(programs: Path, tmp_path: Path) -> None:
    """The 950's compiler ends where a slice without the dimension is stored to memory of known strides."""
    (case,) = (case for case in cases() if case.op.name == "reduce_three")
    path = tmp_path / "kernel.mlir"
    path.write_text(form(case))
    assert [verdict(programs, path, chip) for chip in CHIPS] == ["", ""]


def test_tiles_that_do_not_fit_are_those_of_the_kits_plan(programs: Path) -> None:
    """Of every ninth size; docs/linalg.md says which of all differ."""
    found = compared(programs, 9)
    assert found.total >= 50
    assert found.agreeing >= 0.9 * found.total, found.differing


HEAD = """func.func @k(%l: memref<?xi8>, %w: memref<?xi8>, %x: memref<?xf32>, %o: memref<?xTYPE>, %g0: i32, %g1: i32,
    %g2: i32, %p0: i32, %p1: i32, %p2: i32) attributes {SyncBlockLockArgIdx = 0 : i64, WorkspaceArgIdx = 1 : i64,
    global_kernel = "local", mix_mode = "aiv"} {
  %0 = memref.reinterpret_cast %x to offset: [0], sizes: [64], strides: [1]
      : memref<?xf32> to memref<64xf32, strided<[1]>>
  %1 = memref.alloc() : memref<64xf32>
  memref.copy %0, %1 : memref<64xf32, strided<[1]>> to memref<64xf32>
  %2 = bufferization.to_tensor %1 restrict writable : memref<64xf32>
  %3 = OPERATION
  %4 = memref.reinterpret_cast %o to offset: [0], sizes: [64], strides: [1]
      : memref<?xTYPE> to memref<64xTYPE, strided<[1]>>
  bufferization.materialize_in_destination %3 in writable %4 : (tensor<64xTYPE>, memref<64xTYPE, strided<[1]>>) -> ()
  return
}
"""
CALL = """func.func private @f(f32) -> f32
""" + HEAD.replace(
    "OPERATION",
    """linalg.map ins(%2 : tensor<64xf32>) outs(%2 : tensor<64xf32>)
    (%a: f32) { %b = func.call @f(%a) : (f32) -> f32  linalg.yield %b : f32 }""",
)
EXAMPLES = {
    "f16": (HEAD.replace("OPERATION", "arith.truncf %2 : tensor<64xf32> to tensor<64xf16>"), "f16", ()),
    "f64": (HEAD.replace("OPERATION", "arith.extf %2 : tensor<64xf32> to tensor<64xf64>"), "f64", tuple(CHIPS)),
    "f8E4M3FN": (HEAD.replace("OPERATION", "arith.truncf %2 : tensor<64xf32> to tensor<64xTYPE>"), "f8E4M3FN", ("910B",)),
    "f8E5M2FNUZ": (
        HEAD.replace("OPERATION", "arith.truncf %2 : tensor<64xf32> to tensor<64xTYPE>"), "f8E5M2FNUZ", tuple(CHIPS)
    ),
    "f4E2M1FN": (
        HEAD.replace("OPERATION", "arith.truncf %2 : tensor<64xf32> to tensor<64xTYPE>"), "f4E2M1FN", tuple(CHIPS)
    ),
    "math.erfc": (HEAD.replace("OPERATION", "math.erfc %2 : tensor<64xf32>"), "f32", tuple(CHIPS)),
    "external function": (CALL, "f32", tuple(CHIPS)),
}  # fmt: skip
"""Kernels that are no kit's, with an element type or an operation, and the chips that do not have it."""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_chips_lack(programs: Path, tmp_path: Path, name: str, chip: str) -> None:
    text, element, lacking = EXAMPLES[name]
    path = tmp_path / "kernel.mlir"
    path.write_text(text.replace("TYPE", element))
    assert (verdict(programs, path, chip) != "") == (chip in lacking)


AGREEING = (
    "abs-fp32-tile_17x4", "add-fp32-tile_1x64", "chain-i32-tile_17x4", "div-fp32-tile_17x4", "mul-fp32-tile_17x4",
    "neg-fp32-tile_17x4", "sub-fp32-tile_17x4", "and-i32-tile_17x4", "or-i32-tile_17x4", "call-fp32-tile_17",
    "early_return-fp32-tile_17", "for-fp32-tile_17", "for_tiles-fp32-tile_17", "if_scalar-fp32-scalar",
    "map_elementwise-fp32-tile_17", "program_id-fp32-tile_17", "while-fp32-tile_17", "while_data-i32-scalar",
    "exp-fp32-tile_17x4", "log-fp32-tile_17x4", "rsqrt-fp32-tile_17x4", "sigmoid-fp32-tile_17x4",
    "sqrt-fp32-tile_17x4", "load_gather-fp32-tile_256", "load_store-fp32-tile_17x4", "load_wrapped-fp32-tile_64",
    "sum-fp32-tile_4x8x16_axis2", "max-fp32-tile_4x8x16_axis1", "min-fp32-tile_4x8x16_axis1",
    "sum_wraps-i32-tile_4x8x16_axis0", "permute-fp32-tile_4x1x8_perm210", "histogram-i32-tile_16_bins16",
    "gather-fp32-tile_8x16_axis0_to4", "cumsum_wraps-i32-tile_4x8x16_axis0",
)  # fmt: skip
"""Checks whose kernels go to HIVM and come back by passes of AscendNPU-IR."""


def test_numbers_of_what_comes_back_from_hivm(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPK_ASCEND_RUN", "1")
    chosen = " or ".join(f"*/{name}" for name in AGREEING)
    records = conform("TPK_ASCEND", environment, tmp_path, "language", chosen)
    assert {r["name"]: r["message"] for r in records if r["status"] != "pass"} == {}
    assert len(records) >= len(AGREEING)
    assert len(list((tmp_path / "modules").glob("*.so"))) >= 30


KERNELS = (
    "vector-add/fp16-1023", "gelu-residual/fp16-33x65", "softmax/fp16-64x781", "layer-norm/fp16-3x70",
    "layer-norm-backward/fp16-3x70", "matmul/fp16-72x100x88-tt", "attention/fp16-1x1x32-causal",
    "attention-backward/fp16-1x1x32-causal", "giou-loss/fp16-4x1100", "dropout/fp16-1025-p0.25-seed123456789",
)  # fmt: skip
"""A check for each kernel of the kit."""


def test_every_kernel_of_the_kit_reaches_the_last_open_step(environment: Path, tmp_path: Path) -> None:
    records = conform(
        "TPK_ASCEND", environment, tmp_path, "kernels", " or ".join(f"kernels/{name}" for name in KERNELS)
    )
    assert len(records) == len(KERNELS)
    verdicts = [line.split("\t") for line in (tmp_path / "modules" / "verdicts").read_text().splitlines()]
    assert len({name for name, _chip, _verdict in verdicts}) >= 13
    assert [line for line in verdicts if line[2]] == []

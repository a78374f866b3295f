"""The convention `ascend` before AscendNPU-IR's own compiler, up to the last step that is open: its closed assembler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from linalg_kernels import product
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.kernels.attention import attention_forward_kernel
from triton_porting_kit.kernels.softmax import softmax_kernel
from triton_porting_kit.kernels.vector_add import vector_add_kernel

pytestmark = pytest.mark.vendors

LAST_OPEN_STEP = "External hivmc run fails, returning module before running external compiler"
TARGETS = ("Ascend910B1",)


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
def compiler() -> Path:
    where = os.environ.get("TPK_VENDORS")
    assert where, "run this by `make test-vendors`, which installs the compiler"
    (found,) = Path(where).glob("lib/python*/site-packages/ascendnpuir/bin/bishengir-compile")
    found.chmod(0o755)
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_last_open_step_is_reached(compiler: Path, tmp_path: Path, name: str, target: str) -> None:
    kernel, signature, constexprs = CASES[name]
    used = {k: v for k, v in constexprs.items() if k in kernel.arg_names}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = front.run(ttir_text(kernel, signature, **used), {})["structured"]
    path = tmp_path / "kernel.mlir"
    path.write_text(str(linalg_stage("ascend").run(structured, {})))
    done = subprocess.run(
        [
            compiler,
            path,
            "--enable-hfusion-compile=true",
            "--enable-triton-kernel-compile=true",
            f"--target={target}",
            "-o",
            tmp_path / "kernel.o",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert [line for line in errors if LAST_OPEN_STEP not in line] == []
    assert len(errors) == 1, done.stderr

"""The convention `iree`: its form, and IREE itself as its judge."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from linalg_kernels import product
from test_ascend import CASES
from ttir_source import ttir_text
from vendor_conform import conform

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.kernels.rows import sort_kernel

SELECTED = "*fp32-3x70 or *i32-1025 or *fp32-7x33 or *fp16-7x33 or *fp16-33x65 or grouped-matmul/fp16-four"
"""Checks of the kernels level; docs/linalg.md tells how to run all."""
SLOW = ("attention",)
"""Kernels that IREE compiles for minutes for a GPU."""


def form(kernel: Any, signature: dict[str, str], convention: str, **constexprs: Any) -> str:
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = front.run(ttir_text(kernel, signature, **constexprs), {})["structured"]
    return str(linalg_stage(convention).run(structured, {}))


def test_a_kernel_is_an_executable_and_a_function_that_dispatches_it() -> None:
    kinds = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    text = form(product, kinds, "iree", BM=32, BN=64, BK=16)
    names = re.findall(r'"([a-z_]+\.[a-z_.]+)"\(', text)
    counts = {name: names.count(name) for name in ("stream.executable", "stream.async.dispatch", "util.func")}
    assert counts == {"stream.executable": 1, "stream.async.dispatch": 1, "util.func": 1}
    assert names.count("linalg.matmul") == 1
    assert names.count("memref.alloc") == 0  # an executable of IREE's has no heap
    assert names.count("stream.binding.subspan") == 3
    assert "tied_operands = [0 : index, 1 : index, 2 : index]" in text


def test_chains_of_results_that_are_read_again_have_barriers() -> None:
    """Each step of a sort reads the one before several times, and IREE would compute it anew each time."""
    kinds = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n_cols": "i32", "padding": "fp32"}
    counts = {}
    for block in (4, 64):
        text = form(sort_kernel, kinds, "iree", BLOCK=block, DESCENDING=False)
        counts[block] = text.count('"iree_codegen.fusion_barrier"(')
        assert not re.search(r'fusion_barrier"[^\n]*xi1>', text)
    steps = 6 * 7 // 2  # of 64 elements
    assert counts[4] <= 2
    assert steps / 2 <= counts[64] <= 2 * steps
    product_text = form(
        product,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32"} | dict.fromkeys("MNK", "i32"),
        "iree",
        BM=32,
        BN=64,
        BK=16,
    )
    assert "fusion_barrier" not in product_text


@pytest.fixture(scope="session")
def iree() -> Path:
    where = os.environ.get("TPK_VENDORS")
    assert where, "run this by `make test-vendors`, which installs the compiler"
    return Path(where)


@pytest.mark.vendors
@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_kernels_compile_for_an_amd_gpu(iree: Path, tmp_path: Path, name: str) -> None:
    kernel, signature, constexprs = CASES[name]
    used = {k: v for k, v in constexprs.items() if k in kernel.arg_names}
    path = tmp_path / "kernel.mlir"
    path.write_text(form(kernel, signature, "iree-rocm", **used))
    options = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", "-o", tmp_path / "kernel.vmfb"]
    program = [iree / "bin" / "iree-compile", path, *options]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernel.vmfb").stat().st_size > 1000


@pytest.mark.vendors
def test_kernels_of_the_conformance_suite_run(iree: Path, tmp_path: Path) -> None:
    records = conform("TPK_IREE", iree, tmp_path, "kernels", SELECTED)
    assert {r["name"]: r["message"] for r in records if r["status"] != "pass"} == {}
    assert len(records) >= 8
    assert len(list((tmp_path / "modules").glob("*.vmfb"))) >= 5

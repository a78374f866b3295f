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

SELECTED = "*fp32-3x70 or *i32-1025 or *fp32-7x33 or *fp16-7x33 or *fp16-33x65"
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

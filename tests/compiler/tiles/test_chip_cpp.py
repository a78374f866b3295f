"""Kernels for a chip as C++ against the header of intrinsics: built by two compilers, run on the virtual NPU."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from chip_backend import VirtualChip, put, running_on
from chip_kernels import add, check_attention, matmul, one_product
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.abi.header import INCLUDE
from triton_porting_kit.compiler import (
    CPP_COMMAND,
    CppHeader,
    CpuTarget,
    cpp_pipeline,
    npu_cpp_command,
    npu_cpp_pipeline,
)
from triton_porting_kit.errors import CompilationError, OptionError

Array = np.ndarray[Any, Any]
QUICK = tuple("-O1" if word == "-O2" else word for word in CPP_COMMAND[1:])


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=float("-inf"))
    weights = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + i, weights / tl.sum(weights, 0), mask=i < n)


@triton.jit
def counted(x, indices, out, sums, B: tl.constexpr):
    """Gathers, scatters and atomics, by the engine and by the core."""
    i = tl.arange(0, B)
    at = tl.load(indices + i)
    tl.store(out + at, tl.load(x + at, mask=at % 3 != 0, other=-1.0), mask=at % 5 != 0)
    tl.atomic_add(sums + at % 4, 1.0)


@pytest.fixture(scope="module", params=["g++", "clang++"])
def device(request: pytest.FixtureRequest) -> Iterator[VirtualChip]:
    """The chip n1, for which this compiler compiles."""
    program = shutil.which(request.param)
    assert program, f"{request.param} is not installed (Debian: {request.param.rstrip('+')})"
    with running_on("n1", cpp={"command": npu_cpp_command(compiler=(program, *QUICK))}) as opened:
        yield opened


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def test_vector_add(device: VirtualChip) -> None:
    x = np.arange(5000, dtype=np.float32)
    out = put(device, np.zeros_like(x))
    compiled = add[(5,)](put(device, x), put(device, x), out, x.size, B=1024)
    np.testing.assert_array_equal(out.numpy(), 2 * x)
    assert list(compiled.asm)[-2:] == ["cpp", "so"]


@pytest.mark.parametrize("stages", [1, 2])
def test_matmul(device: VirtualChip, stages: int) -> None:
    m, n, k = 200, 136, 100
    a, b = numbers(m, k), numbers(k, n, seed=1)
    out = put(device, np.zeros((m, n), np.float16))
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    matmul[grid](
        put(device, a), put(device, b), out, m, n, k, k, n, n, BM=64, BN=64, BK=32, num_stages=stages
    )
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(device: VirtualChip, causal: bool) -> None:
    check_attention(device, causal)


def test_softmax(device: VirtualChip) -> None:
    x = np.random.default_rng(0).standard_normal((20, 781)).astype(np.float32)
    out = put(device, np.zeros_like(x))
    softmax[(20,)](put(device, x), out, 781, B=1024)
    weights = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), weights / weights.sum(1, keepdims=True), rtol=1e-5)


def test_explicit_offsets(device: VirtualChip) -> None:
    x, indices = np.arange(64, dtype=np.float32), np.random.default_rng(0).permutation(64).astype(np.int32)
    out, sums = put(device, np.zeros(64, np.float32)), put(device, np.zeros(4, np.float32))
    counted[(1,)](put(device, x), put(device, indices), out, sums, B=64)
    expected = np.where(np.arange(64) % 3 != 0, x, -1.0)
    np.testing.assert_array_equal(out.numpy(), np.where(np.arange(64) % 5 != 0, expected, 0.0))
    np.testing.assert_array_equal(sums.numpy(), 16.0)


# --- the text ------------------------------------------------------------------------------------------------

PRODUCT = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}


def made(header: CppHeader | None = None, command: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """The artefacts of a product for n1, up to C++, or with a command up to the binary."""
    stages = npu_cpp_pipeline(chips.load("n1"), command, header=header).after("ttir")
    text = ttir_text(one_product, PRODUCT, M=16, N=16, K=16)
    return (stages if command else stages.until("cpp")).run(text, {})


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(one_product.fn)
    return next(first + number for number, line in enumerate(lines) if text in line)


def test_the_text_is_readable() -> None:
    text = made()["cpp"]
    for line in ("tl.dot", "tl.store", "tl.load(a"):
        assert re.search(rf"// tpk\.npu_\w+, chip_kernels\.py:{line_of(line)}\n", text), line
    assert "#include <tpk_npu.h>" in text
    assert "transfer1.element_bytes = 2;" in text
    assert "TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, " in text
    assert "tpk_npu_wait(TPK_NPU_MATRIX, " in text
    assert not re.search(r"^\w+ tpk_npu_", text, re.M)  # the header declares them


def test_names_are_the_vendor_s() -> None:
    names = {"tpk_npu_dma": "x1_start", "tpk_npu_transfer": "x1_job", "TPK_NPU_FP16": "X1_HALF"}
    text = made(CppHeader("x1.h", names))["cpp"]
    assert "#include <x1.h>" in text
    assert "x1_job transfer1;" in text
    assert "x1_start(0, &transfer1, " in text
    assert "X1_HALF, X1_HALF, TPK_NPU_FP32, " in text
    assert not any(re.search(rf"\b{name}\b", text) for name in names)


def test_a_name_that_the_header_lacks_is_refused() -> None:
    with pytest.raises(OptionError, match="tpk_npu_dmaa"):
        CppHeader(names={"tpk_npu_dmaa": "x1_start"})


def test_errors_of_the_compiler_name_the_kernel_s_line(tmp_path: Path) -> None:
    """The vendor's header lacks an intrinsic."""
    own = (INCLUDE / "tpk_npu.h").read_text().replace("int64_t tpk_npu_matrix(", "int64_t not_this_one(")
    (tmp_path / "x1.h").write_text(own)
    with pytest.raises(CompilationError, match="tpk_npu_matrix") as caught:
        made(CppHeader("x1.h"), npu_cpp_command(tmp_path))
    assert caught.value.location is not None
    assert caught.value.location.line == line_of("tl.dot")


def test_loops_of_another_kind_include_no_header() -> None:
    stages = cpp_pipeline(CpuTarget.portable()).after("ttir").until("cpp")
    assert "tpk_npu" not in stages.run(ttir_text(one_product, PRODUCT, M=16, N=16, K=16), {})["cpp"]

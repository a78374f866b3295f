"""Products of transposed operands in the linalg form."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, artefacts, cpu_pipeline, linalg_stage
from triton_porting_kit.compiler.summary import MULTIPLY_ADDS, summarised
from triton_porting_kit.driver import DeviceArray


@triton.jit
def turned(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if FIRST:
        x = tl.trans(tl.load(a + k[:, None] * M + m[None, :]))
    else:
        x = tl.load(a + m[:, None] * K + k[None, :])
    if SECOND:
        y = tl.trans(tl.load(b + n[:, None] * K + k[None, :]))
    else:
        y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def turned_batch(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + (i[:, None, None] * K + k[None, :, None]) * M + m[None, None, :])
    y = tl.load(b + (i[:, None, None] * N + n[None, :, None]) * K + k[None, None, :])
    total = tl.dot(tl.permute(x, (0, 2, 1)), tl.permute(y, (0, 2, 1)), input_precision="ieee")
    tl.store(c + (i[:, None, None] * M + m[None, :, None]) * N + n[None, None, :], total)


@triton.jit
def read_again(a, c, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, tl.trans(x), tl.trans(x).to(tl.float32), input_precision="ieee"))


SIZES = {"M": 16, "N": 64, "K": 32}


def form(kernel: Any, convention: str, **constexprs: int) -> tuple[str, str]:
    """The structured form of a kernel, and its linalg form."""
    kinds = {name: f"*{'fp32' if name == 'c' else 'fp16'}" for name in kernel.arg_names if name.islower()}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = str(front.run(ttir_text(kernel, kinds, **constexprs), {})["structured"])
    return structured, str(linalg_stage(convention).run(structured, {}))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("convention", ["triton-shared", "iree"])
def test_a_product_reads_transposed_operands(convention: str, first: bool, second: bool) -> None:
    source, text = form(turned, convention, **SIZES, FIRST=first, SECOND=second)
    shapes = ["32x16" if first else "16x32", "64x32" if second else "32x64"]
    pattern = r"linalg\.matmul.*?: \(?(?:tensor<(\w+)xf16>), tensor<(\w+)xf16>"
    assert re.findall(pattern, text, re.S) == [tuple(shapes)]
    assert "linalg.transpose" not in text
    found = summarised(artefacts.parse_structured(source), artefacts.parse_mlir(text), "linalg")
    assert found.total(MULTIPLY_ADDS) == found.total(MULTIPLY_ADDS, "linalg.matmul") == 16 * 64 * 32


def test_a_compiler_without_indexing_maps_gets_transposes() -> None:
    _, text = form(turned, "ascend", **SIZES, FIRST=True, SECOND=True)
    assert text.count('"linalg.transpose"') == 2


def test_a_transposed_tensor_that_is_read_again_stays() -> None:
    _, text = form(read_again, "triton-shared", M=16)
    assert text.count("linalg.transpose") == 1
    assert "linalg.matmul indexing_maps" in text


def launched(kernel: Any, a: Any, b: Any, shape: tuple[int, ...], **constexprs: int) -> tuple[Any, str]:
    from running import device

    arrays = [DeviceArray.from_numpy(each, device()) for each in (a, b, np.full(shape, np.nan, np.float32))]
    compiled = kernel[(1,)](*arrays, **constexprs)
    return arrays[2].numpy(), compiled.asm["linalg"]


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (True, True)])
def test_numbers(first: bool, second: bool) -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((16, 32), (32, 64)))
    given = [np.ascontiguousarray(each.T if turn else each) for each, turn in ((a, first), (b, second))]
    found, text = launched(turned, *given, (16, 64), **SIZES, FIRST=first, SECOND=second)
    assert (found == a @ b).all()
    assert "linalg.transpose" not in text


@pytest.mark.usefixtures("through_linalg")
def test_numbers_of_batches() -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((2, 32, 16), (2, 64, 32)))
    found, text = launched(turned_batch, a, b, (2, 16, 64), B=2, **SIZES)
    assert (found == a.transpose(0, 2, 1) @ b.transpose(0, 2, 1)).all()
    assert "linalg.batch_matmul indexing_maps" in text
    assert "linalg.transpose" not in text

"""What is fetched for later trips of a loop, and where nothing is. Results do not depend on it."""

from __future__ import annotations

from typing import Any

import native_functions
import pytest
import triton
import triton.language as tl

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops import ahead

SIGNATURE = {"A": "*bf16", "B": "*bf16", "C": "*fp32", "count": "i32", "pitch": "i32"}
SHAPES = [(1, 64, 32), (16, 16, 16), (32, 32, 32), (64, 64, 32), (128, 128, 128), (32, 128, 64)]
X86 = CpuTarget.named("znver4")


@triton.jit
def products(A, B, C, count, pitch, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a_at = A + m * pitch + k[None, :]
    b_at = B + k[:, None] + n * pitch if FORM == "columns" else B + k[:, None] * pitch + n
    total = tl.zeros((M, N), tl.float32)
    for i in range(count):
        b = tl.load(b_at)
        if FORM == "computed":
            b = b * 2
        total = tl.dot(tl.load(a_at), b, total)
        a_at += K
        if FORM == "columns":
            b_at += K
        elif FORM == "squares":
            b_at += i * pitch
        else:
            b_at += K * pitch
    tl.store(C + m * N + n, total)


def fetches(form: str, shape: tuple[int, int, int] = (64, 64, 32), target: CpuTarget = X86) -> int:
    m, n, k = shape
    loops: Any = native_functions.loops_of(products, SIGNATURE, target, FORM=form, M=m, N=n, K=k)
    return int(loops.text.count("llvm.intr.prefetch"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_step_fetches_a_few_lines(shape: tuple[int, int, int]) -> None:
    assert 1 <= fetches("rows", shape) <= ahead.MOST


@pytest.mark.parametrize("form", ["columns", "computed", "squares"])
def test_other_operands_are_not_fetched(form: str) -> None:
    assert fetches(form) == 0


@pytest.mark.parametrize(
    "target",
    [CpuTarget.portable(64), CpuTarget.named("neoverse-v1"), CpuTarget.named("sapphirerapids")],
    ids=["c++", "arm", "matrix registers"],
)
def test_other_processors_are_left_to_themselves(target: CpuTarget) -> None:
    assert fetches("rows", target=target) == 0


def test_fetching_is_an_instruction_of_the_inner_loop() -> None:
    loops = native_functions.loops_of(products, SIGNATURE, X86, FORM="rows", M=64, N=64, K=32)
    text = codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), X86)
    start = text.index("prefetcht1")
    assert "vdpbf16ps" in text[text.rindex(":\n", 0, start) : text.index("\tj", start)]

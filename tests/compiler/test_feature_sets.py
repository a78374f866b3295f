"""Kernels for CPUs that lack one of the features in the table: LLVM selects all their instructions, and calls no
function but that of a multiply-add."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.binaries import elf
from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, cpus

FEWER = [
    (cpu, name)
    for cpu in ("sapphirerapids", "znver5")
    for name in sorted(cpus.NAMED["x86_64"][cpu] | {"sse3", "ssse3", "sse4.1", "sse4.2"})
]


@triton.jit
def weights(a, b, halves, rounded, flags, wide, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    total = tl.dot(x, y)
    e = tl.exp(total - tl.max(total, 1)[:, None])
    e = e / tl.sum(e, 1)[:, None]
    place = m[:, None] * N + n[None, :]
    tl.store(halves + place, e.to(tl.float16))
    tl.store(rounded + place, tl.maximum(e, tl.load(halves + place).to(tl.float32)).to(tl.bfloat16))
    tl.store(flags + m, tl.flip(tl.full((M,), 1, tl.int1), 0))
    tl.store(
        wide + n, tl.load(wide + n).to(tl.uint64, bitcast=True).to(tl.float64).to(tl.int64, bitcast=True)
    )


@pytest.fixture(scope="module")
def ttir() -> str:
    signature = {
        "a": "*bf16",
        "b": "*bf16",
        "halves": "*fp16",
        "rounded": "*bf16",
        "flags": "*i1",
        "wide": "*i64",
    }
    return ttir_text(weights, signature, M=16, N=8, K=32)


@pytest.mark.parametrize(("cpu", "name"), FEWER)
def test_without_a_feature(cpu: str, name: str, ttir: str) -> None:
    target = CpuTarget.named(cpu).with_features(f"-{name}")
    code = elf.read_object(cpu_pipeline(target).after("ttir").run(ttir, {})["obj"])
    called = {symbol.name for symbol in code.symbols if symbol.name and not symbol.section}
    assert called == (set() if "fma" in target.features else {"fmaf"})

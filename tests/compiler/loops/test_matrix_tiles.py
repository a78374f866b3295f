"""The AMX code of dots. Its results are those of the dots in `test_semantics_dots`, on a CPU that has AMX."""

from __future__ import annotations

import re

import native_functions
import pytest
import triton
import triton.language as tl

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops import matrix_tiles

AMX = CpuTarget.named("sapphirerapids")
SIGNATURE = {"a": "*bf16", "b": "*bf16", "c": "*fp32", "count": "i32"}


@triton.jit
def products(a, b, c, count, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for i in range(count):
        left = tl.load(a + i * M * K + m * K + k[None, :])
        right = tl.load(b + i * K * N + k[:, None] * N + n)
        total = tl.dot(left, right, total)
    tl.store(c + m * N + n, total)


def assembly(m: int, n: int, k: int, target: CpuTarget = AMX) -> str:
    loops = native_functions.loops_of(products, SIGNATURE, target, M=m, N=n, K=k)
    return codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), target)


@pytest.mark.parametrize(
    ("shape", "down", "across"),
    [((16, 16, 32), 1, 1), ((16, 64, 32), 1, 2), ((32, 16, 128), 2, 1), ((64, 128, 64), 2, 2)],
)
def test_a_block_of_tiles_stays_in_registers(shape: tuple[int, int, int], down: int, across: int) -> None:
    text = assembly(*shape)
    count = {name: len(re.findall(rf"\t{name}\t", text)) for name in ("tdpbf16ps", "tileloadd", "tilestored")}
    sums = down * across
    # Spilled tiles would add loads and stores.
    assert count == {"tdpbf16ps": sums, "tileloadd": sums + down + across, "tilestored": sums}
    assert text.count("ldtilecfg") == 1


@pytest.mark.parametrize(
    ("shape", "target"),
    [((8, 16, 32), AMX), ((16, 16, 16), AMX), ((32, 32, 32), AMX.with_features("-amx-tile"))],
    ids=["rows", "depth", "without"],
)
def test_what_does_not_fit_multiplies_in_pairs(shape: tuple[int, int, int], target: CpuTarget) -> None:
    assert not matrix_tiles.fits(target, *shape)
    text = assembly(*shape, target)
    assert "tdpbf16ps" not in text
    assert "vdpbf16ps" in text

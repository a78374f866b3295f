"""Products of microscaling formats as bf16: their results, and where the CPU multiplies bf16."""

from __future__ import annotations

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, empty, from_float64, get, put

from triton_porting_kit.compiler import CpuTarget, codegen

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
GROUP = 32
M, N, K = 32, 64, 64
SIGNATURE = {"X": "*bf16", "W": "*u8", "S": "*u8", "O": "*fp32", "rows": "i32", "count": "i32"}
AMX = CpuTarget.named("sapphirerapids")


@triton.jit
def scaled(
    X, W, S, O, rows, count,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, OTHER: tl.constexpr,
):  # fmt: skip
    """Rows of X by columns of W in e2m1, which lie across memory, over `count` parts of K."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    k, pairs, groups = tl.arange(0, K), tl.arange(0, K // 2), tl.arange(0, K // 32)
    depth = count * K
    total = tl.zeros((M, N), dtype=tl.float32)
    other = 0.0
    for i in range(count):
        x = tl.load(X + m[:, None] * depth + i * K + k[None, :], mask=m[:, None] < rows, other=0.0)
        w = tl.load(W + n[None, :] * (depth // 2) + i * (K // 2) + pairs[:, None])
        s = tl.load(S + n[:, None] * (depth // 32) + i * (K // 32) + groups[None, :])
        total = tl.dot_scaled(x, None, FORMAT, w, s, "e2m1", total)
        if OTHER:
            other += tl.sum(x.to(tl.float32))
    tl.store(O + m[:, None] * N + n[None, :], total + other)


def numbers(kind: str, count: int) -> tuple[Array, Array, Array]:
    """Rows of X, bytes of W and scales, such that all sums are exact."""
    random = np.random.default_rng(7)
    x = from_float64(random.integers(-8, 9, (M, count * K)).astype(np.float64), KINDS[kind])
    w = random.integers(0, 256, (N, count * K // 2)).astype(np.uint8)
    return x, w, random.integers(125, 130, (N, count * K // GROUP)).astype(np.uint8)


@pytest.mark.parametrize("other", [False, True], ids=["alone", "read twice"])
@pytest.mark.parametrize("rows", [M, M - 5])
@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_weights_are_multiplied_by_their_scales(kind: str, count: int, rows: int, other: bool) -> None:
    x, w, scales = numbers(kind, count)
    out = empty((M, N), "fp32")
    put_x = put(x, kind)
    scaled[(1,)](put_x, put(w, "u8"), put(scales, "u8"), out, rows, count, M, N, K, FORMAT=kind, OTHER=other)
    seen = x.astype(np.float64)
    seen[rows:] = 0
    weights = E2M1[np.stack([w & 15, w >> 4], -1)].reshape(N, -1)
    weights *= np.repeat(2.0 ** (scales.astype(np.float64) - 127), GROUP, 1)
    np.testing.assert_array_equal(get(out), seen @ weights.T + (seen.sum() if other else 0))


def loops(target: CpuTarget, x: str, name: str, *, other: bool = False) -> str:
    signature = {**SIGNATURE, "X": f"*{x}"}
    constants = {"M": M, "N": N, "K": K, "FORMAT": name, "OTHER": other}
    return native_functions.loops_of(scaled, signature, target, **constants).text


@pytest.mark.parametrize(
    ("target", "x", "name", "other", "instruction"),
    [
        (AMX, "bf16", "bf16", False, "\ttdpbf16ps\t"),
        (AMX, "fp8e5", "e5m2", False, "\ttdpbf16ps\t"),
        (AMX, "fp16", "fp16", False, "\tvfmadd231ps\t"),  # 11 significant bits
        (AMX, "bf16", "bf16", True, "\tvfmadd231ps\t"),  # the sum reads float32 as well
        (CpuTarget.named("znver4"), "bf16", "bf16", False, "\tvdpbf16ps\t"),
        (CpuTarget.named("haswell"), "bf16", "bf16", False, "\tvfmadd231ps\t"),
    ],
    ids=["tiles", "minifloats", "fp16", "read twice", "pairs", "without"],
)
def test_factors_are_multiplied_as_bf16(
    target: CpuTarget, x: str, name: str, other: bool, instruction: str
) -> None:
    text = codegen.emit_assembly(codegen.lower_to_llvm_ir(loops(target, x, name, other=other)), target)
    products = [each for each in ("\ttdpbf16ps\t", "\tvdpbf16ps\t", "\tvfmadd231ps\t") if each in text]
    assert products == [instruction]


def test_weights_are_read_once_and_transposed() -> None:
    found = loops(AMX, "bf16", "bf16")
    # Only the scales are loaded one by one, once for a tile.
    assert found.count("gather") == 1
    assert found.count("vector.shuffle") > 0

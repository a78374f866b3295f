"""The AMX code of dots. Its results are those of the dots in `test_semantics_dots`, on a CPU that has AMX."""

from __future__ import annotations

import re

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, empty, from_float64, get, put

from triton_porting_kit.compiler import CpuTarget, codegen

AMX = CpuTarget.named("sapphirerapids")
SIGNATURE = {"a": "*bf16", "b": "*bf16", "c": "*fp32", "count": "i32"}
BYTES = {"a": "*i8", "b": "*i8", "c": "*i32", "count": "i32"}


@triton.jit
def products(a, b, c, count, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), c.dtype.element_ty)
    for i in range(count):
        left = tl.load(a + i * M * K + m * K + k[None, :])
        right = tl.load(b + i * K * N + k[:, None] * N + n)
        total = tl.dot(left, right, total, out_dtype=c.dtype.element_ty)
    tl.store(c + m * N + n, total)


@triton.jit
def rounded(a, b, c, count, low, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, NEAREST: tl.constexpr):
    """a by b over `count` parts of K, without the first `low` rows, rounded to bf16."""
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for i in range(count):
        left = tl.load(a + m * (count * K) + i * K + k[None, :])
        right = tl.load(b + (i * K + k[:, None]) * N + n)
        total = tl.dot(left, right, total)
    rounding: tl.constexpr = "rtne" if NEAREST else "rtz"
    tl.store(c + m * N + n, total.to(tl.bfloat16, fp_downcast_rounding=rounding), mask=m >= low)


@triton.jit
def rounded_factor(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, NEAREST: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    rounding: tl.constexpr = "rtne" if NEAREST else "rtz"
    left = tl.load(a + m * K + k[None, :]).to(tl.bfloat16, fp_downcast_rounding=rounding)
    tl.store(c + m * N + n, tl.dot(left, tl.load(b + k[:, None] * N + n)))


def assembly(
    shape: tuple[int, int, int], target: CpuTarget = AMX, signature: dict[str, str] = SIGNATURE
) -> str:
    m, n, k = shape
    loops = native_functions.loops_of(products, signature, target, M=m, N=n, K=k)
    return codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), target)


@pytest.mark.parametrize(
    ("shape", "signature", "instruction"),
    [
        ((16, 16, 32), SIGNATURE, "tdpbf16ps"),
        ((16, 64, 32), SIGNATURE, "tdpbf16ps"),
        ((32, 16, 128), SIGNATURE, "tdpbf16ps"),
        ((64, 128, 64), SIGNATURE, "tdpbf16ps"),
        ((64, 128, 64), BYTES, "tdpbssd"),
    ],
)
def test_a_block_of_tiles_stays_in_registers(
    shape: tuple[int, int, int], signature: dict[str, str], instruction: str
) -> None:
    text = assembly(shape, signature=signature)
    names = (instruction, "tileloadd(?:t1)?", "tilezero", "tilestored")
    count = {name: len(re.findall(rf"\t{name}\t", text)) for name in names}
    down, across = (2 if size > 16 else 1 for size in shape[:2])
    sums = down * across
    # Spilled tiles would add loads and stores.
    assert count == dict(zip(names, (sums, sums + down + across, sums, sums), strict=True))
    assert text.count("ldtilecfg") == 1


@pytest.mark.parametrize(
    ("shape", "streamed"),
    [
        ((32, 64, 32), 2),  # 32 rows of A and 32 columns of B, for 512 elements of K: 64 KiB
        ((16, 64, 32), 0),  # 16 rows: all 48 KiB of L1
    ],
)
def test_a_left_factor_that_l1_cannot_keep_does_not_replace_the_right_one(
    shape: tuple[int, int, int], streamed: int
) -> None:
    assert len(re.findall(r"\ttileloaddt1\t", assembly(shape))) == streamed


@pytest.mark.parametrize(
    ("shape", "target"),
    [((8, 16, 32), AMX), ((16, 16, 16), AMX), ((32, 32, 32), AMX.with_features("-amx-tile"))],
    ids=["rows", "depth", "without"],
)
def test_what_does_not_fit_multiplies_floats(shape: tuple[int, int, int], target: CpuTarget) -> None:
    text = assembly(shape, target)
    assert "dpbf16ps" not in text  # pairs are slower than floats on this CPU
    assert "vfmadd231ps" in text


@pytest.mark.parametrize(
    ("shape", "target"),
    [((16, 16, 32), AMX), ((32, 32, 64), AMX.with_features("-amx-int8"))],
    ids=["depth", "without"],
)
def test_bytes_that_do_not_fit_multiply_in_quads(shape: tuple[int, int, int], target: CpuTarget) -> None:
    text = assembly(shape, target, BYTES)
    assert "tdpbssd" not in text
    assert "vpdpbusd" in text


def bf16(values: Array) -> Array:
    return from_float64(values.astype(np.float64), KINDS["bf16"])


def cut(values: Array, nearest: bool) -> Array:
    """float32 rounded to bf16, to nearest even or toward zero, by its bits; as float32."""
    bits = values.astype(np.float32).view(np.uint32)
    if nearest:
        bits = np.where(np.isnan(values), bits, bits + 0x7FFF + (bits >> 16 & 1))
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("low", [0, 3])
@pytest.mark.parametrize("nearest", [True, False])
def test_sums_are_rounded_once(nearest: bool, low: int) -> None:
    m, n, k, count = 32, 32, 64, 3
    random = np.random.default_rng(9)
    a = random.integers(-15, 16, (m, count * k)).astype(np.float32)
    b = random.integers(-15, 16, (count * k, n)).astype(np.float32)
    a[4, 0], a[5, 0], a[6, 0] = np.inf, np.nan, 2.0**120
    b[0, 0], b[0, 1] = 2.0**-120, 2.0**-126
    out = empty((m, n), "bf16")
    rounded[(1,)](put(bf16(a), "bf16"), put(bf16(b), "bf16"), out, count, low, m, n, k, NEAREST=nearest)
    with np.errstate(invalid="ignore"):
        exact = cut((a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32), nearest)
    np.testing.assert_array_equal(get(out)[low:], exact[low:])


@pytest.mark.parametrize("nearest", [True, False])
def test_a_factor_is_rounded_as_it_is_asked(nearest: bool) -> None:
    size = 32
    a = np.random.default_rng(10).standard_normal((size, size)).astype(np.float32)
    out = empty((size, size), "fp32")
    rounded_factor[(1,)](
        put(a, "fp32"), put(bf16(np.eye(size)), "bf16"), out, size, size, size, NEAREST=nearest
    )
    np.testing.assert_array_equal(get(out), cut(a, nearest))


def test_sums_of_tiles_are_rounded_by_one_instruction() -> None:
    signature = {"a": "*bf16", "b": "*bf16", "c": "*bf16", "count": "i32", "low": "i32"}
    for nearest in (True, False):
        loops = native_functions.loops_of(rounded, signature, AMX, M=32, N=32, K=64, NEAREST=nearest)
        text = codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), AMX)
        assert ("vcvtneps2bf16" in text) == nearest

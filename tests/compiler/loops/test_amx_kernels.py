"""The AMX code of dots. Its results are those of the dots in `test_semantics_dots`, on a CPU that has AMX."""

from __future__ import annotations

import re

import native_functions
import pytest
import triton
import triton.language as tl

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
def test_what_does_not_fit_multiplies_in_pairs(shape: tuple[int, int, int], target: CpuTarget) -> None:
    text = assembly(shape, target)
    assert "tdpbf16ps" not in text
    assert "vdpbf16ps" in text


@pytest.mark.parametrize(
    ("shape", "target"),
    [((16, 16, 32), AMX), ((32, 32, 64), AMX.with_features("-amx-int8"))],
    ids=["depth", "without"],
)
def test_bytes_that_do_not_fit_multiply_in_quads(shape: tuple[int, int, int], target: CpuTarget) -> None:
    text = assembly(shape, target, BYTES)
    assert "tdpbssd" not in text
    assert "vpdpbusd" in text

"""Which dots of a loop wait for later iterations, and what that takes. What they give: `test_semantics_dot_loops`."""

from __future__ import annotations

import re
from typing import Any

import native_functions
import pytest
import sample_loops
import triton
import triton.language as tl

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.loops.matmul.register_blocking import unrolled
from triton_porting_kit.compiler.loops.matmul.strip_packing import ROWS
from triton_porting_kit.compiler.loops.tiles.scratch import Stack

TARGET = CpuTarget.named("cascadelake")
SIGNATURE = {"A": "*i8", "B": "*i8", "C": "*i32", "count": "i32", "pitch": "i32", "width": "i32"}
HALVES = SIGNATURE | {"A": "*fp16", "B": "*fp16", "C": "*fp32"}


@triton.jit
def products(
    A, B, C, count, pitch, width, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    if FORM == "columns":
        a_at = A + m + k[None, :] * pitch
        ahead = K * pitch
    else:
        a_at = A + m * pitch + k[None, :]
        ahead = K
    b_at = B + k[:, None] * width + n
    total = tl.zeros((M, N), SUMS)
    for i in range(count):
        if FORM == "masked":
            a = tl.load(a_at, mask=k[None, :] < pitch - i * K, other=0)
        else:
            a = tl.load(a_at)
        total = tl.dot(a, tl.load(b_at), total, input_precision="ieee", out_dtype=SUMS)
        if FORM == "writes":
            tl.store(C + i, i)
        if FORM == "seen":
            tl.store(C + m * N + n, total)
        a_at += ahead
        b_at += K * width
    tl.store(C + m * N + n, total)


def loops(form: str, m: int, n: int, k: int) -> Any:
    return native_functions.loops_of(products, SIGNATURE, TARGET, FORM=form, M=m, N=n, K=k, SUMS=tl.int32)


def scratch(form: str, m: int, n: int, k: int) -> int:
    """Bytes of it that are neither the sums nor kept for other programs."""
    return native_functions.scratch_of_a_program(loops(form, m, n, k)) - 4 * m * n


M, N, K = 32, 64, 32
ITERATIONS = TARGET.strip_bytes("i32") // (N * K)
BLOCK = 4 * ITERATIONS * K
"""Bytes of four rows of A, which are made positive before they are multiplied."""


def test_an_operand_in_rows_is_not_packed() -> None:
    """There is room for a block of A only; B is among what is kept."""
    assert scratch("rows", M, N, K) == Stack.ALIGNMENT + BLOCK


def test_other_operands_are_packed_side_by_side() -> None:
    for form in ("columns", "masked"):
        assert scratch(form, M, N, K) == ITERATIONS * M * K + BLOCK
    # Where it is not known what the loop writes, nothing of B is kept.
    assert scratch("writes", M, N, K) == ITERATIONS * (M + N) * K + BLOCK


def test_operands_in_columns_are_not_gathered() -> None:
    assert "gather" not in loops("columns", M, N, 2 * K).text
    floats = SIGNATURE | {"A": "*fp32", "B": "*fp32", "C": "*fp32"}
    shape = {"FORM": "columns", "M": M, "N": N, "K": K, "SUMS": tl.float32}
    assert "gather" not in native_functions.loops_of(products, floats, TARGET, **shape).text


def test_sums_that_are_seen_do_not_wait() -> None:
    """A is packed in each iteration, beside what makes sums of bytes too large. B is among what is kept."""
    assert scratch("seen", M, N, K) == M * K + 4 * N + 4 * K


@pytest.mark.parametrize(
    "shape", [(16, 16, 32), (128, 128, 32), (128, 64, 256), (16, 256, 64), (256, 16, 32)]
)
def test_panels_stay_in_the_caches(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    assert scratch("columns", m, n, k) <= 2 * max(TARGET.caches.panel_bytes, max(m, n) * k)
    strip = min(n, 64)
    assert scratch("rows", m, n, k) - Stack.ALIGNMENT <= max(TARGET.strip_bytes("i32") // strip, k) * n


@pytest.mark.parametrize("form", ["rows", "masked", "columns"])
def test_the_multiplication_is_there_once(form: str) -> None:
    """A step along K of four rows by four vectors; and two steps of the sums of B's four."""
    ir = codegen.lower_to_llvm_ir(loops(form, M, N, K).text)
    text = codegen.emit_assembly(ir, TARGET)
    assert len(re.findall(r"\tvpdpbusd\t", text)) <= 16 + 4 * 2


def test_a_block_of_rows_in_place_is_read_by_what_makes_it_positive() -> None:
    ir = codegen.lower_to_llvm_ir(loops("rows", M, N, K).text)
    text = codegen.emit_assembly(ir, TARGET)
    assert len(re.findall(r"\tvpxor[dq]?\t\(%r.*%[yz]mm", text)) == 4


def test_one_operand_for_both_sides() -> None:
    text = native_functions.loops_of(
        sample_loops.product, {"X": "*fp32", "O": "*fp32", "n": "i32"}, TARGET, B=32
    ).text
    assert text.count("math.fma") == unrolled(TARGET, 32) * 8 * 2


@pytest.mark.parametrize(
    ("cpu", "iterations", "kept"),
    [
        ("znver2", 8, 512),
        ("znver3", 8, 512),
        ("znver4", 6, 1024),
        ("znver5", 8, 1024),
        ("sapphirerapids", 8, 2048),
        ("sapphirerapids,-avx512f", 12, 2048),
        ("neoverse-v2", 16, 2048),
    ],
)
def test_blocks_follow_the_caches(cpu: str, iterations: int, kept: int) -> None:
    """So many iterations of 32 x 32 floats wait that a strip of B takes half of L1, or with AVX-512 24 of 32 or 32 of 48
    KiB; and as many KiB are kept as L2 has, in whole panels."""
    name, _, changes = cpu.partition(",")
    target = CpuTarget.named(name).with_features(changes)
    loops = native_functions.loops_of(
        sample_loops.product, {"X": "*fp32", "O": "*fp32", "n": "i32"}, target, B=32
    )
    of_a_program = native_functions.scratch_of_a_program(loops)
    tile = 4 * 32 * 32
    assert of_a_program == (1 + iterations) * tile
    all_kept = loops.scratch_bytes - loops.cleared_bytes - of_a_program
    assert (kept << 10) - iterations * tile < all_kept <= kept << 10


@pytest.mark.parametrize(
    ("cpu", "iterations"),
    [
        ("haswell", 2),
        ("znver2", 2),
        ("znver3", 2),
        ("znver4", 1),
        ("znver5", 2),
        ("sapphirerapids", 2),
        ("sapphirerapids,-avx512f", 4),
        ("neoverse-v2", 8),
    ],
)
def test_wider_blocks_follow_the_caches(cpu: str, iterations: int) -> None:
    """So many iterations of 64 x 64 floats wait: strips have 24 columns with AVX2, 64 with AVX-512, 16 with Neon."""
    name, _, changes = cpu.partition(",")
    target = CpuTarget.named(name).with_features(changes)
    loops = native_functions.loops_of(
        sample_loops.product, {"X": "*fp32", "O": "*fp32", "n": "i32"}, target, B=64
    )
    tile = 4 * 64 * 64
    assert native_functions.scratch_of_a_program(loops) == (1 + iterations) * tile


@pytest.mark.parametrize(("cpu", "rows"), [("znver3", ROWS), ("znver4", 1)])
def test_rows_of_a_part_of_a_cache_line_are_packed_together(cpu: str, rows: int) -> None:
    target = CpuTarget.named(cpu)
    floats = SIGNATURE | {"A": "*fp32", "B": "*fp32", "C": "*fp32"}
    shape = {"FORM": "rows", "M": M, "N": 2 * N, "K": K, "SUMS": tl.float32}
    text = native_functions.loops_of(products, floats, target, **shape).text
    moved = r"(?:%\w+ = llvm\.load [^\n]*xf32>|llvm\.store [^\n]*xf32>[^\n]*)"
    bodies = re.findall(r"scf\.for [^\n]*\{\n((?:(?!scf\.)[^\n]*\n)*?) *\}\n", text)
    copies = [re.findall(moved, body) for body in bodies]
    packing = [
        len(found) for found in copies if found and "llvm.load" in found[0] and "llvm.store" in found[1]
    ]
    assert packing[0] == 2 * rows


def test_an_iteration_that_fills_a_panel_alone_keeps_its_right_operand() -> None:
    """Columns of half floats are widened and packed in every iteration; what is on their right, once for all programs."""
    k = 1 << (TARGET.strip_bytes() // (N * 4)).bit_length()
    shape = {"FORM": "columns", "M": M, "N": N, "K": k, "SUMS": tl.float32}
    found = native_functions.loops_of(products, HALVES, TARGET, **shape)
    of_a_program = native_functions.scratch_of_a_program(found)
    assert of_a_program == 4 * (M * k + M * N)
    panel = 4 * k * N
    kept = found.scratch_bytes - found.cleared_bytes - of_a_program
    assert kept // panel == TARGET.caches.kept_bytes // panel


def test_half_floats_in_rows_are_widened_a_block_at_a_time() -> None:
    """With few strips of columns; else, all rows of the tile are."""
    for n, rows in ((N, 4), (4 * N, M)):
        found = native_functions.loops_of(
            products, HALVES, TARGET, FORM="rows", M=M, N=n, K=K, SUMS=tl.float32
        )
        depth = TARGET.strip_bytes() // (N * 4) // K * K
        depth = depth if rows == 4 else min(depth, TARGET.caches.panel_bytes // (4 * n))
        nothing = Stack.ALIGNMENT if rows == 4 else 0  # is packed
        assert native_functions.scratch_of_a_program(found) == 4 * (rows * depth + M * n) + nothing

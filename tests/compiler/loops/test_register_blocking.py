"""Register blocks of dots."""

from __future__ import annotations

from itertools import accumulate

import pytest

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.matmul.register_blocking import blocking, unrolled

WIDE = CpuTarget("x86_64-unknown-linux-gnu", "skylake-avx512", frozenset({"avx", "avx2", "avx512f"}))
NARROW = CpuTarget("x86_64-unknown-linux-gnu", "haswell", frozenset({"avx", "avx2", "fma"}))
PLAIN = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", frozenset())


@pytest.mark.parametrize("target", [WIDE, NARROW, PLAIN], ids=["avx512", "avx2", "sse2"])
@pytest.mark.parametrize("element", ["f32", "f64", "i32"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 4), (16, 16), (64, 128), (128, 2), (1, 256), (256, 1)])
def test_blocks_tile_the_result_and_fit_the_registers(
    m: int, n: int, element: str, target: CpuTarget
) -> None:
    block = blocking(target, m, n, element)
    assert n % block.strip == 0
    assert block.lanes * types.byte_size(element) <= target.vector_bytes
    assert block.rows * block.vectors + block.vectors + 1 <= target.vector_registers
    rows = [
        (first, band.block.rows)
        for band in block.bands(m)
        for first in range(band.first, band.end, band.block.rows)
    ]
    assert [first for first, _ in rows] == list(accumulate((size for _, size in rows[:-1]), initial=0))
    assert rows[-1][0] + rows[-1][1] == m
    last = block.bands(m)[-1]
    assert last.before + last.blocks == len(rows)


@pytest.mark.parametrize(
    ("m", "sixes", "fours"), [(16, 2, 1), (32, 4, 2), (64, 10, 1), (128, 20, 2), (256, 42, 1)]
)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_sixteen_registers_hold_six_rows_or_four(m: int, sixes: int, fours: int, element: str) -> None:
    bands = blocking(NARROW, m, 128, element).bands(m)
    assert [(band.block.rows, band.blocks) for band in bands] == [(6, sixes), (4, fours)]


@pytest.mark.parametrize(
    ("target", "depth", "steps"),
    [
        (WIDE, 32, 4),
        (WIDE, 2, 2),
        (WIDE, 7, 1),
        (NARROW, 32, 1),
        (PLAIN, 32, 1),
        (CpuTarget.portable(64), 32, 1),
    ],
    ids=["avx512", "avx512 of two steps", "avx512 of seven", "avx2", "sse2", "c++"],
)
def test_steps_without_a_branch(target: CpuTarget, depth: int, steps: int) -> None:
    assert unrolled(target, depth) == steps

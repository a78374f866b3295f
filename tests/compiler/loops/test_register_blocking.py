"""Register blocks of dots."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.matmul.register_blocking import blocking, unrolled

WIDE = CpuTarget("x86_64-unknown-linux-gnu", "skylake-avx512", frozenset({"avx", "avx2", "avx512f"}))
NARROW = CpuTarget("x86_64-unknown-linux-gnu", "haswell", frozenset({"avx", "avx2", "fma"}))
PLAIN = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", frozenset())


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("target", [WIDE, NARROW, PLAIN], ids=["avx512", "avx2", "sse2"])
@pytest.mark.parametrize("element", ["f32", "f64", "i32"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 4), (16, 16), (64, 128), (128, 2), (1, 256), (256, 1)])
def test_blocks_tile_the_result_and_fit_the_registers(
    m: int, n: int, element: str, target: CpuTarget, several: bool
) -> None:
    block = blocking(target, m, n, element, several=several)
    assert block.lanes * types.byte_size(element) <= target.vector_bytes
    assert block.rows * block.vectors + block.vectors + 1 <= target.vector_registers
    regions, covered = block.regions(m, n), np.zeros((m, n), np.int64)
    assert {region.columns.size % block.packed_strip for region in regions} == {0}
    for region in regions:
        for row in range(0, region.downs * region.block.rows, region.block.rows):
            for column in range(*region.columns):
                covered[row : row + region.block.rows, column : column + region.block.strip] += 1
    assert (covered == 1).all()
    assert [region.before for region in regions] == list(
        accumulate((region.blocks for region in regions[:-1]), initial=0)
    )


@pytest.mark.parametrize(
    ("m", "n", "blocks"),
    [
        (16, 16, [(4, 16, 4)]),
        (32, 32, [(4, 16, 16)]),
        (64, 64, [(4, 24, 32), (4, 16, 16)]),
        (128, 128, [(4, 24, 128), (4, 16, 64)]),
        (8, 128, [(4, 24, 8), (4, 16, 4)]),
        (2, 128, [(2, 16, 8)]),
    ],
)
def test_twelve_accumulators_of_sixteen_registers(m: int, n: int, blocks: list[tuple[int, int, int]]) -> None:
    regions = blocking(NARROW, m, n, "f32", several=True).regions(m, n)
    assert [(region.block.rows, region.block.strip, region.blocks) for region in regions] == blocks
    assert len(blocking(NARROW, m, n, "f32").regions(m, n)) == 1


@pytest.mark.parametrize(
    ("target", "depth", "steps"),
    [
        (WIDE, 32, 4),
        (WIDE, 2, 2),
        (WIDE, 7, 1),
        (NARROW, 32, 2),
        (PLAIN, 32, 1),
        (CpuTarget.portable(64), 32, 1),
    ],
    ids=["avx512", "avx512 of two steps", "avx512 of seven", "avx2", "sse2", "c++"],
)
def test_steps_without_a_branch(target: CpuTarget, depth: int, steps: int) -> None:
    assert unrolled(target, depth) == steps

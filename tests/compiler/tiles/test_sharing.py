"""Where a memory is too small for buffers beside all that vector code keeps, both share it, at different times."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import triton
import triton.language as tl
from chip_backend import put, running_on

from triton_porting_kit import chips
from triton_porting_kit.cli.compile import structured
from triton_porting_kit.compiler import npu_pipeline
from triton_porting_kit.compiler.loops.ir.program import Block, Operation, Program
from triton_porting_kit.compiler.tiles.errors import OutOfOnChipMemory
from triton_porting_kit.compiler.tiles.lifetimes import Lifetime
from triton_porting_kit.compiler.tiles.place import arranged
from triton_porting_kit.compiler.tiles.plan import Plan
from triton_porting_kit.compiler.tiles.sharing import share

M, N, K = 64, 256, 16
TILE = 4 * M * N
"""Bytes of the result, of which the loop keeps two: what it carries, and what an iteration makes of it."""


@triton.jit
def last_product(A, B, OUT, first, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    found = tl.full((M, N), 0, tl.float32)
    for number in range(n):
        a = tl.load(A + (number * M + rows) * K + inner[None, :])
        b = tl.load(B + (number * K + inner[:, None]) * N + columns)
        if number >= first:
            found = tl.dot(a, b)
    tl.store(OUT + rows * N + columns, found)


def chip_of(size: int, folder: Path) -> str:
    """The path of a chip like n1 whose vector memory has `size` bytes."""
    text = chips.CHIPS["n1"].read_text(encoding="utf-8")
    assert text.count("bytes = 524288") == 1
    path = folder / f"n1_{size}.toml"
    path.write_text(text.replace("bytes = 524288", f"bytes = {size}"), encoding="utf-8")
    return str(path)


def form() -> str:
    constants = (f"M={M}", f"N={N}", f"K={K}")
    given = "*fp32:16, *fp32:16, *fp32:16, i32, i32"
    return str(structured(last_product, given, constants, SimpleNamespace(last_product=last_product)))


@pytest.mark.parametrize("size", [2 * TILE, 3 * TILE])
def test_results_are_right(size: int, tmp_path: Path) -> None:
    a, b = (np.random.default_rng(4).integers(-9, 9, (3, *shape)) for shape in ((M, K), (K, N)))
    last_product.device_caches.clear()
    with running_on(chip_of(size, tmp_path)) as device:
        operands = [put(device, each.astype(np.float32)) for each in (a, b)]
        for first in (0, 2, 3):
            out = put(device, np.full((M, N), -1, np.float32))
            last_product[1,](*operands, out, first, 3, M, N, K)
            np.testing.assert_array_equal(out.numpy(), a[2] @ b[2] if first < 3 else np.zeros((M, N)))
    last_product.device_caches.clear()


@pytest.mark.parametrize(("size", "address"), [(2 * TILE, TILE), (3 * TILE, 0)], ids=["shared", "behind"])
def test_the_buffer_moves_only_where_it_has_to(size: int, address: int, tmp_path: Path) -> None:
    """Stages that read the text of the one before come to the same code."""
    stages = npu_pipeline(chips.load(chip_of(size, tmp_path))).after("structured")
    made = stages.until("loops").run(form(), {})
    assert re.findall(r'address = (\d+) : i64.* memory = "vector"', str(made["placed"])) == [str(address)]
    for stage in ("tiles", "placed"):
        again = stages.after(stage).until("loops").run(str(made[stage]), {})
        assert str(again["loops"]) == str(made["loops"])


@pytest.mark.parametrize("size", [2 * TILE - 64, TILE + 64], ids=["stack", "buffers"])
def test_what_does_not_fit_either_way_is_refused(size: int, tmp_path: Path) -> None:
    stages = npu_pipeline(chips.load(chip_of(size, tmp_path))).after("structured")
    with pytest.raises(OutOfOnChipMemory, match=f"bytes of vector, which has {size:,}"):
        stages.run(form(), {})


def test_a_buffer_lies_no_lower_than_it_may() -> None:
    low, high = (Lifetime(None, "vector", 100, "load", 1, first, first + 1) for first in (0, 2))
    placed = arranged([low, high], 64, lambda life: 65 if life is high else 0)
    assert [(each.lifetime, each.address) for each in placed] == [(low, 0), (high, 128)]


@pytest.mark.parametrize(("size", "fits"), [(524288, True), (524289, False)])
def test_the_stack_has_to_fit_by_itself(size: int, fits: bool) -> None:
    block = Block([])
    block.operations.append(Operation("test.kept", [], [], [], block, None, 0))
    plan = Plan(Program("kernel", block, [], [], None))
    assert share(plan, chips.load("n1"), {block.operations[0]: size}) is fits
    assert plan.shares is fits

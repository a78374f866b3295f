"""What vector code keeps fits in the memory of a core, whatever machine plays the chip."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.chips.description import Route
from triton_porting_kit.compiler import CpuTarget, npu_pipeline
from triton_porting_kit.compiler.caches import Caches
from triton_porting_kit.compiler.tiles.memories import caches_of_core, vector_memory
from triton_porting_kit.kernels.rows import sort_kernel


@triton.jit
def product(A, B, O, SIZE: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr):
    rows, columns = tl.arange(0, SIZE)[:, None], tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((SIZE, COLUMNS), tl.float64)
    for k in range(0, SIZE, STEP):
        a = tl.load(A + rows * SIZE + k + tl.arange(0, STEP)[None, :])
        b = tl.load(B + (k + tl.arange(0, STEP)[:, None]) * COLUMNS + columns)
        total = tl.dot(a, b, total, out_dtype=tl.float64)
    tl.store(O + rows * COLUMNS + columns, total)


KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "product": (
        product,
        {"A": "*fp64", "B": "*fp64", "O": "*fp64"},
        {"SIZE": 128, "COLUMNS": 16, "STEP": 32},
    ),
    "sort": (
        sort_kernel,
        {"x_ptr": "*fp32", "out_ptr": "*fp32", "n_cols": "i32", "padding": "fp32"},
        {"BLOCK": 1024, "DESCENDING": False},
    ),
}
"""No unit of the chips multiplies float64, and a sort has some fifty steps, each of which makes a tensor."""


@pytest.mark.parametrize("chip", ["ascend910b", "single"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("caches", ["32K,512K", "48K,2M"])
def test_vector_code_fits(chip: str, name: str, caches: str) -> None:
    kernel, signature, constants = KERNELS[name]
    core = replace(CpuTarget.named("x86-64-v4"), caches=Caches.parse(caches))
    stages = npu_pipeline(chips.load(chip), core=core).after("ttir").until("loops")
    assert "__scratch_bytes" in str(stages.run(ttir_text(kernel, signature, **constants), {})["loops"])


@pytest.mark.parametrize("chip", ["n1", "ascend910b", "single"])
def test_the_caches_of_a_core_are_its_memory(chip: str) -> None:
    description = chips.load(chip)
    assert caches_of_core(description).l2 == description.local_bytes(vector_memory(description))


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        (["global -> scratchpad", "scratchpad -> global"], "scratchpad"),
        (["global -> scratchpad", "global -> sums", "sums -> global"], "sums"),
        (["global -> scratchpad", "scratchpad -> global", "global -> sums", "sums -> global"], "scratchpad"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_vector_code_works_in_the_largest_memory_that_is_connected(
    routes: list[str], expected: str, first: bool
) -> None:
    """Wherever it stands in the description."""
    chip = chips.load("single")
    scratchpad = chip.memory("scratchpad")
    sums = replace(scratchpad, name="sums", bytes=4096)
    engine = replace(chip.engines[0], routes=tuple(Route(*route.split(" -> ")) for route in routes))
    local = (sums, scratchpad) if first else (scratchpad, sums)
    changed = replace(chip, memories=(chip.global_memory, *local), engines=(engine,))
    assert vector_memory(changed).name == expected

"""The function around a kernel: its arguments, the loop over programs, and what the object exports."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import sample_loops
from native_functions import link, loops_of
from ttir_source import ttir_text

from triton_porting_kit import chips
from triton_porting_kit.abi.kernel import SCRATCH, VERSION, VERSION_SYMBOL
from triton_porting_kit.compiler import npu_pipeline
from triton_porting_kit.errors import CompilationError, CompilerDefect

Run = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
)


class Linked:
    """A kernel of three parameters (two pointers and an i32) linked into this process."""

    def __init__(self, kernel: Any, **constexprs: Any) -> None:
        self.result = loops_of(kernel, {"X": "*i32", "O": "*i32", "n": "i32"}, **constexprs)
        name = self.result.name
        self.code = link(self.result.text, [name, name + SCRATCH, VERSION_SYMBOL])
        self.scratch_bytes = ctypes.c_int64.from_address(self.code.addresses[name + SCRATCH]).value
        self.run = Run(self.code.addresses[name])

    def __call__(self, x: Any, out: Any, n: int, begin: int, end: int, grid: tuple[int, int, int]) -> int:
        block = np.zeros(24, np.uint8)
        block[:16].view(np.uint64)[:] = [x.ctypes.data, out.ctypes.data]
        block[16:20].view(np.int32)[:] = n
        # The scratch block lies at a multiple of 64, among guard bytes.
        memory = np.full(self.scratch_bytes + 192, 0x5A, np.uint8)
        start = 64 + -(memory.ctypes.data + 64) % 64
        status = int(self.run(block.ctypes.data, memory.ctypes.data + start, begin, end, *grid))
        assert (memory[:start] == 0x5A).all()
        assert (memory[start + self.scratch_bytes :] == 0x5A).all()
        return status


@pytest.fixture(scope="module")
def where_am_i() -> Linked:
    return Linked(sample_loops.where_am_i)


def expected(grid: tuple[int, int, int], n: int) -> np.ndarray[Any, Any]:
    z, y, x = np.indices(grid[::-1])
    return (x + 100 * y + 10000 * z + n).ravel().astype(np.int32)


@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (3, 4, 1), (2, 3, 4), (1, 6, 2), (1, 1, 7)])
def test_every_program_of_the_grid_runs(where_am_i: Linked, grid: tuple[int, int, int]) -> None:
    count = int(np.prod(grid))
    out = np.full(count, -1, np.int32)
    assert where_am_i(out, out, 5, 0, count, grid) == 0
    np.testing.assert_array_equal(out, expected(grid, 5))


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (3, 3), (0, 1), (5, 17), (23, 24), (7, 24)])
def test_only_the_programs_asked_for_run(where_am_i: Linked, begin: int, end: int) -> None:
    grid = (2, 3, 4)
    out = np.full(24, -1, np.int32)
    where_am_i(out, out, 0, begin, end, grid)
    wanted = np.full(24, -1, np.int32)
    wanted[begin:end] = expected(grid, 0)[begin:end]
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 5, 1), (2, 3, 4)])
def test_numbers_beyond_the_last_axis_asked_for_are_not_counted(grid: tuple[int, int, int]) -> None:
    kernel = Linked(sample_loops.which_row, tells=False)
    assert "(i32, i32) : i64 {" in kernel.result.text
    out = np.full(grid[1] + 1, -1, np.int32)
    kernel(out, out, 7, 0, int(np.prod(grid)), grid)
    np.testing.assert_array_equal(out, [*range(7, 7 + grid[1]), -1])


def test_a_kernel_that_tells_where_it_is_counts_all_axes() -> None:
    text = loops_of(sample_loops.which_row, {"X": "*i32", "O": "*i32", "n": "i32"}, tells=True).text
    assert "tpk_host_print" in text
    assert "(i32, i32, i32) : i64 {" in text


def test_exported_symbols() -> None:
    linked = Linked(sample_loops.nothing_to_do)
    name = linked.result.name
    assert name == "nothing_to_do"
    assert linked.scratch_bytes == linked.result.scratch_bytes == 0
    version = ctypes.c_int32.from_address(linked.code.addresses[VERSION_SYMBOL]).value
    assert version == VERSION == 3


def test_scratch_is_kept_to() -> None:
    linked = Linked(sample_loops.shifted, B=64)
    assert linked.scratch_bytes == linked.result.scratch_bytes == 256
    x = np.arange(65, dtype=np.int32)
    assert linked(x, x, 0, 0, 1, (1, 1, 1)) == 0
    np.testing.assert_array_equal(x, [0, *range(64)])


@pytest.mark.parametrize("name", ["tpk_npu_element_store", VERSION_SYMBOL])
def test_a_kernel_named_as_a_symbol_of_its_code_is_refused(name: str) -> None:
    text = ttir_text(sample_loops.where_am_i, {"X": "*i32", "O": "*i32", "n": "i32"})
    pipeline = npu_pipeline(chips.load("n1")).after("ttir").until("loops")
    with pytest.raises(CompilationError, match=f"the kernel '{name}' has the name of") as info:
        pipeline.run(text.replace('"where_am_i"', f'"{name}"'), {})
    assert not isinstance(info.value, CompilerDefect)

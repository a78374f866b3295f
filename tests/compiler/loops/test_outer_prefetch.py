"""What the first product of a loop prefetches for what is in front of the loop and behind it."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.matmul.outer_prefetch import ITERATIONS, LINE

Array = np.ndarray[Any, Any]
PREFETCH = re.compile(r'"llvm\.intr\.prefetch"\((%\w+)\) <\{[^}]*rw = (\d)[^}]*\}> : \(!llvm\.ptr\) -> \(\)')
SIGNATURE = {"A": "*fp32", "B": "*fp32", "OUT": "*fp32", "tiles": "i32", "pitch": "i32"}
TILE = 32


@triton.jit
def chain(A, B, OUT, tiles, pitch, FORM: tl.constexpr, TILE: tl.constexpr):
    """OUT = sum of (A @ B.T - 1) @ B + 1 over tiles of B."""
    rows, dims = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    pid = tl.program_id(1 if FORM == "other axis" else 0)
    own = (pid * TILE + rows) * pitch + dims
    a = tl.load(A + (pid * TILE + dims) * pitch + rows) if FORM == "turned" else tl.load(A + own)
    total = tl.zeros((TILE, TILE), tl.float32)
    for tile in range(tiles):
        b = tl.load(B + (tile * TILE + rows) * TILE + dims)
        s = tl.dot(a, tl.trans(b), input_precision="ieee") - 1.0
        total = tl.dot(s, b, total + 1.0, input_precision="ieee")
    tl.store(OUT + own, total)


def loops(form: str, target: CpuTarget) -> Any:
    return native_functions.loops_of(chain, SIGNATURE, target, FORM=form, TILE=TILE)


def prefetched(program: int, iterations: int, a: Array, b: Array, out: Array) -> tuple[set[int], set[int]]:
    """The lines that a program prefetches to read, and to write."""
    target = native_functions.host()
    result = loops("plain", target)
    text, count = PREFETCH.subn(r"llvm.call @fetch_\2(\1) : (!llvm.ptr) -> ()", result.text)
    assert count
    declared = "llvm.func @fetch_0(!llvm.ptr)\nllvm.func @fetch_1(!llvm.ptr)\n"
    text = text.replace("module {\n", f"module {{\n{declared}", 1)
    lines: tuple[set[int], set[int]] = (set(), set())
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    notes = [note(lambda address, found=found: found.add(address // LINE)) for found in lines]
    imports = {
        f"fetch_{kind}": ctypes.cast(function, ctypes.c_void_p).value or 0
        for kind, function in enumerate(notes)
    }
    code = native_functions.link(text, [result.name], target, imports)
    types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
    run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(code.addresses[result.name])
    scratch = np.zeros(result.scratch_bytes + LINE, np.uint8)
    block = np.zeros(32, np.uint8)
    block[:24].view(np.uint64)[:] = [array.ctypes.data for array in (a, b, out)]
    block[24:].view(np.int32)[:] = [iterations, a.shape[1]]
    start = scratch.ctypes.data + -scratch.ctypes.data % LINE
    assert run(block.ctypes.data, start, program, program + 1, 3, 1, 1) == 0
    return lines


def lines_of(array: Array) -> set[int]:
    """The first line of memory of each 64 bytes of the rows."""
    return {(row.ctypes.data + byte) // LINE for row in array for byte in range(0, row.nbytes, LINE)}


@pytest.mark.skipif(not native_functions.host().prefetches, reason="nothing is prefetched there")
def test_the_next_tile_to_read_and_the_own_one_to_write() -> None:
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-2, 3, shape).astype(np.float32)
        for shape in ((4 * TILE, 2 * TILE), (ITERATIONS * TILE, TILE))
    )
    out = np.zeros_like(a)
    rows, following = slice(TILE, 2 * TILE), slice(2 * TILE, 3 * TILE)
    read, written = prefetched(1, ITERATIONS, a, b, out)
    assert read == lines_of(a[following, :TILE])
    assert written == lines_of(out[rows, :TILE])
    expected = sum((a[rows, :TILE] @ t.T - 1) @ t + 1 for t in b.reshape(ITERATIONS, TILE, TILE))
    np.testing.assert_array_equal(out[rows, :TILE], expected)
    # In fewer iterations, as many lines as in each of the others.
    fewer, _ = prefetched(1, ITERATIONS // 2, a, b, out)
    assert fewer < read
    assert 2 * len(fewer) == len(read)


@pytest.mark.parametrize(("form", "kinds"), [("plain", {"0", "1"}), ("turned", {"1"}), ("other axis", {"1"})])
def test_which_tiles(form: str, kinds: set[str]) -> None:
    """Of what lies in columns, or of another row of the grid, nothing is prefetched."""
    text = loops(form, CpuTarget.named("sapphirerapids")).text
    assert {kind for _, kind in PREFETCH.findall(text)} == kinds


def test_other_targets_are_left_to_themselves() -> None:
    assert not PREFETCH.findall(loops("plain", CpuTarget.portable(64)).text)

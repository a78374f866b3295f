"""What products in loops prefetch: tiles around the loop, and right factors of the next iteration."""

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
from triton_porting_kit.compiler.loops.matmul.tile_prefetch import ITERATIONS
from triton_porting_kit.compiler.loops.tiles.lane_memory import LINE

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


class Prefetched:
    """The function of `chain`, for one program after the other of 3, and the lines that it prefetches."""

    def __init__(self, target: CpuTarget) -> None:
        result = loops("plain", target)
        text, count = PREFETCH.subn(r"llvm.call @fetch_\2(\1) : (!llvm.ptr) -> ()", result.text)
        assert count
        declared = "llvm.func @fetch_0(!llvm.ptr)\nllvm.func @fetch_1(!llvm.ptr)\n"
        text = text.replace("module {\n", f"module {{\n{declared}", 1)
        self.lines: tuple[set[int], set[int]] = (set(), set())
        note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.notes = [note(lambda address, found=found: found.add(address // LINE)) for found in self.lines]
        imports = {
            f"fetch_{kind}": ctypes.cast(function, ctypes.c_void_p).value or 0
            for kind, function in enumerate(self.notes)
        }
        self.code = native_functions.link(text, [result.name], target, imports)
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.code.addresses[result.name])
        self.scratch = np.zeros(result.scratch_bytes + LINE, np.uint8)

    def __call__(self, program: int, tiles: int, *arrays: Array) -> tuple[set[int], set[int]]:
        """The lines that a program prefetches to read, and to write, where it reads so many `tiles` of B."""
        block = np.zeros(32, np.uint8)
        block[:24].view(np.uint64)[:] = [array.ctypes.data for array in arrays]
        block[24:].view(np.int32)[:] = [tiles, arrays[0].shape[1]]
        for lines in self.lines:
            lines.clear()
        start = self.scratch.ctypes.data + -self.scratch.ctypes.data % LINE
        assert self.run(block.ctypes.data, start, program, program + 1, 3, 1, 1) == 0
        read, written = self.lines
        return set(read), set(written)


def lines_of(array: Array) -> set[int]:
    """The first line of memory of each 64 bytes of the rows."""
    return {(row.ctypes.data + byte) // LINE for row in array for byte in range(0, row.nbytes, LINE)}


@pytest.mark.skipif(not native_functions.host().prefetches, reason="nothing is prefetched there")
def test_what_comes_next_is_prefetched() -> None:
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-2, 3, shape).astype(np.float32)
        for shape in ((4 * TILE, 2 * TILE), (ITERATIONS * TILE, TILE))
    )
    out = np.zeros_like(a)
    run = Prefetched(native_functions.host())
    tiles = [slice(program * TILE, (program + 1) * TILE) for program in range(4)]

    # The right factors of the next iteration where this one packs its own, and what is around the loop.
    read, written = run(0, ITERATIONS, a, b, out)
    assert lines_of(a[tiles[1], :TILE]) | lines_of(b[TILE:]) <= read
    assert written == lines_of(out[tiles[0], :TILE])
    # The next program finds them packed.
    read, written = run(1, ITERATIONS, a, b, out)
    assert read == lines_of(a[tiles[2], :TILE])
    assert written == lines_of(out[tiles[1], :TILE])
    for rows in tiles[:2]:
        expected = sum((a[rows, :TILE] @ t.T - 1) @ t + 1 for t in b.reshape(ITERATIONS, TILE, TILE))
        np.testing.assert_array_equal(out[rows, :TILE], expected)
    # One iteration has a part of them.
    fewer, _ = run(1, 1, a, b, out)
    assert fewer
    assert fewer < read


@pytest.mark.parametrize(("form", "lines"), [("plain", 5), ("turned", 5), ("other axis", 3)])
def test_which_tiles(form: str, lines: int) -> None:
    """For each block of sums: a line of the right factor, two of what is written, and two of what is read in front of
    the loop, in rows or in columns, if the first axis of the grid tells where the next program reads.
    """
    text = loops(form, CpuTarget.named("sapphirerapids")).text
    assert len(PREFETCH.findall(text)) == lines


def test_other_targets_are_left_to_themselves() -> None:
    assert not PREFETCH.findall(loops("plain", CpuTarget.portable(64)).text)

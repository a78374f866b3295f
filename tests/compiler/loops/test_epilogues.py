"""What is done with the sums of a loop of dots: in the last multiplication where that is the same, else after it.

Every form is run, on arrays that lie apart, on top of each other, and at random; NumPy does one line of the kernel
after the other. How many stores were lowered early is counted.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import link, loops_of

from triton_porting_kit.abi.kernel import SCRATCH
from triton_porting_kit.compiler.loops.matmul import epilogues

Array = np.ndarray[Any, Any]
M, N, K, ITERATIONS = 16, 32, 32, 3


@triton.jit
def sums(
    A, B, C, D, count, rows, pitch, FORM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    c_at, d_at = C + m * pitch + n * (2 if FORM == "every other" else 1), D + m * N + n
    inside, places = m < rows, (m * 64 + n).to(tl.float64)
    if FORM == "loaded before":
        old = tl.load(c_at, mask=inside, other=0.0)
    total = tl.zeros((M, N), tl.float64)
    if FORM == "from one":
        total += 1
    seen = tl.zeros((M, N), tl.float64)
    a_at, b_at = A + m * (K * count) + k[None, :], B + k[:, None] * N + n
    for _ in range(count):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total, input_precision="ieee", out_dtype=tl.float64)
        if FORM == "read in the loop":
            seen += tl.load(c_at, mask=inside, other=0.0)
        a_at += K
        b_at += K * N
    if FORM == "computed":
        total = tl.maximum(total * 2 + 1, 0.0)
    if FORM == "long":
        for _ in tl.static_range(120):
            total += 1
    if FORM == "read again":
        dear = tl.sqrt(places)
        total += dear
    if FORM == "loaded between":
        total += tl.load(d_at)
    if FORM == "summed":
        total += tl.sum(total, 1)[:, None]
    if FORM == "turned":
        total = tl.trans(tl.reshape(total, (N, M)))
    if FORM == "stored between":
        tl.store(d_at, m * 1.0 + n)
    if FORM == "condition":
        if rows > 0:
            tl.store(c_at, total, mask=inside)
    elif FORM == "some":
        tl.store(c_at, total, mask=inside & (total > 0))
    else:
        tl.store(c_at, total, mask=inside)
    if FORM == "twice":
        tl.store(d_at, total)
    if FORM == "read again":
        tl.store(d_at, dear)
    if FORM == "loaded before":
        tl.store(d_at, old)
    if FORM == "read in the loop":
        tl.store(d_at, seen)


EARLY = {"plain": 1, "from one": 1, "computed": 1, "every other": 1, "loaded before": 1, "read again": 1}
"""By form: how many stores are lowered in the loop."""

FORMS = [
    *EARLY, "long", "loaded between", "summed", "turned", "stored between", "condition", "some", "twice", "read in the loop",
]  # fmt: skip


class Compiled:
    """The function of one form; its store was lowered `early`, or was not."""

    def __init__(self, form: str) -> None:
        signature = dict.fromkeys("ABCD", "*fp64") | dict.fromkeys(("count", "rows", "pitch"), "i32")
        self.form = form
        emit, stores = epilogues.Epilogue.emit, set()

        def counted(epilogue: epilogues.Epilogue, *arguments: Any) -> None:
            stores.add(epilogue.store)  # once for each band of rows
            emit(epilogue, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(epilogues.Epilogue, "emit", counted)
            self.loops = loops_of(sums, signature, FORM=form, M=M, N=N, K=K)
        self.early = len(stores)
        name = self.loops.name
        self.code = link(self.loops.text, [name, name + SCRATCH])
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.code.addresses[name])
        self.scratch = np.zeros(self.loops.scratch_bytes + 64, np.uint8)

    def __call__(self, memory: Array, starts: list[int], count: int, rows: int, pitch: int) -> Array:
        """`memory` after one program on arrays that begin at these elements of it."""
        memory = memory.copy()
        block = np.zeros(48, np.uint8)
        block[:32].view(np.uint64)[:] = [memory.ctypes.data + 8 * start for start in starts]
        block[32:44].view(np.int32)[:] = [count, rows, pitch]
        self.scratch[:] = 0x5A
        scratch = self.scratch.ctypes.data + -self.scratch.ctypes.data % 64
        ctypes.memset(scratch, 0, self.loops.cleared_bytes)
        assert self.run(block.ctypes.data, scratch, 0, 1, 1, 1, 1) == 0
        return memory


def expected(memory: Array, form: str, starts: list[int], count: int, rows: int, pitch: int) -> Array:
    memory = memory.copy()

    def view(start: int, shape: tuple[int, int], row: int) -> Array:
        return np.lib.stride_tricks.as_strided(memory[start:], shape, (8 * row, 8))

    a, b, c, d = starts
    apart = 2 if form == "every other" else 1
    out, second = view(c, (M, N * apart), pitch)[:rows, ::apart], view(d, (M, N), N)
    old = np.zeros((M, N))
    old[:rows] = out
    total = view(a, (M, K * count), K * count) @ view(b, (K * count, N), N)
    total += form == "from one"
    if form == "computed":
        total = np.maximum(total * 2 + 1, 0)
    total += 120 * (form == "long")
    dear = np.sqrt(np.arange(M)[:, None] * 64.0 + np.arange(N))
    if form == "read again":
        total += dear
    if form == "loaded between":
        total += second
    if form == "summed":
        total += total.sum(1)[:, None]
    if form == "turned":
        total = total.reshape(N, M).T.copy()
    if form == "stored between":
        second[:] = np.arange(M)[:, None] + np.arange(N)
    kept = total[:rows] > 0 if form == "some" else np.full((rows, N), True)
    out[kept] = total[:rows][kept]
    if form == "twice":
        second[:] = total
    if form == "read again":
        second[:] = dear
    if form == "loaded before":
        second[:] = old
    if form == "read in the loop":
        second[:] = count * old
    return memory


@pytest.fixture(scope="module", params=FORMS)
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return Compiled(request.param)


def test_which_stores_are_early(compiled: Compiled) -> None:
    assert compiled.early == EARLY.get(compiled.form, 0)


def numbers(count: int) -> Array:
    return np.random.default_rng(1).integers(-2, 3, count).astype(np.float64)


@pytest.mark.parametrize("count", [0, 1, 2, ITERATIONS, 40])
@pytest.mark.parametrize("rows", [0, 3, M])
def test_arrays_that_lie_apart(compiled: Compiled, count: int, rows: int) -> None:
    a_size, b_size = M * K * count, K * count * N
    starts = [0, a_size, a_size + b_size, a_size + b_size + 2 * M * N]
    memory = numbers(starts[-1] + M * N)
    found = compiled(memory, starts, count, rows, 2 * N)
    np.testing.assert_array_equal(found, expected(memory, compiled.form, starts, count, rows, 2 * N))


def test_results_that_overlap_operands(compiled: Compiled) -> None:
    """All of A and B is read before anything is stored to C."""
    random = np.random.default_rng(2)
    room = 2 * (M * K + K * N) * ITERATIONS
    memory = numbers(room + 2 * M * N)
    pitch = 2 * N if compiled.form == "every other" else N
    for _ in range(60):
        starts = [int(random.integers(0, room - size)) for size in (M * K * ITERATIONS, K * N * ITERATIONS)]
        near = starts[int(random.integers(0, 2))] + int(random.integers(-M * N, M * K * ITERATIONS))
        starts += [min(max(near, 0), room), room + M * N]
        found = compiled(memory, starts, ITERATIONS, M, pitch)
        np.testing.assert_array_equal(found, expected(memory, compiled.form, starts, ITERATIONS, M, pitch))

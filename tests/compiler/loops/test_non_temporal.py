"""Stores past the caches: where they are emitted, when they are used, and that they write the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sample_loops
import triton
import triton.language as tl
from native_functions import loops_of

from triton_porting_kit.compiler import CpuTarget
from triton_porting_kit.compiler.loops.memory import non_temporal
from triton_porting_kit.driver import DeviceArray

SIGNATURE = {"X": "*fp32", "O": "*fp32", "n": "i32"}
FENCE = "llvm.x86.sse.sfence"


def text_of(kernel: Any, target: CpuTarget | None = None, block: int = 256) -> str:
    text: str = loops_of(kernel, SIGNATURE, target, B=block).text
    return text


def test_one_of_the_loops_of_a_chain_streams() -> None:
    text = text_of(sample_loops.chain, CpuTarget.named("sapphirerapids"))
    assert text.count("nontemporal") == text.count(FENCE) == 1
    # What they must be aligned to, on which it depends whether that loop is taken.
    assert "alignment = 64 : i64, nontemporal" in text


@triton.jit
def under_a_mask(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.store(O + i, x, mask=x > 0)


@triton.jit
def around_the_end(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i % n, tl.load(X + i))


@triton.jit
def dear(X, O, n, B: tl.constexpr, OPERATIONS: tl.constexpr = 12):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i, mask=i < n)
    highest = x
    for down in tl.static_range(1, OPERATIONS):
        highest = tl.maximum(highest, x - down)
    tl.store(O + i, highest * 2, mask=i < n)


@pytest.mark.parametrize("operations", [12, 40])
def test_dear_values_have_one_loop(operations: int) -> None:
    """It branches to either store. Of the longer one, elements out of bounds are in the same loop, too."""
    target = CpuTarget.named("sapphirerapids")
    text = loops_of(dear, SIGNATURE, target, B=512, OPERATIONS=operations).text
    assert text.count("nontemporal") == text.count(FENCE) == 1
    masked = 2 if operations == 12 else 1
    assert text.count("arith.maxnumf") == masked * (operations - 1)


@triton.jit
def short_and_dear(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.sin(tl.load(X + i)) * tl.exp(tl.load(X + i)))


@triton.jit
def a_long_computation(X, O, n, B: tl.constexpr):
    i = tl.arange(0, 4 * B)
    x = tl.load(X + i)
    for _ in tl.static_range(24):
        x = tl.sin(x)
    tl.store(O + i, x)


@triton.jit
def wide(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O.to(tl.pointer_type(tl.float64)) + i, tl.load(X + i).to(tl.float64))


@pytest.mark.parametrize(
    "kernel",
    [
        sample_loops.in_place,
        sample_loops.in_a_loop,
        sample_loops.beside_an_atomic,
        sample_loops.strided,
        under_a_mask,
        around_the_end,
        short_and_dear,
        a_long_computation,
        wide,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_what_does_not_stream(kernel: Any) -> None:
    text = text_of(kernel, CpuTarget.named("sapphirerapids"))
    assert "nontemporal" not in text
    assert FENCE not in text


def test_only_x86_streams() -> None:
    assert "nontemporal" not in text_of(sample_loops.chain, CpuTarget.named("neoverse-n1"))


@triton.jit
def doubled(X, O, n, B: tl.constexpr, OPERATIONS: tl.constexpr = 1):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(O + i, tl.load(X + i, mask=i < n) * 2, mask=i < n)


def test_rows_of_a_page_are_looked_at() -> None:
    """One element of a row is enough, and a shorter row may end on a page that the one before it has written to."""
    target = CpuTarget.named("sapphirerapids")
    assert "rdtsc" not in text_of(sample_loops.chain, target, 512)
    assert text_of(sample_loops.chain, target, 1024).count("rdtsc") == 2


@triton.jit
def scaled_row(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.exp(tl.load(X + tl.program_id(0) * n + i, mask=i < n, other=0.0))
    y = x / tl.sum(x)
    for _ in tl.static_range(8):
        y = tl.maximum(y * x, 1.0)
    tl.store(O + tl.program_id(0) * n + i, y, mask=i < n)


def test_what_is_stored_past_the_caches_is_not_prefetched() -> None:
    """The row that the next program writes is prefetched for writing only in the branch of the ordinary store."""
    lines = text_of(scaled_row, CpuTarget.named("sapphirerapids"), 1024).splitlines()
    (streamed,) = (number for number, line in enumerate(lines) if "nontemporal" in line)
    first = next(number for number, line in enumerate(lines) if "rw = 1" in line)
    assert any("else" in line for line in lines[streamed:first])


@triton.jit
def in_rows(X, O, n, B: tl.constexpr, OPERATIONS: tl.constexpr = 2):
    ROW: tl.constexpr = B // OPERATIONS
    for row in range(OPERATIONS):
        i = tl.program_id(0) * B + row * ROW + tl.arange(0, ROW)
        tl.store(O + i, tl.load(X + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def the_same_row(X, O, n, B: tl.constexpr):
    for row in range(n):
        i = tl.arange(0, 4 * B)
        tl.store(O + i, tl.load(X + row * 4 * B + i))


@triton.jit
def rows_read_again(X, O, n, B: tl.constexpr):
    for row in range(1, n):
        i = row * 4 * B + tl.arange(0, 4 * B)
        tl.store(O + i, tl.load(X + i))
        tl.store(X + row, tl.sum(tl.load(O + i - 4 * B)))


def test_rows_of_a_loop_stream() -> None:
    target = CpuTarget.named("sapphirerapids")
    text = loops_of(in_rows, SIGNATURE, target, B=1024, OPERATIONS=2).text
    assert text.count("nontemporal") == text.count(FENCE) == 1
    for kernel in (the_same_row, rows_read_again):
        assert "nontemporal" not in text_of(kernel, target)


@pytest.mark.parametrize(("kernel", "operations"), [(doubled, 1), (in_rows, 2), (dear, 12), (dear, 40)])
@pytest.mark.parametrize("skipped", [0, 1, 16])
@pytest.mark.parametrize(
    ("dtype", "block", "cycles"),
    [
        ("float32", 512, 0),
        ("float16", 512, 0),
        ("float64", 512, 0),
        ("float32", 2048, 0),  # pages are never mapped, by the time that it takes
        ("float32", 1024, 1 << 40),  # they always are
        ("float32", 4096, 1500),
    ],
)
def test_streamed_values(
    monkeypatch: pytest.MonkeyPatch,
    cpu_backend: None,
    dtype: str,
    block: int,
    cycles: int,
    skipped: int,
    kernel: Any,
    operations: int,
) -> None:
    from triton.runtime import driver

    monkeypatch.setenv("TPK_CPU_CACHES", "48K,1M,2K")
    monkeypatch.setattr(non_temporal, "MAPPING_CYCLES", cycles)
    n = 50 * block - 120
    x = np.arange(n + skipped).astype(dtype)
    source, target = (DeviceArray.from_numpy(a, driver.active.device) for a in (x, np.zeros_like(x)))

    class Rest:
        dtype = x.dtype

        def __init__(self, array: DeviceArray) -> None:
            self._array = array

        def data_ptr(self) -> int:
            return self._array.data_ptr() + skipped * x.itemsize

    kernel[(triton.cdiv(n, block),)](Rest(source), Rest(target), n, B=block, OPERATIONS=operations)
    np.testing.assert_array_equal(target.numpy()[skipped:], x[skipped:] * 2)
    assert not target.numpy()[:skipped].any()

"""Stores that share a loop: what they write, for every way in which their arrays may be the same."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import loops_of

from triton_porting_kit.compiler.loops.memory.overlaps import _meet
from triton_porting_kit.driver import DeviceArray

BLOCK = 128
SIGNATURE = {"A": "*fp32", "B": "*fp32", "O": "*fp32", "P": "*fp32", "n": "i32"}


@triton.jit
def two_sums(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(A + i, i < n)
    b = tl.load(B + i, i < n)
    tl.store(O + i, a + b, i < n)
    tl.store(P + i, a - b, i < n)


@triton.jit
def moved(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(A + i + 3, i < n)
    b = tl.load(B + i, i < n)
    tl.store(O + i + 1, a + b, i < n)
    tl.store(P + i, a * b, i < n)


@triton.jit
def scattered(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = i % 32 + 64 * (i // 32)
    a = tl.load(A + place)
    b = tl.load(A + place + 32)
    c = tl.load(B + place)
    tl.store(O + place, a * c - b)
    tl.store(P + place, b * c + a)


@triton.jit
def reversed_later(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(A + i)
    b = tl.load(B + BLOCK - 1 - i)
    tl.store(O + i, a + b)
    tl.store(P + i * 2, tl.exp(a) * b)
    c = tl.load(A + i + 1)
    tl.store(P + BLOCK * 2 + i, a + c)


@triton.jit
def in_a_loop(A, B, O, P, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(A + i, i < n, other=0)
        total += a
        tl.store(O + i, a + 1, i < n)
        tl.store(P + i, total * a, i < n)
    tl.store(B + tl.arange(0, BLOCK), total)


@triton.jit
def broadcast(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * 4
    j = tl.arange(0, 4)[None, :]
    row = tl.load(B + j)
    a = tl.load(A + i + j)
    tl.store(O + i + j, a * row)
    tl.store(P + i + j, a + row)


@triton.jit
def halves(A, B, O, P, n, BLOCK: tl.constexpr):
    """Two tiles of one array, whose rows take turns, as in a rotary embedding."""
    at = tl.arange(0, BLOCK // 32)[:, None] * 64 + tl.arange(0, 32)[None, :]
    c = tl.load(B + tl.arange(0, 32))[None, :]
    low = tl.load(A + at)
    high = tl.load(A + at + 32)
    tl.store(O + at, low * c - high)
    tl.store(O + at + 32, high * c + low)


@triton.jit
def halves_that_overlap(A, B, O, P, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK // 32)[:, None] * 64 + tl.arange(0, 32)[None, :]
    low = tl.load(A + at)
    high = tl.load(B + at)
    tl.store(O + at + 48, low + high)
    tl.store(O + at, low - high)


@triton.jit
def gathered(A, B, O, P, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(A + i % 32 + 64 * (i // 32))
    tl.store(O + i, a)
    tl.atomic_add(B, 1.0)
    tl.store(P + i, a)


def programs_of(n: int) -> range:
    return range(-(-n // BLOCK))


def expected(kernel: Any, arrays: list[np.ndarray], n: int) -> None:
    """What a kernel does to `arrays`, some of which may be one array: all reads of a program before its writes."""
    A, B, O, P = arrays
    lanes = np.arange(BLOCK)
    if kernel is two_sums:
        for program in programs_of(n):
            i = program * BLOCK + lanes
            i = i[i < n]
            a, b = A[i].copy(), B[i].copy()
            O[i], P[i] = a + b, a - b
    elif kernel is moved:
        i = lanes[lanes < n]
        a, b = A[i + 3].copy(), B[i].copy()
        O[i + 1] = a + b
        P[i] = a * b
    elif kernel is scattered:
        for program in programs_of(n):
            i = program * BLOCK + lanes
            place = i % 32 + 64 * (i // 32)
            a, b, c = A[place].copy(), A[place + 32].copy(), B[place].copy()
            O[place], P[place] = a * c - b, b * c + a
    elif kernel is reversed_later:
        a, b = A[lanes].copy(), B[BLOCK - 1 - lanes].copy()
        O[lanes], P[2 * lanes] = a + b, np.exp(a) * b
        P[2 * BLOCK + lanes] = a + A[lanes + 1]
    elif kernel is broadcast:
        a, row = A[: 4 * BLOCK].reshape(BLOCK, 4).copy(), B[:4].copy()
        O[: 4 * BLOCK] = (a * row).ravel()
        P[: 4 * BLOCK] = (a + row).ravel()
    elif kernel in (halves, halves_that_overlap):
        at = (np.arange(BLOCK // 32)[:, None] * 64 + np.arange(32)).ravel()
        low, high, c = A[at].copy(), A[at + 32].copy(), np.tile(B[:32], BLOCK // 32)
        if kernel is halves:
            O[at], O[at + 32] = low * c - high, high * c + low
        else:
            high = B[at].copy()
            O[at + 48] = low + high
            O[at] = low - high
    else:
        total = np.zeros(BLOCK, np.float32)
        for start in range(0, n, BLOCK):
            i = start + lanes
            inside = i < n
            a = np.where(inside, A[np.minimum(i, n - 1)], np.float32(0))
            total += a
            O[i[inside]] = (a + 1)[inside]
            P[i[inside]] = (total * a)[inside]
        B[lanes] = total


@pytest.mark.parametrize("n", [BLOCK - 15, 3 * BLOCK + 17])
@pytest.mark.parametrize(
    "kernel",
    [two_sums, moved, scattered, reversed_later, in_a_loop, broadcast, halves, halves_that_overlap],
    ids=lambda kernel: kernel.__name__,
)
def test_results_for_all_ways_to_share_arrays(kernel: Any, n: int) -> None:
    """The four arguments are any of four arrays."""
    device = triton.runtime.driver.active.device
    random = np.random.default_rng(3)
    data = random.standard_normal((4, 2048), np.float32)
    for choice in product(range(4), repeat=4):
        if any(array > max(choice[:position], default=-1) + 1 for position, array in enumerate(choice)):
            continue  # the same as another choice, with the arrays in another order
        reference = [row.copy() for row in data]
        expected(kernel, [reference[index] for index in choice], n)
        arrays = [DeviceArray.from_numpy(row, device) for row in data]
        grid = len(programs_of(n)) if kernel in (two_sums, scattered) else 1
        kernel[(grid,)](*(arrays[index] for index in choice), n, BLOCK=BLOCK)
        for index in range(4):
            found = arrays[index].numpy()
            np.testing.assert_allclose(found, reference[index], rtol=1e-6, atol=1e-6, err_msg=str(choice))


def test_stores_to_the_same_places_need_no_scratch() -> None:
    """Nor does it matter whether all four arguments are one array."""
    loops = loops_of(two_sums, SIGNATURE, BLOCK=BLOCK)
    assert loops.scratch_bytes == 0
    assert "llvm.icmp" not in loops.text


@pytest.mark.parametrize("kernel", [scattered, broadcast], ids=lambda kernel: kernel.__name__)
def test_stores_share_one_loop_if_their_arrays_differ(kernel: Any) -> None:
    text = loops_of(kernel, SIGNATURE, BLOCK=BLOCK).text
    plain = text[text.rindex("} else {") :]
    assert "%scratch" not in plain
    assert plain.count("scf.for") == 1
    assert plain.count("llvm.store") == 2


def test_tiles_that_lie_apart_in_one_array_share_a_loop() -> None:
    together = re.compile(r"// tpk.store.*\n *// tpk.store")
    assert together.search(loops_of(halves, SIGNATURE, BLOCK=BLOCK).text)
    assert not together.search(loops_of(halves_that_overlap, SIGNATURE, BLOCK=BLOCK).text)


def test_tiles_meet_where_they_have_an_element_in_common() -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        steps = sorted(
            zip(random.integers(0, 20, 3).tolist(), random.integers(1, 6, 3).tolist(), strict=True)
        )[::-1]
        tile = {0}
        for stride, size in steps:
            tile = {start + stride * index for start in tile for index in range(size)}
        for distance in range(-40, 120):
            assert _meet(distance, steps) or not tile & {place + distance for place in tile}
    assert not _meet(32, [(64, 4), (1, 32)])
    assert _meet(31, [(64, 4), (1, 32)])
    assert _meet(-96, [(64, 4), (1, 33)])


def test_a_gather_that_two_loops_need_is_kept_once() -> None:
    assert loops_of(gathered, SIGNATURE, BLOCK=BLOCK).scratch_bytes == 4 * BLOCK

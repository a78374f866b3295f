"""Atomic operations end to end, alone and contended by many programs on all threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Kind, assert_same, empty, get, make_kernel, put, samples, wrap

from triton_porting_kit.toolchain import compat

INTEGER_KINDS = ["i32", "u32", "i64", "u64"]
FLOAT_KINDS = ["fp16", "bf16", "fp32", "fp64"]
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "xchg": lambda a, b: b,
}
CASES = [(op, kind) for op in OPERATIONS for kind in INTEGER_KINDS] + [
    *(("add", kind) for kind in FLOAT_KINDS),
    *((op, kind) for op in ("max", "min", "xchg") for kind in ("fp32", "fp64")),
]
IDS = [f"{op}-{kind}" for op, kind in CASES]

TILE = """def atomics(X, V, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    old = tl.atomic_{op}(X + i, tl.load(V + i, mask=i < n), mask=(i < n) & (i % 3 != 1))
    tl.store(O + i, old, mask=(i < n) & (i % 3 != 1))
"""
SCALAR = """def atomic_scalars(X, V, O, n):
    for i in range(n):
        tl.store(O + i, tl.atomic_{op}(X + i, tl.load(V + i)))
"""


def operands(kind: Kind) -> tuple[Any, Any]:
    x, v = samples(kind, 61, seed=1), samples(kind, 61, seed=2)[::-1]
    if kind.is_float:
        # No NaN: maximum and minimum of one are the device's affair. No sums of opposite infinities, no zeros of two signs.
        x, v = (np.where(np.isfinite(a) & (a != 0), a, a.dtype.type(1.5)) for a in (x, v))
    return x, v


@pytest.mark.parametrize("form", ["tile", "scalar"])
@pytest.mark.parametrize(("op", "kind"), CASES, ids=IDS)
def test_result_and_old_value(op: str, kind: str, form: str) -> None:
    x, v = operands(KINDS[kind])
    memory, out = put(x, kind), empty(61, kind, 0)
    if form == "tile":
        make_kernel(TILE.format(op=op))[(1,)](memory, put(v, kind), out, 61, B=64)
        touched = np.arange(61) % 3 != 1
    else:
        make_kernel(SCALAR.format(op=op))[(1,)](memory, put(v, kind), out, 61)
        touched = np.ones(61, bool)
    exact = [OPERATIONS[op](a, b) for a, b in zip(x.tolist(), v.tolist(), strict=True)]
    if KINDS[kind].is_float:
        from running import rounded

        results = rounded(exact, KINDS[kind])
    else:
        results = np.array([wrap(value, KINDS[kind]) for value in exact], x.dtype)
    assert_same(get(memory), np.where(touched, results, x))
    assert_same(get(out), np.where(touched, x, x.dtype.type(0)))


def test_sums_of_denormals_stay() -> None:
    tiny = np.array([2.0**-133, 2.0**-126, -(2.0**-133)], np.float32)
    memory, out = put(tiny, "bf16"), empty(3, "bf16", 0)
    make_kernel(SCALAR.format(op="add"))[(1,)](memory, put(tiny, "bf16"), out, 3)
    assert_same(get(memory), tiny * 2)
    assert_same(get(out), tiny)


CONTENDED = """def contended(X, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(X + i % 3, (i % 7).to(X.dtype.element_ty))
    tl.atomic_max(X + 3, tl.max(i % 1000, 0).to(X.dtype.element_ty))
    tl.atomic_min(X + 4, -tl.max(i % 1000, 0).to(X.dtype.element_ty))
"""


@pytest.mark.parametrize("kind", ["i32", "i64", "fp32", "fp64"])
def test_many_programs_contend(kind: str) -> None:
    block, programs = 32, 500
    memory = empty(5, kind, 0)
    make_kernel(CONTENDED)[(programs,)](memory, B=block)
    i = np.arange(block * programs)
    expected = [(i[i % 3 == r] % 7).sum() for r in range(3)] + [999, -999]
    assert get(memory).tolist() == expected


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_many_programs_contend_for_16_bits(kind: str) -> None:
    memory = empty(2, kind, 0)
    source = "def halves(X):\n    tl.atomic_add(X + tl.program_id(0) % 2, 1.0)\n"
    make_kernel(source)[(256,)](memory)
    assert get(memory).tolist() == [128.0, 128.0]


@triton.jit
def swap_kernel(X, E, V, O, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, tl.atomic_cas(X + i, tl.load(E + i), tl.load(V + i)))


@pytest.mark.parametrize("kind", ["i32", "u32", "i64", "u64", "fp32", "fp64", "i16", "fp16", "bf16"])
def test_compare_and_swap(kind: str) -> None:
    x = (np.arange(32) - 5).astype(KINDS[kind].host)
    expected = np.where(np.arange(32) % 2 == 0, x, x + 1).astype(x.dtype)
    values = (x * 2).astype(x.dtype)
    memory, out = put(x, kind), empty(32, kind)
    swap_kernel[(1,)](memory, put(expected, kind), put(values, kind), out, B=32)
    assert_same(get(out), x)
    assert_same(get(memory), np.where(np.arange(32) % 2 == 0, values, x))


@triton.jit
def lock_kernel(lock, counter, rounds):
    for _ in range(rounds):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(counter, tl.load(counter) + 1)
        tl.atomic_xchg(lock, 0)


def test_lock_protects_plain_loads_and_stores() -> None:
    lock, counter = empty(1, "i32", 0), empty(1, "i32", 0)
    lock_kernel[(64,)](lock, counter, 50)
    assert get(counter).tolist() == [3200]


@triton.jit
def bins_kernel(X, O, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0)
    tl.atomic_add(O + x, 1, mask=i < n, sem="relaxed")


def test_histogram_by_atomics() -> None:
    x = np.random.default_rng(3).integers(0, 10, 5000).astype(np.int32)
    out = empty(10, "i32", 0)
    bins_kernel[(40,)](put(x, "i32"), out, x.size, B=128)
    assert_same(get(out), np.bincount(x, minlength=10))


@triton.jit
def ordered_kernel(X, O, B: tl.constexpr):
    """Reads before and after atomics on the same memory, in the program's order."""
    i = tl.arange(0, B)
    before = tl.load(X + i)
    old = tl.atomic_add(X + i, before)
    after = tl.load(X + i)
    tl.store(O + i, before)
    tl.store(O + B + i, old)
    tl.store(O + 2 * B + i, after)
    tl.atomic_add(X, 1)
    tl.store(O + 3 * B, tl.load(X))


def test_atomics_keep_their_place_among_loads() -> None:
    x = np.arange(32, dtype=np.int32) + 1
    out = empty(3 * 32 + 1, "i32")
    ordered_kernel[(1,)](put(x, "i32"), out, B=32)
    assert_same(get(out), np.concatenate([x, x, 2 * x, [3]]))


@triton.jit
def handshake_kernel(flags, data, O):
    """Program 0 publishes; the other program waits for it: both run, or the test would hang."""
    if tl.program_id(0) == 0:
        tl.store(data, 42)
        tl.atomic_xchg(flags, 1, sem="release")
    else:
        while tl.atomic_add(flags, 0, sem="acquire") == 0:
            pass
        tl.store(O, tl.load(data))


def test_release_and_acquire() -> None:
    flags, data, out = (empty(1, "i32", 0) for _ in range(3))
    handshake_kernel[(2,)](flags, data, out)
    assert get(out).tolist() == [42]


@triton.jit
def volatile_kernel(X, O, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=3, volatile=True)
    tl.store(X + i, x + 1, mask=i < n)
    again = tl.load(X + (i * 7) % B, mask=i < n, other=3, volatile=True)
    tl.store(O + i, x)
    tl.store(O + B + i, again + tl.load(X, volatile=True))


def test_volatile_loads() -> None:
    x = np.arange(32, dtype=np.int32)
    out = empty((2, 32), "i32")
    volatile_kernel[(1,)](put(x, "i32"), out, 20, B=32)
    i = np.arange(32)
    assert_same(get(out)[0], np.where(i < 20, x, 3))
    stored = np.where(i < 20, x + 1, x)
    assert_same(get(out)[1], np.where(i < 20, stored[i * 7 % 32], 3) + 1)


@triton.jit
def atomic_load_kernel(flags, data, O):
    if tl.program_id(0) == 0:
        tl.store(data, 42)
        tl.atomic_store(flags, 1)
    else:
        tl.atomic_poll(flags, 1)
        tl.store(O, tl.atomic_load(data, sem="relaxed"))


@pytest.mark.skipif(compat.release() < (3, 9), reason="Triton has tl.atomic_poll and its like since 3.9")
def test_atomic_store_poll_and_load() -> None:
    flags, data, out = (empty(1, "i32", 0) for _ in range(3))
    atomic_load_kernel[(2,)](flags, data, out)
    assert get(out).tolist() == [42]


@triton.jit
def polled_tile_kernel(P, E, O, T, limit):
    i = tl.arange(0, 16)
    tl.store(O + i, tl.atomic_poll(P + i, tl.load(E + i), sem="relaxed"))
    tl.store(T + i, tl.atomic_poll(P + i, tl.load(E + i) + i % 2, timeout_ns=limit))
    tl.store(T + 16, tl.atomic_poll(P, tl.load(E), timeout_ns=limit))
    tl.store(T + 17, tl.atomic_poll(P, tl.load(E) + 1, timeout_ns=limit))


@pytest.mark.skipif(compat.release() < (3, 9), reason="Triton has tl.atomic_poll and its like since 3.9")
@pytest.mark.parametrize("kind", ["i16", "u16", "i32", "u32", "i64", "u64"])
def test_polls_of_tiles_and_of_limited_time(kind: str) -> None:
    values = np.arange(16) * 7
    found, in_time = empty(16, "i1"), empty(18, "i1")
    start = time.perf_counter_ns()
    polled_tile_kernel[(1,)](put(values, kind), put(values, kind), found, in_time, 100_000)
    # Both polls that fail take their time.
    assert time.perf_counter_ns() - start >= 2 * 100_000
    assert get(found).all()
    assert get(in_time).tolist() == [i % 2 == 0 for i in range(16)] + [True, False]

"""Atomic updates of rows: without locks in a grid of one program, with locks in others and of scope ``sys``."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import KINDS, Array, assert_same, empty, get, make_kernel, put

pytestmark = pytest.mark.usefixtures("cpu_backend")

KERNEL = """def update_rows(X, INDEX, O, OLD, n, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i < n) & (i % 11 != 5)
    row = tl.load(INDEX + i // C, mask=i < n, other=0)
    row = tl.where(row < 0, row + 7, row)
    x = tl.load(X + i, mask=inside)
    old = tl.atomic_{op}(O + (i % C + C * row), x, mask=inside, sem="relaxed", scope="{scope}")
    tl.store(OLD + i, old, mask=i < n)
"""
INDEX = np.array([3, -1, 3, 0, 6, 6, 6, 2, -7, 5], np.int64)
OPERATIONS = {
    "add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "xchg": lambda a, b: b,
}  # fmt: skip
CASES = [
    *(("add", kind) for kind in ("fp32", "fp64", "fp16", "bf16", "i32", "i64")),
    *((op, kind) for op in ("max", "min") for kind in ("i32", "u32", "fp32")),
    *((op, "i64") for op in ("and", "or", "xor", "xchg")),
]


def case(kind: str, divisor: int) -> tuple[Array, Array]:
    """Updates, and what they begin with: small integers, whose sums are exact in any order."""
    random = np.random.default_rng(divisor)
    low = 0 if kind.startswith("u") else -9
    x = random.integers(low, 10, INDEX.size * divisor).astype(KINDS[kind].host)
    return x, random.integers(low, 10, 7 * divisor).astype(KINDS[kind].host)


def expected(op: str, x: Array, start: Array, divisor: int) -> tuple[Array, Array]:
    """The results, and the old values of updates one after the other."""
    out, old = start.copy(), np.zeros_like(x)
    for i in range(x.size):
        if i % 11 != 5:
            place = i % divisor + divisor * (INDEX[i // divisor] % 7)
            old[i] = out[place]
            out[place] = OPERATIONS[op](out[place], x[i])
    return out, old


def run(op: str, kind: str, scope: str, divisor: int, block: int) -> tuple[Array, Array, Any]:
    x, start = case(kind, divisor)
    out, old = put(start, kind), empty(x.size, kind)
    kernel = make_kernel(KERNEL.format(op=op, scope=scope))
    grid = (triton.cdiv(x.size, block),)
    compiled = kernel[grid](put(x, kind), put(INDEX, "i64"), out, old, x.size, divisor, block)
    return get(out), get(old), compiled


@pytest.mark.parametrize("scope", ["gpu", "sys"])
@pytest.mark.parametrize("divisor", [1, 5, 16, 17, 48, 100, 256])
def test_one_program(divisor: int, scope: str) -> None:
    block = triton.next_power_of_2(INDEX.size * divisor)
    out, old, compiled = run("add", "fp32", scope, divisor, block)
    wanted, before = expected("add", *case("fp32", divisor), divisor)
    assert_same(out, wanted)
    assert_same(old, before)
    assert ("__exclusive(-1" in compiled.asm["loops"]) == (scope == "sys")


@pytest.mark.parametrize("block", [16, 64])
@pytest.mark.parametrize("divisor", [5, 16, 48, 256])
def test_many_programs(divisor: int, block: int) -> None:
    out, _, _ = run("add", "fp32", "gpu", divisor, block)
    assert_same(out, expected("add", *case("fp32", divisor), divisor)[0])


@pytest.mark.parametrize(("op", "kind"), CASES)
def test_operations_and_types(op: str, kind: str) -> None:
    out, old, _ = run(op, kind, "gpu", 48, 512)
    wanted, before = expected(op, *case(kind, 48), 48)
    assert_same(out, wanted)
    if not (op in ("max", "min") and KINDS[kind].is_float):  # Triton compares floats in two operations
        assert_same(old, before)


@triton.jit
def histogram_kernel(X, O, BLOCK: tl.constexpr):
    x = tl.load(X + tl.arange(0, BLOCK))
    tl.atomic_add(O + x, 1, sem="relaxed")
    tl.atomic_add(O + 8 + x * 0, x, sem="relaxed")


def test_places_side_by_side_nowhere() -> None:
    x = np.random.default_rng(0).integers(0, 8, 256).astype(np.int32)
    out = empty(9, "i32", 0)
    histogram_kernel[(1,)](put(x, "i32"), out, 256)
    assert get(out).tolist() == [*np.bincount(x, minlength=8), x.sum()]


@triton.jit
def shifted_kernel(X, O, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(O + 1 + i % 128, tl.load(X + i), sem="relaxed")


@pytest.mark.parametrize("same", [True, False])
def test_everything_is_read_first(same: bool) -> None:
    x = np.arange(129, dtype=np.int32)
    array = put(x, "i32")
    out = array if same else put(x, "i32")
    shifted_kernel[(1,)](array, out, 128)
    assert get(out).tolist() == [0, *(x[1:] + x[:-1])]


@triton.jit
def gathered_kernel(X, INDEX, Y, O, n, ROWS: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, 32)[None, :]
    chosen = tl.load(INDEX + row, row < n)
    chosen = tl.where(chosen < 0, chosen + 7, chosen)
    tl.device_assert(((chosen >= 0) & (chosen < 7)) | ~(row < n))
    x = tl.load(X + (column + 32 * chosen), row < n, other=0.0) + tl.load(
        Y + 32 * row + column, row < n, other=0.0
    )
    total = tl.sum(tl.where(row < n, x, 0), 1)[:, None]
    tl.store(Y + 32 * row + column, x, row < n)
    tl.atomic_add(O + tl.broadcast_to(column + 32 * chosen, [ROWS, 32]), x - total, row < n, sem="relaxed")


@pytest.mark.parametrize("rows", [1, 4])
def test_offsets_that_a_load_and_an_update_share(rows: int) -> None:
    """The loop of the reduction keeps the offsets, of which the load needs the first lane only."""
    x = np.random.default_rng(0).integers(0, 9, (7, 32)).astype(np.float32)
    index, out = np.array([-2, 3, 3, 1], np.int64)[:rows], empty((7, 32), "fp32", 0)
    y = np.ones((rows, 32), np.float32)
    gathered_kernel[(1,)](put(x, "fp32"), put(index, "i64"), put(y, "fp32"), out, rows, rows)
    wanted = np.zeros((7, 32), np.float32)
    x = x[index] + y
    np.add.at(wanted, index, x - x.sum(1, keepdims=True))
    np.testing.assert_array_equal(get(out), wanted)


def test_threads_and_launches_update_the_same_rows() -> None:
    """Some by locks and some by atomic operations, at places of which some lie in two stripes, while others launch."""
    columns, rows, launches = 25, 7, 12
    random = np.random.default_rng(0)
    x = random.integers(-9, 10, INDEX.size * columns).astype(np.float32)
    out, old = empty(rows * columns, "fp32", 0), [empty(x.size, "fp32") for _ in range(2)]
    kernels = [make_kernel(KERNEL.format(op="add", scope=scope)) for scope in ("gpu", "sys")]
    given, index = put(x, "fp32"), put(INDEX, "i64")

    def work(number: int) -> None:
        for turn in range(launches):
            kernel = kernels[(number + turn) % 2]
            kernel[(triton.cdiv(x.size, 16),)](given, index, out, old[number], x.size, columns, 16)

    for number in range(2):  # compiled before the threads start
        work(number)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    once, _ = expected("add", x, np.zeros(rows * columns, np.float32), columns)
    assert_same(get(out), 4 * launches * once)

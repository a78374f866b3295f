"""The limits of the machine, measured with the kit's own kernels in a process without a candidate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.conformance.judge.arrays import Arrays
from triton_porting_kit.conformance.judge.values import Place

SIZES = (1 << 16, 1 << 20, 1 << 24)
"""Array sizes in fp32 elements. They include sizes that fit in caches, because a candidate's data may be cached."""
RUNS = 100
SECONDS = 0.2
"""The time limit for each size. With many runs, some are likely to be free of interference by other programs."""
EDGE = 512
"""The number of rows and columns of the matrices whose product is timed."""
TUNING = 3.0
"""The assumed ratio between the speed of a tuned matrix product and this one."""


@triton.jit
def _copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def _product_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * n + start + inner[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * n + cols[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], total)


def measure(arrays: Arrays, kind: str, flops: bool, host: bool) -> dict[str, float]:
    """Measure bytes per second and, with `flops`, operations per second on operands of `kind`.

    `host`: the device is the CPU that runs this process.
    """
    best = 0.0
    for size in SIZES:
        if best and 8 * size / best > SECONDS:
            break  # a simulated chip, which is slow
        x, out = (arrays.empty(Place("fp32", (size,), 0)) for _ in range(2))
        arrays.write(x, memoryview(bytes(4 * size)))

        def copy(x: Any = x, out: Any = out, size: int = size) -> None:
            _copy_kernel[(triton.cdiv(size, 4096),)](x, out, size, BLOCK=4096)

        best = max(best, 8 * size / _fastest(copy, arrays))
    if host:  # other programs disturb one thread less than all threads
        x, out = (np.ones(1 << 18, np.float32) for _ in range(2))
        best = max(best, 2 * x.nbytes / _fastest(lambda: np.copyto(out, x), arrays))
    found = {"bandwidth": best}
    if flops:
        a, b = (arrays.empty(Place(kind, (EDGE, EDGE), 0)) for _ in range(2))
        product = arrays.empty(Place("fp32", (EDGE, EDGE), 0))
        for operand in (a, b):
            arrays.write(operand, memoryview(bytes(EDGE * EDGE * operand.element_size())))

        def multiply() -> None:
            _product_kernel[(EDGE // 64, EDGE // 64)](a, b, product, EDGE, BLOCK=64)

        fastest = _fastest(multiply, arrays)
        if host:
            m = np.ones((EDGE, EDGE), np.float32)
            fastest = min(fastest, _fastest(lambda: m @ m, arrays))
        found["peak"] = TUNING * 2 * EDGE**3 / fastest
    return found


def _fastest(call: Callable[[], object], arrays: Arrays) -> float:
    call()  # compiles
    arrays.wait(True)
    best, end = float("inf"), time.perf_counter() + SECONDS
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        arrays.wait(True)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return max(best, 1e-9)

"""Programs whose launches are compared: run as ``python compared_programs.py NAME``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


@triton.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) + 1, mask=inside)


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=inside, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + offsets, weights / tl.sum(weights, 0), mask=inside)


@triton.jit
def waves(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    scaled = tl.sqrt(tl.abs(x))
    wave = tl.sin(x)
    tl.store(out_ptr + offsets, scaled * wave)


@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns, inner = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], tl.arange(0, BLOCK)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows * K + (start + inner)[None, :])
        total = tl.dot(a, tl.load(b_ptr + (start + inner)[:, None] * M + columns), total)
    tl.store(c_ptr + rows * M + columns, total.to(tl.bfloat16))


@triton.jit
def total(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + offsets), 0))


@triton.jit
def tickets(counter_ptr, out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.atomic_add(counter_ptr, 1))


@triton.jit
def quantise(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, (x / 0.3 * 10).to(tl.int8))


@triton.jit
def undefined(x_ptr, n_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    quotients = tl.load(n_ptr + offsets) // (offsets % 4)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.int8))
    tl.store(out_ptr + BLOCK + offsets, quotients.to(tl.int8))


@triton.jit
def fails(out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.device_assert(offsets < 3, "too large")
    tl.store(out_ptr + offsets, offsets)


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> DeviceArray:
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return DeviceArray.from_numpy(values, triton.runtime.driver.active.device)


def zeros(*shape: int, dtype: str = "float32") -> DeviceArray:
    return DeviceArray.zeros(shape, dtype, triton.runtime.driver.active.device)


def seventy() -> None:
    """70 launches, of which the 38th is the only one of `waves`."""
    x, y, out, counts = numbers(6, 128), numbers(6, 128, seed=1), zeros(6, 128), zeros(1000, dtype="int32")
    for number in range(70):
        if number == 37:
            waves[(3,)](x, out, BLOCK=256)
        elif number % 3 == 0:
            add[(3,)](x, y, out, 700, BLOCK=256)
        elif number % 3 == 1:
            increment[(4,)](counts, 1000, BLOCK=256)
        else:
            softmax[(6,)](x, out, 128, BLOCK=128)


def one_of_each() -> None:
    """A launch of each of several kernels."""
    x = numbers(256)
    add[(3,)](numbers(700), numbers(700, seed=1), zeros(700), 700, BLOCK=256)
    increment[(4,)](zeros(1000, dtype="int32"), 1000, BLOCK=256)
    softmax[(7,)](numbers(7, 100), zeros(7, 100), 100, BLOCK=128)
    waves[(2,)](numbers(512), zeros(512), BLOCK=256)
    copy[(1,)](x, zeros(256), BLOCK=256)
    product[(1,)](
        numbers(32, 128, dtype=np.float16), numbers(128, 32, dtype=np.float16, seed=1), zeros(32, 32, dtype="bfloat16"),
        128, M=32, BLOCK=32,
    )  # fmt: skip
    total[(8,)](numbers(1024), zeros(1), BLOCK=128)
    tickets[(8,)](zeros(1, dtype="int32"), zeros(8, dtype="int32"))
    quantise[(1,)](numbers(256), zeros(256, dtype="int8"), BLOCK=256)
    large = DeviceArray.from_numpy(np.float32(100) * np.arange(8, dtype=np.float32), x.device)
    count = DeviceArray.from_numpy(np.arange(8, dtype=np.int32), x.device)
    undefined[(1,)](large, count, zeros(16, dtype="int8"), BLOCK=8)


def sizes() -> None:
    """Launches with little memory and with much."""
    for _ in range(6):
        increment[(1,)](zeros(100, dtype="int32"), 100, BLOCK=128)
    copy[(1,)](numbers(1 << 16), zeros(1 << 16), BLOCK=256)


def unhappy() -> None:
    """A launch that raises, and the end."""
    fails[(1,)](zeros(8, dtype="int32"), BLOCK=8, debug=True)


def nothing() -> None:
    print("no kernel is launched")


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__: program for program in (seventy, one_of_each, sizes, unhappy, nothing)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()

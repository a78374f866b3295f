"""Pointers that are moved before functions which are not inlined get them, or in `while` loops."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime import driver

from triton_porting_kit.kernels.places import DevicePlace, Operand


@triton.jit(noinline=True)
def put(place, value):
    tl.store(place, value)


@triton.jit
def fill(o, n):
    for k in range(n):
        put(o + k, 10 + k)
    put(o, 7)


@pytest.mark.usefixtures("through_linalg")
def test_a_function_gets_moved_pointers() -> None:
    place = DevicePlace(driver.active.device)
    o = place.put(Operand(np.zeros(5), "int32"))
    fill[(1,)](o, 4)
    assert place.get(o).tolist() == [7, 11, 12, 13, 0]


@triton.jit
def walk(x, o, n):
    total = 0
    left = n
    while left > 0:
        total += tl.load(x)
        x += 2
        left -= 1
    tl.store(o, total)
    tl.store(o + 1, tl.load(x))


@pytest.mark.usefixtures("through_linalg")
def test_a_while_loop_carries_pointers() -> None:
    place = DevicePlace(driver.active.device)
    x = place.put(Operand(np.arange(10.0) ** 2, "int32"))
    o = place.put(Operand(np.zeros(2), "int32"))
    walk[(1,)](x, o, 3)
    assert place.get(o).tolist() == [0 + 4 + 16, 36]

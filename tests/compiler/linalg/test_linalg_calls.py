"""Pointers that were moved before they are passed to functions which are not inlined."""

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

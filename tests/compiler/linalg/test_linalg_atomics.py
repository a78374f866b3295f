"""Atomic operations of the form on the CPU, by many programs at once."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime import driver

from triton_porting_kit.kernels.places import DevicePlace, Operand


@triton.jit
def count(counter, B: tl.constexpr):
    at = tl.arange(0, B)
    done = tl.zeros((B,), tl.int1)
    left = tl.full((), B, tl.int32)
    while left > 0:
        old = tl.load(counter + at, volatile=True)
        found = tl.atomic_cas(counter + at, old, tl.where(done, old, old + 1))
        done = done | (found == old)
        left = tl.sum((done == 0).to(tl.int32), 0)


@pytest.mark.usefixtures("through_linalg")
def test_compare_and_swap_loses_no_update() -> None:
    place = DevicePlace(driver.active.device)
    counter = place.put(Operand(np.zeros(8), "int32"))
    count[(500,)](counter, B=8)
    assert (place.get(counter) == 500).all()

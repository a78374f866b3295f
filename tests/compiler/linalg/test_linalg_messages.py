"""Assertions and prints in the form, and on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime import driver

from triton_porting_kit.errors import DeviceError
from triton_porting_kit.kernels.places import DevicePlace, Operand


@triton.jit
def checked(x, o, limit, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    value = tl.load(x + at)
    tl.device_assert(value < limit, 'too "large"')
    tl.store(o + at, value)


@triton.jit
def printed(x, n, B: tl.constexpr):
    tl.device_print("loaded", tl.load(x + tl.arange(0, B)), n)


@pytest.mark.usefixtures("through_linalg")
def test_an_assertion_ends_the_kernel_at_its_first_false_element() -> None:
    place = DevicePlace(driver.active.device)
    values = np.arange(32.0).reshape(4, 8)
    x, o = (place.put(Operand(array, "float32")) for array in (values, np.zeros((4, 8))))
    checked[(1,)](x, o, 100.0, M=4, N=8, debug=True)
    assert (place.get(o) == values).all()

    def fail() -> None:
        checked[(1,)](x, place.put(Operand(np.zeros((4, 8)), "float32")), 19.0, M=4, N=8, debug=True)
        place.synchronize()

    with pytest.raises(
        DeviceError, match=r'element \(2, 3\): .*test_linalg_messages\.py:\d+, in checked: too "large"'
    ):
        fail()


@pytest.mark.usefixtures("through_linalg")
def test_a_print_shows_each_element(capfd: pytest.CaptureFixture[str]) -> None:
    place = DevicePlace(driver.active.device)
    printed[(1,)](place.put(Operand(np.array([1.5, -2.0]), "float32")), 7, B=2)
    place.synchronize()
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert [float(line[-1]) for line in lines] == [1.5, -2.0, 7.0]
    assert all("loaded" in " ".join(line) for line in lines)

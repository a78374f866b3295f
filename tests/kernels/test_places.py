"""Rounding to the types of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from triton_porting_kit.kernels.places import bfloat16_bits, from_bfloat16_bits, round_to


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.5, 0xC020),
        (1 + 2**-8, 0x3F80),
        (1 + 3 * 2**-8, 0x3F82),
        (1 + 2**-8 + 2**-20, 0x3F81),
        (3.4e38, 0x7F80),
        (float("-inf"), 0xFF80),
        (float("nan"), 0x7FC0),
        (2.0**-133, 0x0001),
    ],
)
def test_bfloat16_rounds_to_nearest_even(value: float, bits: int) -> None:
    assert bfloat16_bits(np.array([value])).tolist() == [bits]


def test_every_bfloat16_value_survives() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = from_bfloat16_bits(bits)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(bfloat16_bits(values[numbers]), bits[numbers])


def test_round_to_keeps_bool_and_widens_the_rest() -> None:
    assert round_to(np.array([True]), "bool").values.dtype == bool
    assert round_to(np.array([0.1]), "float16").values.tolist() == [float(np.float16(0.1))]

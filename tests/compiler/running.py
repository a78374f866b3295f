"""Running small kernels on the CPU backend, with the types, values and exact rounding of the table of operations.

Element types go by Triton's names (``fp32``, ``u8``). On the host, values of a floating-point type are NumPy
arrays of that type; bfloat16, which NumPy lacks, is held in float32 arrays whose values are all bfloat16's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance import types
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.language.values import pairs, samples
from triton_porting_kit.conformance.rounding import (
    from_float64,
    round_exact,
    rounded,
    ulp_distance,
    wrap,
)
from triton_porting_kit.conformance.types import FLOATS, INTEGERS, NUMBERS, Array, Kind
from triton_porting_kit.driver import DeviceArray

__all__ = [
    "FLOATS", "INTEGERS", "KINDS", "NUMBERS", "Array", "Kind", "assert_same", "device", "empty", "from_float64", "get",
    "make_kernel", "pairs", "put", "round_exact", "rounded", "samples", "ulp_distance", "wrap",
]  # fmt: skip

KINDS = {name: kind for name, kind in types.KINDS.items() if not kind.is_minifloat}
"""Every type but the 8-bit floating-point ones, which have tests of their own."""


def device() -> Any:
    """The active driver's device."""
    from triton.runtime import driver

    return driver.active.device


def put(values: Array, kind: Kind | str) -> DeviceArray:
    """Host values on the device."""
    kind = KINDS[kind] if isinstance(kind, str) else kind
    return DeviceArray.from_numpy(types.to_bits(np.ascontiguousarray(values), kind), device(), kind.device)


def get(array: DeviceArray) -> Array:
    """The values of a device array, on the host."""
    values = array.numpy()
    if str(array.dtype) == "bfloat16":
        return types.from_bits(np.asarray(values).view(np.uint16), KINDS["bf16"])
    return values


def empty(shape: int | Sequence[int], kind: Kind | str, fill: int = 0xA5) -> DeviceArray:
    """An output, full of a byte that is unlikely to be right."""
    kind = KINDS[kind] if isinstance(kind, str) else kind
    array = DeviceArray.empty(shape, kind.device, device())
    device().memset(array.data_ptr(), fill if kind.bits > 1 else 1, array.nbytes, 0)
    return array


def assert_same(actual: Array, expected: Array, message: str = "") -> None:
    """Equal bit for bit, signs of zero included; any NaN is as good as another."""
    expected = np.asarray(expected, actual.dtype)
    np.testing.assert_array_equal(actual, expected, message)
    if actual.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(actual)[known], np.signbit(expected)[known], f"{message}: sign of zero"
        )

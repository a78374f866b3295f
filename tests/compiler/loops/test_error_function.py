"""The error function, by intervals with AVX2 and by two polynomials elsewhere, against the host's in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from native_functions import Array, element_function
from running import KINDS, ulp_distance

from triton_porting_kit.compiler.loops.arithmetic.error_function import erf
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.target import CpuTarget

# Lanes, lanes of the target's lookup, and the error that was measured over all numbers that are not tiny.
WAYS = {"halves": (8, 0, 0.992), "scalar": (1, 0, 0.992)}
if (_lookup := CpuTarget.host().lookup_lanes) >= 8:
    WAYS |= {"8 intervals": (8, 8, 0.906), "few lanes": (4, _lookup, 0.992)}
if _lookup == 16:
    WAYS["16 intervals"] = (16, 16, 0.709)


def run(way: str, x: Array) -> Array:
    lanes, lookup, _ = WAYS[way]

    def emit(builder: LoopBuilder, value: Value) -> Value:
        return erf(Lanes(builder, value), lookup == 16).value

    return element_function(emit, "f32", "f32", lanes=lanes, lookup_lanes=lookup)(x, np.float32)


@pytest.mark.parametrize("way", WAYS)
def test_error(way: str) -> None:
    step = 1021 if way.endswith("intervals") else 1021 * 16
    patterns = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([patterns, np.linspace(-4.5, 4.5, 1 << 16, dtype=np.float32)])
    x = x[: x.size // 16 * 16]
    exact = np.array([math.erf(number) for number in x.tolist()])
    distance = ulp_distance(run(way, x), exact, KINDS["fp32"])
    # What rounding takes from a product cannot be told where it is a denormal.
    tiny = np.abs(x) < 2.0**-100
    assert distance[tiny].max() <= 1
    distance[tiny] = 0
    worst = int(distance.argmax())
    assert distance[worst] <= WAYS[way][2], f"{distance[worst]} units at {x[worst]!r}"


@pytest.mark.parametrize("way", WAYS)
def test_edges(way: str) -> None:
    tiny = 2.0**-149
    x = np.array(
        [0, -0.0, math.inf, -math.inf, 4, -4, 3.95, 1e30, tiny, -tiny, 2.0**-127, math.nan], np.float32
    )
    found = run(way, np.concatenate([x, x, x, x]))[: x.size]
    whole = [0, -0.0, 1, -1, 1, -1, 1, 1, tiny, -tiny]
    np.testing.assert_array_equal(found[:10], np.array(whole, np.float32))
    assert np.signbit(found[1])
    assert found[10] == np.float32(2.0**-127 * 2 / math.sqrt(math.pi))
    assert np.isnan(found[11])


@pytest.mark.parametrize("way", WAYS)
def test_it_is_odd(way: str) -> None:
    x = np.linspace(0, 4.5, 1 << 12, dtype=np.float32)
    np.testing.assert_array_equal(run(way, -x), -run(way, x))

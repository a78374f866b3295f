"""Arithmetic on bf16: every number with each of some others, with NaN of any payload, as in float32 rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import triton
import triton.language as tl
from native_functions import Array, nearest_bf16
from poisoned import Poisoned, targets

BLOCK = 1 << 16


@triton.jit
def arithmetic(X, Y, O, OP: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x, y = tl.load(X + i), tl.load(Y + i)
    if OP == "sum":
        z = x + y
    elif OP == "difference":
        z = x - y
    elif OP == "product":
        z = x * y
    elif OP == "quotient":
        z = x / y
    elif OP == "maximum":
        z = tl.maximum(x, y)
    elif OP == "minimum":
        z = tl.minimum(x, y)
    elif OP == "maximum or NaN":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    else:
        z = tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)
    tl.store(O + i, z.to(tl.bfloat16))


OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "difference": np.subtract,
    "product": np.multiply,
    "quotient": np.divide,
    "maximum": np.fmax,
    "minimum": np.fmin,
    "maximum or NaN": np.maximum,
    "minimum or NaN": np.minimum,
}

OTHERS = np.array(
    # zeros, denormals, ones, a third, the largest number, infinities, and NaN: signalling and quiet, of few and all bits
    [
        0,
        0x8000,
        1,
        0x807F,
        0x3F80,
        0xBF80,
        0x3EAB,
        0x7F7F,
        0x7F80,
        0xFF80,
        0x7F81,
        0xFFC0,
        0x7FC1,
        0x7FFF,
        0xFFFF,
    ],
    np.uint16,
)


def wide(patterns: Array) -> Array:
    return (patterns.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("operation", OPERATIONS)
def test_results_are_those_of_float32_rounded_once(operation: str, target: str) -> None:
    kernel = Poisoned(
        arithmetic, {"X": "*bf16", "Y": "*bf16", "O": "*bf16"}, targets()[target], OP=operation, B=BLOCK
    )
    x = np.tile(np.arange(BLOCK, dtype=np.uint16), OTHERS.size)
    y = np.repeat(OTHERS, BLOCK)
    found = kernel(OTHERS.size, X=x, Y=y, O=np.zeros_like(x))["O"]
    with np.errstate(all="ignore"):
        exact = OPERATIONS[operation](wide(x), wide(y))
    expected = nearest_bf16(exact)
    nan, zero = np.isnan(exact), exact == 0
    assert np.isnan(wide(found[nan])).all()
    assert not wide(found[zero]).any()  # a maximum of both zeros is either
    rest = ~nan & ~zero
    np.testing.assert_array_equal(found[rest], expected[rest])
    if operation in ("sum", "difference", "product", "quotient"):
        np.testing.assert_array_equal(found[zero], expected[zero])

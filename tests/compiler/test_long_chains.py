"""Kernels whose unrolled loops make thousands of operations compile, whatever the depth of the call to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from running import Array, empty, get, make_kernel, put

#: What a step does to x and y, with the same in NumPy (float32); how many steps.
CASES: dict[str, tuple[str, Callable[[Array, Array], tuple[Any, Any]], int]] = {
    "cheap": ("x = x * 0.5 + 1.0", lambda x, y: (x * 0.5 + 1, y), 1200),
    "dear": ("x = tl.exp(x * 0.125)", lambda x, y: (np.exp(x * 0.125), y), 600),
    "crossing": (
        "x, y = tl.exp(x * 0.125) * 0.5 + y * 0.25, x - y * 0.5",
        lambda x, y: (np.exp(x * 0.125) * 0.5 + y * 0.25, x - y * 0.5),
        100,
    ),
    "reduced": ("x = x * 0.5 + tl.sum(x) * 0.0078125", lambda x, y: (x * 0.5 + x.sum() * 0.0078125, y), 100),
    "transposed": ("x = (tl.trans(x.reshape(8, 8)) * 0.75).reshape(64)", lambda x, y: (x.reshape(8, 8).T.ravel() * 0.75, y), 100),
}  # fmt: skip


def from_deep_down(call: Callable[[], None], frames: int) -> None:
    if frames:
        from_deep_down(call, frames - 1)
    else:
        call()


@pytest.mark.parametrize("name", CASES)
def test_long_chain(name: str) -> None:
    line, reference, count = CASES[name]
    source = f"""def chains(X, O, COUNT: tl.constexpr):
    i = tl.arange(0, 64)
    x = tl.load(X + i)
    y = x
    for _ in tl.static_range(COUNT):
        {line}
    tl.store(O + i, x)
"""
    start = np.linspace(0, 1, 64, dtype=np.float32)
    out = empty(64, "fp32")
    from_deep_down(lambda: make_kernel(source)[(1,)](put(start, "fp32"), out, COUNT=count) and None, 150)
    x, y = start.astype(np.float64), start.astype(np.float64)
    for _ in range(count):
        x, y = reference(x, y)
    np.testing.assert_allclose(get(out), x, rtol=1e-5, atol=1e-7)


#: Set-up, step and end of chains in addresses and masks, with what is stored where, in NumPy (I: 0, 1, ..., 63).
I = np.arange(64)
ADDRESSES: dict[str, tuple[str, str, str, Array]] = {
    "integers": ("x = i", "x = (x * 3 + j) % 64", "tl.store(O + i, x)", np.empty(0)),
    "narrow_integers": ("x = i.to(tl.int16)", "x = x * 3 + j", "tl.store(O + i, x)", np.empty(0)),
    "affine_offsets": ("x = i", "x = x + n * j", "tl.store(O + (x - n * 179700), i)", I),
    "explicit_offsets": (
        "p = X + i", "p = p + ((i * i + j) % 2 * n - 3 * (j % 2))", "tl.store(O + i, tl.load(p))", I,
    ),
    "masks": ("m = i < 64", "m = m & (i < 64 + n * j)", "tl.store(O + i, i, mask=m)", I),
    "choices": ("x = i", "x = tl.where(x > j, x - 1, x + 1)", "tl.store(O + i, x)", np.empty(0)),
}  # fmt: skip
STEPS = 600


def reference(name: str) -> Array:
    x = I.copy()
    for j in range(STEPS):
        if name == "integers":
            x = np.fmod(x * 3 + j, 64)
        elif name == "narrow_integers":
            x = (x * 3 + j).astype(np.int16).astype(np.int64)
        elif name == "choices":
            x = np.where(x > j, x - 1, x + 1)
    return x


@pytest.mark.parametrize("name", ADDRESSES)
def test_long_chain_in_an_address(name: str) -> None:
    start, step, end, expected = ADDRESSES[name]
    source = f"""def addresses(X, O, n, COUNT: tl.constexpr):
    i = tl.arange(0, 64)
    {start}
    for j in tl.static_range(COUNT):
        {step}
    {end}
"""
    out = empty(64, "i32")
    from_deep_down(lambda: make_kernel(source)[(1,)](put(I, "i32"), out, 3, COUNT=STEPS) and None, 150)
    np.testing.assert_array_equal(get(out), expected if expected.size else reference(name))

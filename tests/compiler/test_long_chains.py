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

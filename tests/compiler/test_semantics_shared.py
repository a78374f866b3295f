"""Chains whose steps use one value twice: there are 2^48 paths through them, so compiling must visit each value once."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from running import Array, empty, get, put

STEPS = 48
SIZE = 32

pytestmark = pytest.mark.usefixtures("cpu_backend")


@triton.jit
def shared_kernel(X, O, STEPS: tl.constexpr, SIZE: tl.constexpr, WHERE: tl.constexpr):
    row = tl.arange(0, SIZE)
    i = row[:, None] * SIZE + row[None, :]
    j = row[:, None] + row[None, :] * SIZE if WHERE == "transposed" else i
    mask = i < SIZE * SIZE
    if WHERE == "offsets":
        for _ in tl.static_range(STEPS):
            j = (j + j * 3 + 1) % (SIZE * SIZE)
    if WHERE == "masks":
        for _ in tl.static_range(STEPS):
            mask = (mask & (i > 5)) | (mask ^ (i < 7))
    v = tl.load(X + j, mask=mask, other=0.0)
    for _ in tl.static_range(STEPS):
        v = v * 0.25 * v + v * 0.5
    if WHERE == "sums":
        tl.store(O + row, tl.sum(v, 1))
    elif WHERE == "scans":
        tl.store(O + i, tl.cumsum(v, 1))
    elif WHERE == "products":
        tl.store(O + i, tl.dot(v, tl.trans(v)))
    else:
        tl.store(O + i, v)


def expected(x: Array, where: str) -> Array:
    i = np.arange(SIZE * SIZE)
    j = i.reshape(SIZE, SIZE).T.ravel() if where == "transposed" else i.copy()
    mask = np.ones(SIZE * SIZE, bool)
    for _ in range(STEPS):
        if where == "offsets":
            j = (j + j * 3 + 1) % (SIZE * SIZE)
        if where == "masks":
            mask = (mask & (i > 5)) | (mask ^ (i < 7))
    v = np.where(mask, x.ravel()[j], np.float32(0)).astype(np.float64).reshape(SIZE, SIZE)
    for _ in range(STEPS):
        v = v * 0.25 * v + v * 0.5
    results = {"sums": lambda: v.sum(1), "scans": lambda: v.cumsum(1), "products": lambda: v @ v.T}
    return results.get(where, lambda: v)()


@pytest.mark.parametrize("where", ["stores", "transposed", "offsets", "masks", "sums", "scans", "products"])
def test_values_that_are_used_twice(where: str) -> None:
    # At 2 a step gives 2 again, and below it the values fall to 0: both are kept apart by the sums.
    x = np.where(np.random.default_rng(0).random((SIZE, SIZE)) < 0.5, 2, 0.5).astype(np.float32)
    want = expected(x, where)
    out = empty(want.size, "fp32", fill=255)
    shared_kernel[(1,)](put(x, "fp32"), out, STEPS, SIZE, where)
    np.testing.assert_allclose(get(out).reshape(want.shape), want, rtol=1e-5, atol=1e-6)

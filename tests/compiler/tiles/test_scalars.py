"""The core loads scalars itself where tiles fit only without the buffers of scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from chip_backend import put, running_on
from triton.runtime.errors import OutOfResources


@triton.jit
def weights_without(X, CHOSEN, OUT, B: tl.constexpr):
    """Softmax of rows, without the weight of one element of each."""
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    chosen = tl.load(CHOSEN + row)
    x = tl.load(X + row * B + columns)
    weights = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(weights, axis=0) + tl.load(X + row * B + chosen)
    tl.store(OUT + row * B + columns, tl.where(columns == chosen, 0.0, weights / total))


def expected(x: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    rows = np.arange(len(x))
    weights = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    result = weights / (weights.sum(axis=1) + x[rows, chosen])[:, None]
    result[rows, chosen] = 0
    return result


@pytest.mark.parametrize(("size", "by_core"), [(1024, 0), (16384, 2)])
@pytest.mark.parametrize("stages", [1, 2])
def test_three_tiles_take_all_of_the_memory(size: int, by_core: int, stages: int) -> None:
    """Of 16384 floats: one loaded, one stored, and the weights, which vector code keeps."""
    rows = 50
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, size)).astype(np.float32)
    chosen = random.integers(0, size, rows)
    with running_on("ascend910b") as device:
        out = put(device, np.zeros_like(x))
        compiled = weights_without[(rows,)](
            put(device, x), put(device, chosen), out, B=size, num_stages=stages
        )
        np.testing.assert_allclose(out.numpy(), expected(x, chosen), rtol=1e-4, atol=1e-7)
        assert compiled.asm["placed"].count("tpk.npu_element_load") == by_core


def test_tiles_that_do_not_fit_without_scalars_either() -> None:
    with running_on("ascend910b") as device:
        x = put(device, np.zeros((1, 32768), np.float32))
        with pytest.raises(OutOfResources, match="weights_without needs"):
            weights_without[(1,)](x, put(device, np.zeros(1, np.int64)), x, B=32768)

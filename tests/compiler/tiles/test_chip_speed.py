"""How fast kernels are by the chip's clock, and what they move and multiply, by its counters. Both are the same in every
run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import triton
from chip_backend import VirtualChip, put, running_on
from chip_kernels import add, attention, matmul
from npus import memory, unit

from triton_porting_kit.kernels.layer_norm import layer_norm_backward_kernel, layer_norm_forward_kernel
from triton_porting_kit.kernels.softmax import softmax_kernel

MATRIX, GLOBAL = 1, 0
"""Numbers of the unit and of the memory among the chip's counters."""


@pytest.fixture(scope="module")
def device() -> Iterator[VirtualChip]:
    with running_on("n1") as opened:
        yield opened


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Launched:
    """What a launch has taken: cycles behind its start, those in which the matrix units computed, and bytes of global
    memory.
    """

    cycles: float
    multiplied: float
    bytes: int

    def busy(self, device: VirtualChip) -> float:
        """The share of the time in which the matrix units computed."""
        return self.multiplied / device.description.cores / self.cycles

    def bandwidth(self, device: VirtualChip) -> float:
        """The share of the bandwidth of global memory."""
        return self.bytes / self.cycles / device.description.global_memory.bytes_per_cycle


def launched(device: VirtualChip, launch: Callable[[], object]) -> Launched:
    start, end = device.create_event(), device.create_event()
    device.synchronize()
    before = unit(device.chip, MATRIX).busy, memory(device.chip, GLOBAL).bytes
    device.record_event(start)
    launch()
    device.record_event(end)
    device.synchronize()
    after = unit(device.chip, MATRIX).busy, memory(device.chip, GLOBAL).bytes
    description = device.description
    cycles = device.elapsed_time(start, end) * 1e3 * description.clock_mhz - description.launch_cycles
    return Launched(cycles, after[0] - before[0], after[1] - before[1])


def attend(device: VirtualChip, dim: int, causal: bool) -> Launched:
    """Attention of 8x1024 queries by tiles of 64x128."""
    heads, n = 8, 1024
    q, k, v = (floats(heads, n, dim, seed=seed).astype(np.float16) for seed in range(3))
    out = put(device, np.zeros_like(q))
    arrays = [put(device, values) for values in (q, k, v)]
    scale = dim**-0.5 * 1.4426950408889634
    taken = launched(
        device,
        lambda: attention[(n // 64, heads)](*arrays, out, scale, n, D=dim, BM=64, BN=128, CAUSAL=causal),
    )
    scores = np.einsum("hmd,hnd->hmn", q.astype(np.float32), k.astype(np.float32)) * dim**-0.5
    if causal:
        scores = np.where(np.tri(n)[None] > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), expected, rtol=2e-2, atol=4e-3)
    return taken


@pytest.mark.parametrize("dim", [64, 128])
def test_attention_multiplies_beside_its_vector_code(device: VirtualChip, dim: int) -> None:
    whole, causal = (attend(device, dim, causal) for causal in (False, True))
    assert whole.busy(device) >= 0.55
    assert causal.multiplied / whole.multiplied <= 0.6
    assert causal.bytes / whole.bytes <= 0.6


def test_the_next_product_begins_while_the_last_one_is_stored(device: VirtualChip) -> None:
    m, n, k = 2048, 1024, 512
    a, b = floats(m, k).astype(np.float16), floats(k, n, seed=1).astype(np.float16)
    out = put(device, np.zeros((m, n), np.float16))
    left, right = put(device, a), put(device, b)
    grid = (m // 128 * n // 256,)
    taken = launched(device, lambda: matmul[grid](left, right, out, m, n, k, k, n, n, BM=128, BN=256, BK=64))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), expected, rtol=4e-3, atol=4e-2)
    assert taken.busy(device) >= 0.85


def test_a_sum_of_vectors_moves_every_byte_once(device: VirtualChip) -> None:
    size = 1 << 20
    x, y, out = (put(device, np.arange(size, dtype=np.float32)) for _ in range(3))
    taken = launched(device, lambda: add[(size // 8192,)](x, y, out, size, B=8192))
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(size, dtype=np.float32))
    assert taken.bytes == 3 * 4 * size
    assert taken.bandwidth(device) >= 0.9


def test_softmax_moves_every_byte_once(device: VirtualChip) -> None:
    rows, columns = 512, 4096
    values = floats(rows, columns)
    x, out = put(device, values), put(device, np.zeros_like(values))
    taken = launched(
        device, lambda: softmax_kernel[(rows,)](x, out, columns, columns, columns, BLOCK=columns)
    )
    exponentials = np.exp(values - values.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), exponentials / exponentials.sum(1, keepdims=True), rtol=1e-4)
    assert taken.bytes == 2 * values.nbytes
    assert taken.bandwidth(device) >= 0.9


@pytest.mark.parametrize("columns", [4096, 4000])
def test_layer_norm_moves_every_byte_once(device: VirtualChip, columns: int) -> None:
    rows = 512
    values, weight, bias = floats(rows, columns), floats(columns, seed=1), floats(columns, seed=2)
    x, y = put(device, values), put(device, np.zeros_like(values))
    mean, rstd = (put(device, np.zeros(rows, np.float32)) for _ in range(2))
    arrays = [x, put(device, weight), put(device, bias), y, mean, rstd]
    block = triton.next_power_of_2(columns)
    taken = launched(device, lambda: layer_norm_forward_kernel[(rows,)](*arrays, columns, 1e-5, BLOCK=block))
    deviation = 1 / np.sqrt(values.var(1) + 1e-5)
    expected = (values - values.mean(1)[:, None]) * deviation[:, None] * weight + bias
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(rstd.numpy(), deviation, rtol=1e-4)
    filled = 4 * block  # what is filled on chip counts as moved
    assert taken.bytes == rows * filled + values.nbytes + 2 * device.description.cores * filled
    assert taken.bandwidth(device) >= 0.9


def test_the_gradients_of_layer_norm_move_every_byte_once(device: VirtualChip) -> None:
    rows, columns, groups = 512, 4096, 16
    values, gradient, weight = (
        floats(rows, columns), floats(rows, columns, seed=1), floats(columns, seed=2),
    )  # fmt: skip
    mean, rstd = values.mean(1), 1 / np.sqrt(values.var(1) + 1e-5)
    inputs = [put(device, each) for each in (gradient, values, weight, mean, rstd)]
    dx = put(device, np.zeros_like(values))
    sums = [put(device, np.zeros((groups, columns), np.float32)) for _ in range(2)]
    taken = launched(
        device,
        lambda: layer_norm_backward_kernel[(groups,)](*inputs, dx, *sums, rows, columns, BLOCK=columns),
    )
    normalised = (values - mean[:, None]) * rstd[:, None]
    scaled = gradient * weight
    along = (scaled * normalised).mean(1)[:, None] * normalised + scaled.mean(1)[:, None]
    np.testing.assert_allclose(dx.numpy(), (scaled - along) * rstd[:, None], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sums[0].numpy().sum(0), (gradient * normalised).sum(0), rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(sums[1].numpy().sum(0), gradient.sum(0), rtol=1e-3, atol=1e-2)
    scalars = 2 * 64 * rows  # a burst for each mean and deviation
    partial = 2 * groups * weight.nbytes
    assert taken.bytes == 3 * values.nbytes + partial + device.description.cores * weight.nbytes + scalars
    assert taken.bandwidth(device) >= 0.9

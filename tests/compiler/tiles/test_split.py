"""Tiles that are larger than local memory, on each chip and in the interpreter, by NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
from chip_backend import VirtualChip, put, running_on
from chip_kernels import (
    add,
    large_chain,
    large_column_sums,
    large_doubled,
    large_doubled_in_place,
    large_masked,
    large_read_back,
    large_shifted,
    large_shifted_to,
    large_softmax,
    large_taken,
    large_weighted,
)
from triton.runtime.errors import OutOfResources

from triton_porting_kit.compiler.dialect.interpreter import interpret
from triton_porting_kit.errors import LaunchError

B = 512
"""A tile of B times B fp32 is 1 MiB: more than each chip's vector memory, or all of it."""


KERNELS = (
    add, large_chain, large_column_sums, large_doubled, large_doubled_in_place, large_masked, large_read_back,
    large_shifted, large_shifted_to, large_softmax, large_taken, large_weighted,
)  # fmt: skip


@pytest.fixture(scope="module", params=["n1", "ascend910b", "single"])
def device(request: pytest.FixtureRequest) -> Iterator[VirtualChip]:
    for kernel in KERNELS:
        kernel.device_caches.clear()  # they are another chip's
    with running_on(request.param) as opened:
        yield opened
    for kernel in KERNELS:
        kernel.device_caches.clear()


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-99, 99, shape).astype(np.float32)


def chained(x: Any, rows: Any, columns: Any, before: Any, m: int, n: int) -> np.ndarray[Any, Any]:
    """What `large_chain` writes over `before`."""
    i, j = np.arange(len(x))[:, None], np.arange(x.shape[1])[None, :]
    padded = np.pad(columns, (0, max(0, x.shape[1] - len(columns))))[: x.shape[1]]
    value = np.where(j <= i, x * rows[:, None] + padded[None, :] + i, -1.0)
    return np.where((i < m) & (j < n), value, before).astype(np.float32)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize(("m", "n"), [(512, 512), (700, 300), (3, 1)], ids=["whole", "ragged", "few"])
def test_a_chain_is_right(device: VirtualChip, m: int, n: int, stages: int) -> None:
    x, rows, columns, before = (
        numbers(m, 512),
        numbers(m, seed=1),
        numbers(n, seed=2),
        numbers(m, 512, seed=3),
    )
    out = put(device, before)
    given = [put(device, values) for values in (x, rows, columns)]
    large_chain[(triton.cdiv(m, B),)](*given, out, m, n, 512, B=B, num_stages=stages)
    np.testing.assert_array_equal(out.numpy(), chained(x, rows, columns, before, m, n))


def test_pieces_overlap(device: VirtualChip) -> None:
    x, out = put(device, numbers(B, B)), put(device, np.zeros((B, B), np.float32))
    compiled = large_doubled[(1,)](x, out, B=B)
    np.testing.assert_array_equal(out.numpy(), 2 * numbers(B, B))
    assert compiled.asm["placed"].count("copies = 2") == 2  # what is loaded, and what is stored


@pytest.mark.parametrize("kernel", ["pointer", "arguments"])
def test_a_tile_is_replaced_in_place(device: VirtualChip, kernel: str) -> None:
    x = put(device, numbers(B, B))
    if kernel == "pointer":
        large_doubled_in_place[(1,)](x, B=B)
    else:
        large_doubled[(1,)](x, x, B=B)
    np.testing.assert_array_equal(x.numpy(), 2 * numbers(B, B))


def test_masks_are_split(device: VirtualChip) -> None:
    x, before = numbers(B, B), numbers(B, B, seed=1)
    out = put(device, before)
    large_masked[(1,)](put(device, x), out, 1, B=B)
    i, j = np.indices((B, B))
    expected = np.where(i >= j, np.where((i + j) % 3 != 1, x, -5.0) + 1.0, before)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_rows_are_reduced(device: VirtualChip) -> None:
    m, n = 500, 400
    x = numbers(m, n) / 50
    out, sums = put(device, np.zeros_like(x)), put(device, np.zeros(m, np.float32))
    large_softmax[(1,)](put(device, x), out, sums, m, n, B=B)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(sums.numpy(), powers.sum(1), rtol=1e-5)
    np.testing.assert_allclose(out.numpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)


def test_vectors_are_split(device: VirtualChip) -> None:
    size = 300_000
    x, y, out = numbers(size), numbers(size, seed=1), put(device, np.zeros(size, np.float32))
    add[(1,)](put(device, x), put(device, y), out, size, B=1 << 19)
    np.testing.assert_array_equal(out.numpy(), x + y)


def test_what_would_read_what_a_part_has_stored_is_refused(device: VirtualChip) -> None:
    x = put(device, numbers(B + 1, B))
    with pytest.raises(OutOfResources, match="large_shifted needs"):
        large_shifted[(1,)](x, B=B)
    np.testing.assert_array_equal(x.numpy(), numbers(B + 1, B))


def test_arrays_that_turn_out_to_be_the_same_are_an_error(device: VirtualChip) -> None:
    x, out = put(device, numbers(B + 1, B)), put(device, np.zeros((B + 1, B), np.float32))
    large_shifted_to[(1,)](x, out, B, B=B)
    np.testing.assert_array_equal(out.numpy()[1:], numbers(B + 1, B)[:-1])
    large_shifted_to[(1,)](x, x, B, B=B)
    with pytest.raises(LaunchError, match="arrays overlap"):
        device.synchronize()


@pytest.mark.parametrize(("stride", "n"), [(B, B), (B + 3, B), (300, 300), (-B, B), (600, 7)])
def test_pieces_have_places_of_their_own(device: VirtualChip, stride: int, n: int) -> None:
    """Rows that lie behind each other, if only because the columns are fewer than those of the tile."""
    first = max(0, -stride) * (B - 1)
    before = numbers(abs(stride) * (B - 1) + n)
    x, out = put(device, before), put(device, np.zeros((B, B), np.float32))
    large_taken[(1,)](x[first:] if first else x, out, stride, n, B=B)
    rows = first + stride * np.arange(B)[:, None] + np.arange(n)
    np.testing.assert_array_equal(out.numpy()[:, :n], before[rows])
    before[rows] = 1
    np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize(("stride", "n"), [(0, B), (1, B), (299, 300), (-5, 7)])
def test_places_of_several_pieces_are_an_error(device: VirtualChip, stride: int, n: int) -> None:
    x, out = put(device, numbers(B, B)), put(device, np.zeros((B, B), np.float32))
    large_taken[(1,)](x, out, stride, n, B=B)
    with pytest.raises(LaunchError, match="arrays overlap"):
        device.synchronize()


def test_what_is_loaded_behind_a_store_is_not_of_its_array(device: VirtualChip) -> None:
    before = numbers(B, B)
    x, again, out = put(device, before), put(device, before), put(device, before)
    large_read_back[(1,)](x, again, out, B=B)
    np.testing.assert_array_equal(x.numpy(), 1)
    np.testing.assert_array_equal(out.numpy(), before * 2)
    large_read_back[(1,)](x, x, out, B=B)
    with pytest.raises(LaunchError, match="arrays overlap"):
        device.synchronize()


def test_what_stays_whole_is_loaded_behind_a_store(device: VirtualChip) -> None:
    before, each = numbers(B, B), numbers(B, seed=1)
    x, means, weights, out = (put(device, a) for a in (before, np.zeros(B, np.float32), each, before))
    large_weighted[(1,)](x, means, weights, out, B=B)
    mean = before.mean(1, dtype=np.float64)
    np.testing.assert_allclose(means.numpy(), mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out.numpy(), (before - mean[:, None]) * each, rtol=1e-4, atol=1e-3)
    large_weighted[(1,)](x, means, means, out, B=B)
    with pytest.raises(LaunchError, match="arrays overlap"):
        device.synchronize()


def test_columns_are_reduced(device: VirtualChip) -> None:
    x, out = put(device, numbers(B, B)), put(device, np.zeros(B, np.float32))
    large_column_sums[(1,)](x, out, B=B)
    np.testing.assert_array_equal(out.numpy(), numbers(B, B).sum(0))


@pytest.mark.parametrize("stage", ["tiles", "placed"])
def test_pieces_agree_in_the_interpreter(device: VirtualChip, stage: str) -> None:
    m, n = 400, 300
    x, rows, columns, out = numbers(m, B), numbers(m, seed=1), numbers(n, seed=2), numbers(m, B, seed=3)
    given = [put(device, values) for values in (x, rows, columns, out)]
    compiled = large_chain.warmup(*given, m, n, B, B=B, grid=(1,))
    expected = chained(x, rows, columns, out, m, n)
    interpret(compiled.asm[stage], (1,), [x, rows, columns, out, m, n, B])
    np.testing.assert_array_equal(out, expected)

"""Products, reductions of columns and carried tiles that are larger than local memory, on each chip, by NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import chip_kernels
import numpy as np
import pytest
import split_kernels
import triton
from chip_backend import VirtualChip, put, running_on
from triton.runtime.errors import OutOfResources

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import LaunchError

B = 512
"""A tile of B times B fp32 is 1 MiB: more than each chip's vector memory, or all of it."""


@pytest.fixture(scope="module", params=["n1", "ascend910b", "single"])
def device(request: pytest.FixtureRequest) -> Iterator[VirtualChip]:
    with running_on(request.param) as opened:
        yield opened


def numbers(*shape: int, seed: int = 0, most: int = 8, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Small integers, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-most, most, shape).astype(dtype)


def zeros(device: VirtualChip, *shape: int, dtype: Any = np.float32) -> DeviceArray:
    return put(device, np.full(shape, -77, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(B, B, B), (64, 1024, 512), (1024, 64, 512)], ids=["all", "wide", "tall"])
def test_products(device: VirtualChip, shape: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = shape
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, seed=1, dtype=dtype)
    out = zeros(device, m, n)
    split_kernels.product[(1,)](put(device, a), put(device, b), out, M=m, N=n, K=k)
    np.testing.assert_array_equal(out.numpy(), a.astype(np.float32) @ b.astype(np.float32))


def test_products_of_pieces_are_the_matrix_units(device: VirtualChip) -> None:
    compiled = split_kernels.product.warmup(
        *(put(device, numbers(B, B, dtype=np.float16)) for _ in range(2)), zeros(device, B, B),
        M=B, N=B, K=B, grid=(1,),
    )  # fmt: skip
    assert ("tpk.npu_matrix" in compiled.asm["tiles"]) == (device.description.matrix is not None)


def test_transposed_operands_bias_and_activation(device: VirtualChip) -> None:
    a, b, bias = numbers(B, B), numbers(B, B, seed=1), numbers(B, seed=2)
    out = zeros(device, B, B)
    split_kernels.product_of_transposed[(1,)](*(put(device, x) for x in (a, b, bias)), out, M=B, N=B, K=B)
    np.testing.assert_array_equal(out.numpy(), np.maximum(a.T @ b.T + bias, 0))


def test_batched_products(device: VirtualChip) -> None:
    a, b = numbers(8, 128, 256), numbers(8, 256, 128, seed=1)
    out = zeros(device, 8, 128, 128)
    split_kernels.batched_product[(1,)](put(device, a), put(device, b), out, B=8, M=128, N=128, K=256)
    np.testing.assert_array_equal(out.numpy(), a @ b)


def test_columns_are_reduced(device: VirtualChip) -> None:
    x = numbers(B, B)
    sums, largest, out = zeros(device, B), zeros(device, B), zeros(device, B, B)
    split_kernels.column_sums[(1,)](put(device, x), sums, largest, M=B, N=B)
    np.testing.assert_array_equal(sums.numpy(), x.sum(0))
    np.testing.assert_array_equal(largest.numpy(), x.max(0))
    split_kernels.normalised_columns[(1,)](put(device, x), out, M=B, N=B)
    np.testing.assert_array_equal(out.numpy(), x - x.sum(0) / B)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_carried_tiles(device: VirtualChip, steps: int, stages: int) -> None:
    x = numbers(max(steps, 1), B, B)
    out = zeros(device, B, B)
    split_kernels.carried_sums[(1,)](put(device, x), out, steps, M=B, N=B, num_stages=stages)
    expected = np.zeros((B, B), np.float32)
    for value in x[:steps]:
        expected = expected * np.float32(0.5) + value
    np.testing.assert_array_equal(out.numpy(), expected)


def test_two_carried_tiles(device: VirtualChip) -> None:
    x = numbers(3, B, B)
    first, second = zeros(device, B, B), zeros(device, B, B)
    split_kernels.carried_pair[(1,)](put(device, x), first, second, 3, M=B, N=B)
    np.testing.assert_array_equal(first.numpy(), abs(x.sum(0)))
    np.testing.assert_array_equal(second.numpy(), 2 * x.sum(0))


def test_carried_vectors_and_tiles(device: VirtualChip) -> None:
    x = numbers(3, B, B) / 4
    out = zeros(device, B, B)
    split_kernels.carried_softmax[(1,)](put(device, x), out, 3, M=B, N=B)
    powers = np.exp(x.astype(np.float64) - x.max((0, 2))[None, :, None])
    expected = powers.sum(0) / powers.sum((0, 2))[:, None]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("k", [128, 100], ids=["whole", "ragged"])
def test_sums_of_the_stored_array(device: VirtualChip, k: int) -> None:
    a, b, c = numbers(B, k), numbers(k, B, seed=1), numbers(B, B, seed=2)
    out = put(device, c)
    split_kernels.accumulated_in_place[(1,)](put(device, a), put(device, b), out, k, M=B, N=B, BK=32)
    np.testing.assert_array_equal(out.numpy(), c + a @ b)


def test_operands_that_turn_out_to_be_the_stored_array_are_an_error(device: VirtualChip) -> None:
    a, c = put(device, numbers(B, B)), put(device, numbers(B, B, seed=1))
    split_kernels.accumulated_in_place[(1,)](a, c, c, B, M=B, N=B, BK=32)
    with pytest.raises(LaunchError, match="arrays overlap"):
        device.synchronize()


@pytest.mark.parametrize(("m", "n"), [(B, B), (500, 700), (100, 30)], ids=["whole", "ragged", "small"])
def test_the_tutorials_product(device: VirtualChip, m: int, n: int) -> None:
    """Rows and columns wrap around, and the sums are carried."""
    k = 70
    a, b = numbers(m, k, dtype=np.float16), numbers(k, n, seed=1, dtype=np.float16)
    out = zeros(device, m, n, dtype=np.float16)
    grid = (triton.cdiv(m, B) * triton.cdiv(n, B),)
    chip_kernels.matmul[grid](put(device, a), put(device, b), out, m, n, k, k, n, n, BM=B, BN=B, BK=64)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(out.numpy(), expected.astype(np.float16))


@pytest.mark.parametrize(
    ("name", "size"), [("all_columns_of_each_row", B), ("total", 1 << 20)], ids=["transposed", "total"]
)
def test_what_needs_all_pieces_is_refused(device: VirtualChip, name: str, size: int) -> None:
    x, out = zeros(device, 1 << 20), zeros(device, 1 << 20)
    with pytest.raises(OutOfResources, match=f"{name} needs"):
        getattr(split_kernels, name)[(1,)](x, out, B=size)

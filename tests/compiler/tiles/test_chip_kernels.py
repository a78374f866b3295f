"""Kernels on the virtual NPU as a chip: right by NumPy, without hazards, and as fast by the chip's clock as they should
be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import triton
from chip_backend import VirtualChip, put, running_on
from chip_kernels import (
    add,
    check_attention,
    each_from_the_last,
    matmul,
    one_product,
    persistent,
    read_for_nothing,
    scaled_rows,
    small,
    sorted_product,
    stored_and_read_again,
    summed_rows,
    sums_that_start_anew,
    three_products,
    turned_around,
)
from split_kernels import total
from triton.runtime.errors import OutOfResources

from triton_porting_kit.compiler import fits


@pytest.fixture(scope="module")
def device() -> Iterator[VirtualChip]:
    with running_on("n1") as opened:
        yield opened


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def cycles(device: VirtualChip, launch: Callable[[], object]) -> float:
    """The cycles of a launch, after one that compiles."""
    launch()
    start, end = device.create_event(), device.create_event()
    device.record_event(start)
    launch()
    device.record_event(end)
    device.synchronize()
    return device.elapsed_time(start, end) * 1e3 * device.description.clock_mhz


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 128), (200, 136, 100)], ids=["whole", "ragged"])
@pytest.mark.parametrize("stages", [1, 2])
def test_matmul_is_right(device: VirtualChip, m: int, n: int, k: int, stages: int) -> None:
    a, b = numbers(m, k), numbers(k, n, seed=1)
    out = put(device, np.zeros((m, n), np.float16))
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    matmul[grid](
        put(device, a), put(device, b), out, m, n, k, k, n, n, BM=64, BN=64, BK=32, num_stages=stages
    )
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), expected, rtol=2e-3, atol=2e-2)


def test_a_loop_with_the_sums_of_three_products(device: VirtualChip) -> None:
    a, b = numbers(16, 48), numbers(3, 48, 16, seed=1)
    out = put(device, np.zeros((16, 16), np.float32))
    three_products[(1,)](put(device, a), put(device, b), out, 48, T=16)
    first, second, third = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(out.numpy(), third - first * second, rtol=1e-4, atol=1e-3)


def test_matmul_keeps_the_matrix_unit_busy(device: VirtualChip) -> None:
    m, n, k = 256, 1024, 1024
    a, b, c = (put(device, values) for values in (numbers(m, k), numbers(k, n), np.zeros((m, n), np.float16)))

    def taken(stages: int) -> float:
        return cycles(
            device, lambda: matmul[(8,)](a, b, c, m, n, k, k, n, n, BM=128, BN=256, BK=64, num_stages=stages)
        )

    one, two = taken(1), taken(2)
    busy = m * n * k / 16**3 * 2 / device.description.cores / (two - 1000)  # without the launch's 1000
    assert busy > 0.85
    assert one / two > 1.5


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_right(device: VirtualChip, causal: bool) -> None:
    check_attention(device, causal)


def test_operands_larger_than_their_memories_are_multiplied_in_pieces(device: VirtualChip) -> None:
    m, n, k = 64, 128, 512
    a, b = numbers(m, k), numbers(k, n, seed=1)
    out = put(device, np.zeros((m, n), np.float32))
    compiled = one_product[(1,)](put(device, a), put(device, b), out, M=m, N=n, K=k)
    np.testing.assert_allclose(out.numpy(), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-3)
    assert compiled.asm["placed"].count("tpk.npu_matrix") == 4  # 64 KiB for B, twice: 128 of k at a time


@pytest.mark.parametrize(("at", "steps"), [(2, 2), (4, 0), (7, 5)])
def test_sums_that_only_a_branch_yields(device: VirtualChip, at: int, steps: int) -> None:
    a = numbers(32, 32)
    start = np.full((32, 32), 0.0 if steps == 5 else 1.0, np.float32)
    out = put(device, start)
    sums_that_start_anew[(1,)](put(device, a), out, at, T=32)
    expected = start + steps * (a.astype(np.float32) @ a.astype(np.float32))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-3)


def test_a_sort_behind_a_product_compiles_in_time(device: VirtualChip) -> None:
    a = numbers(32, 32)
    out = put(device, np.zeros((32, 32), np.float32))
    sorted_product[(1,)](put(device, a), out, T=32)
    expected = np.sort(a.astype(np.float32) @ a.astype(np.float32), axis=1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-3)


def test_a_load_that_nothing_uses_is_no_hazard(device: VirtualChip) -> None:
    x = put(device, np.arange(64, dtype=np.int16))
    compiled = read_for_nothing[(2,)](x, T=32)
    assert not re.search(r"tpk\.(load|gather)", compiled.asm["structured"])
    np.testing.assert_array_equal(x.numpy(), 0)


@pytest.mark.parametrize("first", [0, 3, 64, -3, -40, -64])
@pytest.mark.parametrize("size", [1, 7, 16, 40, -1, -7])
def test_tiles_that_wrap_around_are_moved_in_parts(device: VirtualChip, first: int, size: int) -> None:
    rows, columns, across, count, middle = 16, 32, 20, 13, 40
    values = np.random.default_rng(0).standard_normal((2 * middle, across)).astype(np.float32)
    i, j = (np.fmod(first + np.arange(length), by) for length, by in ((rows, size), (columns, across)))
    at = (i[:, None] * across + j[None, :]) + middle * across
    inside = np.arange(rows) < count
    read = np.where(inside[:, None], values.reshape(-1)[at], np.float32(-1))
    changed = values.reshape(-1).copy()
    for row in range(count):  # where indices repeat, the last one counts, and all have the same value
        changed[at[row, :count]] = read[row, :count] + 1
    x, out = put(device, values), put(device, np.zeros((rows, columns), np.float32))
    turned_around[(1,)](x[middle:], out, first, size, across, count, B=rows, C=columns)
    np.testing.assert_array_equal(out.numpy(), read)
    np.testing.assert_array_equal(x.numpy().reshape(-1), changed)


def test_programs_overlap(device: VirtualChip) -> None:
    size = 256 * 1024
    x, y, out = (put(device, np.arange(size, dtype=np.float32)) for _ in range(3))

    def taken(stages: int) -> float:
        return cycles(device, lambda: add[(size // 4096,)](x, y, out, size, B=4096, num_stages=stages)) - 1000

    assert taken(1) / taken(2) > 1.5
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(size, dtype=np.float32))
    assert 3 * 4 * size / taken(2) > 0.8 * device.description.global_memory.bytes_per_cycle


def test_programs_with_tiles_smaller_than_the_alignment_overlap(device: VirtualChip) -> None:
    x, out = put(device, np.arange(256, dtype=np.float16)), put(device, np.zeros(256, np.float16))
    compiled = small[(64,)](x, out, B=4)
    np.testing.assert_array_equal(out.numpy(), np.arange(1, 257))
    assert "copies = 5" in compiled.asm["placed"]


def test_a_load_does_not_pass_a_store_of_its_program(device: VirtualChip) -> None:
    x, y = (put(device, np.zeros(64 * 32, np.float32)) for _ in range(2))
    stored_and_read_again[(64,)](x, y, B=32)  # several programs for each core
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(1, 64 * 32 + 1, dtype=np.float32))


@pytest.mark.parametrize("size", [0, 32, 100])
def test_loops_move_their_next_tile(device: VirtualChip, size: int) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (40, size)).astype(np.float32)
    x, out = put(device, values if size else np.zeros(1, np.float32)), put(device, np.ones(40, np.float32))
    compiled = summed_rows[(40,)](x, out, size, B=32)
    np.testing.assert_array_equal(out.numpy(), values.sum(1))
    assert "copies = 3" in compiled.asm["placed"]


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_programs_of_many_tiles_overlap_them(device: VirtualChip, stages: int) -> None:
    tiles, across, size = 100, 10, 1024
    x, out = (put(device, np.arange(tiles * size, dtype=np.float32)) for _ in range(2))
    compiled = persistent[(8,)](x, out, tiles, across, B=size, num_stages=stages)
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(tiles * size, dtype=np.float32))
    assert (f"copies = {stages}" in compiled.asm["placed"]) == (stages > 1)


@pytest.mark.parametrize("same", [False, True])
def test_a_loop_that_stores_what_it_loads_next_keeps_its_order(device: VirtualChip, same: bool) -> None:
    rows, size = 20, 64
    values = np.random.default_rng(0).integers(1, 9, (rows + 1, size)).astype(np.float32)
    x = put(device, values)
    out = x if same else put(device, values)
    compiled = each_from_the_last[(1,)](x, out, rows, B=size)
    expected = values.copy()
    for row in range(rows):
        source = expected if same else values
        expected[row + 1] = source[row] + source[row, 0]
    np.testing.assert_array_equal(out.numpy(), expected)
    assert "copies = 3" in compiled.asm["placed"]


def test_what_all_programs_read_is_moved_once_for_each_core(device: VirtualChip) -> None:
    rows, size = 64, 1000
    x = np.arange(rows * size, dtype=np.float32).reshape(rows, size)
    weight = np.arange(size, dtype=np.float32)
    out = put(device, np.zeros_like(x))
    compiled = scaled_rows[(rows,)](put(device, x), put(device, weight), out, size, B=1024)
    np.testing.assert_array_equal(out.numpy(), x * weight)
    before, _, inside = compiled.asm["placed"].partition("scf.for")
    loads = [part.count('direction = "load"') for part in (before, inside)]
    assert loads == [1, 1]  # the weights; a later row


def test_tiles_that_do_not_fit_raise_out_of_resources(device: VirtualChip) -> None:
    out = put(device, np.zeros(1 << 20, np.float32))
    with pytest.raises(OutOfResources) as caught:
        total[(1,)](out, out, B=1 << 20)
    text = str(caught.value)
    assert "total needs" in text
    assert "bytes of vector, which has 524,288" in text
    assert caught.value.required > caught.value.limit == 524288


def test_an_autotuner_drops_what_does_not_fit(device: VirtualChip) -> None:
    configs = [triton.Config({"B": size}) for size in (32, 64, 1 << 19)]
    tuned = triton.autotune(configs, key=["N"], prune_configs_by={"early_config_prune": fits})(summed_rows)
    seen: list[int] = []
    x, out = put(device, np.ones((4, 100), np.float32)), put(device, np.zeros(4, np.float32))
    tuned[lambda meta: (seen.append(meta["B"]) or 4,)](x, out, 100)
    assert set(seen) == {32, 64}
    np.testing.assert_array_equal(out.numpy(), 100.0)

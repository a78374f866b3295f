"""Memory of tensors: reuse, streams, statistics, and what happens when it is exhausted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from host_backend import NAME

from triton_porting_kit.pytorch._storage import Pool


def test_freed_memory_is_reused(chip: Any) -> None:
    first = torch.empty(1000, device=NAME)
    address = first.data_ptr()
    del first
    assert torch.empty(1000, device=NAME).data_ptr() == address


def test_live_tensors_do_not_overlap(chip: Any) -> None:
    tensors = [torch.empty(100, device=NAME) for _ in range(50)]
    ranges = sorted((t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_memory_of_another_stream_is_not_reused(chip: Any) -> None:
    first = torch.empty(3000, device=NAME)
    address = first.data_ptr()
    del first
    with chip.stream(chip.Stream()):
        assert torch.empty(3000, device=NAME).data_ptr() != address


def test_memory_used_by_a_destroyed_stream_is_reused(chip: Any) -> None:
    chip.empty_cache()  # of blocks that other tests left
    tensor = torch.empty(5000, device=NAME)
    address = tensor.data_ptr()
    stream = chip.Stream()
    tensor.record_stream(stream)
    del stream, tensor
    assert torch.empty(5000, device=NAME).data_ptr() == address


def test_statistics_count_bytes(chip: Any) -> None:
    chip.reset_peak_memory_stats()
    before = chip.memory_allocated()
    tensor = torch.empty(1 << 20, dtype=torch.uint8, device=NAME)
    assert chip.memory_allocated() - before == 1 << 20
    del tensor
    assert chip.memory_allocated() == before
    assert chip.max_memory_allocated() >= before + (1 << 20)
    assert chip.memory_reserved() >= 1 << 20
    chip.empty_cache()
    assert chip.memory_reserved() == chip.memory_allocated()


def test_out_of_memory_is_an_error_with_a_picture(chip: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError, match=r"(?s)memory of .*live tensors.*wanted"):
        torch.empty(1 << 60, dtype=torch.uint8, device=NAME)
    assert torch.ones(3, device=NAME).sum().item() == 3


def test_other_device_numbers_are_refused(chip: Any) -> None:
    with pytest.raises(RuntimeError, match="there is no device"):
        chip.set_device(1)


@pytest.mark.parametrize("size", [1, 256, 257, 4096, 4097, 1 << 20, (1 << 20) + 1])
def test_size_classes_waste_an_eighth_at_most(size: int) -> None:
    wanted = Pool().allocate((size,), None, 1, 8, 0, 0)
    assert size <= wanted <= max(256, size * 9 // 8 + 256)


def test_blocks_used_by_other_streams_wait_for_them() -> None:
    pool = Pool()
    capsule = pool.allocate((10,), None, 1, 8, 5, 4096)
    assert pool.use(4096, 7)
    assert not pool.use(8192, 7)
    del capsule
    assert pool.allocate((10,), None, 1, 8, 5, 0) == 256  # not available yet
    [(block, streams)] = pool.take_pending()
    assert (block[0], streams) == (4096, [7])
    pool.settle(block)
    assert type(pool.allocate((10,), None, 1, 8, 5, 0)) is not int


def test_blocks_from_before_a_reset_are_dropped() -> None:
    pool = Pool()
    capsule = pool.allocate((10,), None, 1, 8, 0, 4096)
    pool.forget()
    del capsule
    assert pool.snapshot() == []
    assert pool.statistics()["reserved_bytes"][0] == 0


@pytest.mark.parametrize(
    ("sizes", "strides"), [((-1,), None), ((2,), (-1,)), ((2, 2), (1,)), ((1 << 62, 4), None)]
)
def test_bad_sizes_are_refused(sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    with pytest.raises(RuntimeError):
        Pool().allocate(sizes, strides, 2, 32, 0, 0)

"""Pinned memory of the host."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from host_backend import NAME

from triton_porting_kit.pytorch import pinned


def test_tensors_are_pinned_and_copied(chip: Any) -> None:
    host = torch.randn(4, 5)
    found = host.t().pin_memory()
    assert (found.is_pinned(), found[1:].is_pinned(), host.is_pinned()) == (True, True, False)
    assert found.equal(host.t())
    assert found.pin_memory() is found
    there = found.to(NAME, non_blocking=True)
    chip.synchronize()
    assert there.cpu().equal(host.t())


def test_slices_of_pinned_storages_are_pinned(chip: Any) -> None:
    storage = torch.arange(10.0).pin_memory().untyped_storage()
    pinned_slice = torch.tensor(()).set_(storage[8:], storage_offset=0, size=(5,), stride=(1,))
    assert pinned_slice.tolist() == [2, 3, 4, 5, 6]
    assert pinned_slice.is_pinned()
    assert not torch.arange(10.0).is_pinned()


@pytest.mark.parametrize(
    "make", [lambda: torch.empty(0), lambda: torch.tensor(True), lambda: torch.ones(2, 1).expand(2, 3)]
)
def test_every_shape_is_pinned(chip: Any, make: Any) -> None:
    assert make().pin_memory().equal(make())


def test_memory_is_unlocked_with_its_tensor(chip: Any) -> None:
    before = len(pinned._pinned)
    tensor = torch.ones(3).pin_memory()
    view = tensor[1:]
    del tensor
    assert len(pinned._pinned) == before + 1
    del view
    gc.collect()
    assert len(pinned._pinned) == before


def test_loaders_of_data_pin_batches(chip: Any) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    batches = [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=3, pin_memory=True)]
    assert all(batch.is_pinned() for batch in batches)
    assert [batch.to(NAME, non_blocking=True).sum().item() for batch in batches] == [3, 12]

"""Storages that programs make themselves; copying, pickling and saving tensors."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from host_backend import NAME


def test_tensors_and_modules_are_copied(chip: Any) -> None:
    tensor = torch.arange(6.0, device=NAME)
    base, view = copy.deepcopy([tensor, tensor[2:]])
    base[3] = 9
    assert view.cpu().equal(torch.tensor([2.0, 9, 4, 5]))
    assert tensor.cpu().equal(torch.arange(6.0))
    layer = copy.deepcopy(torch.nn.Linear(2, 3).to(NAME))
    assert layer.weight.device.type == NAME


def test_storages_are_made_of_a_size(chip: Any) -> None:
    storage = torch.UntypedStorage(12, device=NAME)
    assert (storage.nbytes(), storage.device.type) == (12, NAME)
    with pytest.raises(TypeError, match="number of bytes"):
        torch.UntypedStorage([1, 2], device=NAME)
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert torch.UntypedStorage(3, device="meta").nbytes() == 3


def test_storages_move_to_the_device_by_its_name(chip: Any) -> None:
    storage = torch.arange(6.0).untyped_storage()
    there = getattr(storage, NAME)()
    is_there = f"is_{NAME}"
    assert (getattr(storage, is_there), getattr(there, is_there)) == (False, True)
    assert torch.arange(6.0, device=NAME).storage().size() == 6
    assert there.cpu().tolist() == storage.tolist()


def test_storages_keep_their_size(chip: Any) -> None:
    storage = torch.arange(6.0, device=NAME).untyped_storage()
    assert storage.resize_(24) is storage
    with pytest.raises(NotImplementedError, match=r"keeps its size \(24 bytes\).*Tensor.resize_"):
        storage.resize_(0)
    assert torch.ones(2).untyped_storage().resize_(40).nbytes() == 40


def test_pickling_keeps_the_device(chip: Any) -> None:
    tensor = torch.arange(6.0, device=NAME)
    view, parameter = pickle.loads(pickle.dumps([tensor[2:], torch.nn.Parameter(tensor)]))
    assert view.cpu().equal(torch.arange(2.0, 6.0))
    assert view.device.type == NAME
    assert parameter.requires_grad
    assert parameter.device.type == NAME


@pytest.mark.parametrize(
    ("saved", "where", "loaded"),
    [
        (NAME, None, NAME),
        (NAME, "cpu", "cpu"),
        (NAME, {f"{NAME}:0": "cpu"}, "cpu"),
        (NAME, lambda storage, location: storage, "cpu"),
        ("cpu", NAME, NAME),
        ("cpu", torch.device("cpu"), "cpu"),
    ],
)
def test_saved_tensors_are_loaded_where_they_are_wanted(
    chip: Any, saved: str, where: Any, loaded: str
) -> None:
    file = io.BytesIO()
    torch.save(torch.arange(5.0, device=saved)[1:], file)
    file.seek(0)
    found = torch.load(file, map_location=where)
    assert found.device.type == loaded
    assert found.cpu().equal(torch.arange(1.0, 5.0))


def test_a_device_that_is_not_there_is_refused(chip: Any) -> None:
    file = io.BytesIO()
    torch.save(torch.arange(3.0), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=f"there is no device {NAME}:1"):
        torch.load(file, map_location=f"{NAME}:1")

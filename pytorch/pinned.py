"""Pinned memory: host memory that the system does not swap out, from which copies need not wait.

PyTorch takes an allocator of pinned memory from C++ only. So ``Tensor.pin_memory`` copies to memory that the kit has
locked. ``torch.empty(pin_memory=True)`` still asks for the allocator and raises an error.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.registry import outside_dynamo

_library = torch.library.Library("aten", "IMPL")
_pinned: weakref.WeakValueDictionary[int, mmap.mmap] = weakref.WeakValueDictionary()
"""The memory of pinned storages, by address. It is unlocked and freed with its storage."""


def register() -> None:
    """Register the operators for tensors of the host."""
    _library.impl("is_pinned", outside_dynamo(_is_pinned), "CPU")
    _library.impl("_pin_memory", outside_dynamo(_pin_memory), "CPU")


def _is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    address = self.untyped_storage().data_ptr()
    if address in _pinned:
        return True
    # A slice of a storage begins anywhere in it.
    return any(start <= address < start + len(memory) for start, memory in _pinned.items())


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    if not self.numel():
        return self.clone()
    memory = mmap.mmap(-1, self.numel() * self.itemsize)
    bytes_ = torch.frombuffer(memory, dtype=torch.uint8)
    address = bytes_.data_ptr()
    # A limit of the process (`ulimit -l`) may forbid it. The memory serves all the same: copies of the kit's devices
    # take any memory of the host.
    ctypes.CDLL(None).mlock(ctypes.c_void_p(address), ctypes.c_size_t(len(memory)))
    _pinned[address] = memory
    strides = torch.empty_like(self, device="meta").stride()
    return bytes_.view(self.dtype).as_strided(self.shape, strides).copy_(self)

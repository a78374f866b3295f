"""Operators that make tensors, or give them other memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators.layouts import is_dense
from triton_porting_kit.pytorch.operators.registry import implements


def empty_like_layout(
    sizes: Sequence[int], strides: Sequence[int] | None, dtype: torch.dtype
) -> torch.Tensor:
    """A tensor of the device with undefined contents; contiguous if `strides` is None."""
    found = accelerator()
    return found.memory.empty(
        tuple(sizes), None if strides is None else tuple(strides), dtype, found.stream()
    )


@implements("empty.memory_format")
def empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    if device is not None and device.index:
        _check_device(device)
    strides = None
    if memory_format in (torch.channels_last, torch.channels_last_3d):
        strides = torch.empty(size, device="meta", memory_format=memory_format).stride()
    return empty_like_layout(size, strides, dtype or torch.get_default_dtype())


@implements("empty_strided")
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    if device is not None and device.index:
        _check_device(device)
    return empty_like_layout(size, stride, dtype or torch.get_default_dtype())


def _check_device(device: torch.device) -> None:
    raise RuntimeError(
        f"there is no device {device}: {device.type} has one device, 0 (torch gives a device that is written in "
        "Python one index)"
    )


@implements("resize_")
def resize_(
    self: torch.Tensor, size: Sequence[int], *, memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    """Larger tensors get another storage with the old elements in front. Other views keep the old storage."""
    size = tuple(size)
    if tuple(self.shape) == size and memory_format in (None, torch.preserve_format, torch.contiguous_format):
        return self
    if memory_format in (None, torch.preserve_format):
        memory_format = torch.contiguous_format
    strides = torch.empty(size, device="meta", memory_format=memory_format).stride()
    elements = 1 + sum((n - 1) * s for n, s in zip(size, strides, strict=True)) if 0 not in size else 0
    storage, offset = self.untyped_storage(), self.storage_offset()
    if (offset + elements) * self.itemsize > storage.nbytes():
        larger = empty_like_layout((int(offset + elements),), None, self.dtype)
        kept = storage.nbytes() // self.itemsize
        if kept:
            old = torch.as_strided(self.detach(), (kept,), (1,), 0)
            larger[:kept].copy_(old)
        storage = larger.untyped_storage()
    return self.set_(storage, offset, size, strides)


def replace_(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Give a tensor the storage, the shape and the strides of another one."""
    return self.set_(source.untyped_storage(), source.storage_offset(), source.shape, source.stride())


@implements("record_stream")
def record_stream(self: torch.Tensor, s: torch.Stream) -> None:
    """Keep the memory of the tensor until the work that is on another stream when it is freed has run."""
    accelerator().memory.use(self, s.stream_id)


@implements("zero_")
def zero_(self: torch.Tensor) -> torch.Tensor:
    return fill_(self, 0)


@implements("fill_.Scalar")
def fill_(self: torch.Tensor, value: float) -> torch.Tensor:
    if self.numel():
        element = torch.full((), value, dtype=self.dtype)
        pattern = set(element.view(-1).view(torch.uint8).tolist())
        if len(pattern) == 1 and is_dense(self):
            found = accelerator()
            size = self.numel() * self.itemsize
            found.device.memset(self.data_ptr(), pattern.pop(), size, found.stream())
        else:
            self.copy_(element.to(self.device).expand(self.shape))
    return self

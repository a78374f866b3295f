"""Copies between the host and the device, and on the device with any strides and types."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators.factories import empty_like_layout
from triton_porting_kit.pytorch.operators.layouts import (
    is_dense,
    merged,
    offsets,
    same_dense_layout,
    share_storage,
)
from triton_porting_kit.pytorch.operators.registry import HOST, implements

_KERNEL_RANK = 4

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The type that the kernel copies elements of so many bytes as, if they need no conversion."""

_LARGEST_GAPS = 4
"""A tensor is copied to the host with the gaps between its elements if they make it so many times as large at most."""

_CONVERTED = frozenset(
    {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32}
    | {torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64}
)
"""The types between which the kernel converts. The host converts others."""


@implements("_copy_from")
def copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Write the elements of `self`, broadcast and converted, to `dst`. One of the two is on the device."""
    if not dst.numel():
        return dst
    if self._is_zerotensor():  # it has no memory
        return dst.zero_()
    if self.shape != dst.shape:
        self = self.expand(dst.shape)
    _copy(_without_bits(self), _without_bits(dst), _differing_bits(self, dst), non_blocking)
    return dst


def _copy(source: torch.Tensor, dst: torch.Tensor, bits: _Bits, non_blocking: bool) -> None:
    name = accelerator().name
    if source.device.type != name:
        _from_host(_with_bits(source, bits), dst, non_blocking)
    elif any(bits):
        _copy(_with_bits(_host_copy(source), bits), dst, (False, False), non_blocking)
    elif dst.device.type != name:
        _to_host(source, dst)
    else:
        _on_device(source, dst)


_Bits = tuple[bool, bool]
"""Whether the elements are the conjugates, and the negatives, of those in memory."""


def _differing_bits(a: torch.Tensor, b: torch.Tensor) -> _Bits:
    return a.is_conj() != b.is_conj(), a.is_neg() != b.is_neg()


def _without_bits(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the elements as they are in memory."""
    return _with_bits(tensor, (tensor.is_conj(), tensor.is_neg()))


def _with_bits(tensor: torch.Tensor, bits: _Bits) -> torch.Tensor:
    if bits[0]:
        tensor = torch.ops.aten._conj(tensor)
    return torch.ops.aten._neg_view(tensor) if bits[1] else tensor


@implements("_to_copy")
def to_copy(self: torch.Tensor, *, non_blocking: bool = False, **options: Any) -> torch.Tensor:
    """As on the CPU, which allocates and copies. Copies to the host wait, and so need no pinned memory, which torch
    would ask for in C++."""
    device = options.get("device")
    waits = device is not None and torch.device(device).type == "cpu"
    operator = torch.ops.aten._to_copy.default
    return operator.redispatch(HOST, self, non_blocking=non_blocking and not waits, **options)  # type: ignore[no-any-return]


@implements("_copy_from_and_resize")
def copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    dst.resize_(self.shape)
    return copy_from(self, dst)


@implements("_local_scalar_dense")
def local_scalar_dense(self: torch.Tensor) -> Any:
    return to_host(self).item()


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in host memory.

    It has the same strides, or others if there are large gaps between the elements. It is contiguous only if the
    tensor is: the derivative of ``linalg.det`` depends on it, and sees the tensor where the operator has seen the copy.
    """
    copy = _host_copy(_without_bits(tensor))
    return _with_bits(copy, (tensor.is_conj(), tensor.is_neg()))


def _host_copy(tensor: torch.Tensor) -> torch.Tensor:
    shape, strides, dtype = tensor.shape, tensor.stride(), tensor.dtype
    if not tensor.numel() or is_dense(tensor):
        result = torch.empty_strided(shape, strides, dtype=dtype)
    else:
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if extent <= _LARGEST_GAPS * tensor.numel():
            whole = tensor.as_strided((extent,), (1,), tensor.storage_offset())
            return _host_copy(whole).as_strided(shape, strides)
        result = torch.empty((*shape[:-1], 2 * shape[-1]), dtype=dtype)[..., ::2]
    if tensor.numel():
        _to_host(tensor, result)
    return result


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a host tensor in device memory, with the same strides if the elements are dense."""
    result = empty_like_layout(tensor.shape, _dense_strides(tensor), tensor.dtype)
    if tensor._is_zerotensor():
        return result.zero_()
    if tensor.numel():
        _from_host(tensor, result, non_blocking=False)
    return result


def _dense_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    if is_dense(tensor):
        return tensor.stride()
    return torch._prims_common.make_contiguous_strides_for(tensor.shape)


def _from_host(source: torch.Tensor, dst: torch.Tensor, non_blocking: bool) -> None:
    found = accelerator()
    ready = source
    if not same_dense_layout(source, dst):
        ready = torch.empty_strided(dst.shape, _dense_strides(dst), dtype=dst.dtype).copy_(source)
    if not is_dense(dst):
        _on_device(to_device(ready), dst)
        return
    stream = found.stream()
    found.device.memcpy_htod(dst.data_ptr(), _bytes(ready), stream)
    if ready is source and not non_blocking:
        found.device.synchronize(stream)  # the caller may modify the source now


def _to_host(source: torch.Tensor, dst: torch.Tensor) -> None:
    """Waits also for a copy that need not block: hooks of many devices block here, and results must be there."""
    found = accelerator()
    if not is_dense(source):
        dense = empty_like_layout(source.shape, None, source.dtype)
        _on_device(source, dense)
        source = dense
    ready = dst
    if not same_dense_layout(source, dst):
        ready = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype)
    stream = found.stream()
    found.device.memcpy_dtoh(_bytes(ready), source.data_ptr(), stream)
    found.device.synchronize(stream)
    if ready is not dst:
        dst.copy_(ready)


def _on_device(source: torch.Tensor, dst: torch.Tensor) -> None:
    found = accelerator()
    if same_dense_layout(source, dst):
        if source.data_ptr() != dst.data_ptr():
            size = dst.numel() * dst.itemsize
            found.device.memcpy_dtod(dst.data_ptr(), source.data_ptr(), size, found.stream())
        return
    if share_storage(source, dst):  # the kernel might read what it has written
        dense = empty_like_layout(source.shape, None, source.dtype)
        _on_device(source, dense)
        source = dense
    if source.dtype == dst.dtype or {source.dtype, dst.dtype} <= _CONVERTED:
        _strided_copy(source, dst)
    else:
        _from_host(to_host(source).to(dst.dtype), dst, non_blocking=False)


def _strided_copy(source: torch.Tensor, dst: torch.Tensor) -> None:
    from triton_porting_kit.pytorch.operators.kernels import BLOCK, copy_kernel

    found = accelerator()
    dims = merged(dst.shape, dst.stride(), source.stride())
    to_type, of_type, to_bytes, of_bytes = dst.dtype, source.dtype, dst.itemsize, source.itemsize
    if to_type == of_type:
        if to_bytes == 16:  # complex numbers of two float64
            dims, to_bytes, of_bytes = [*((n, 2 * a, 2 * b) for n, a, b in dims), (2, 1, 1)], 8, 8
        to_type = of_type = _BITS[to_bytes]
    outer, inner = dims[:-_KERNEL_RANK], dims[-_KERNEL_RANK:]
    inner = [(1, 0, 0)] * (_KERNEL_RANK - len(inner)) + inner
    sizes, to_strides, of_strides = zip(*inner, strict=True)
    count = math.prod(sizes)
    to_bool = to_type is torch.bool and of_type is not torch.bool
    with found.active():
        for to_offset, of_offset in offsets(outer):
            copy_kernel[(-(-count // BLOCK),)](
                Pointer(dst.data_ptr() + to_offset * to_bytes, to_type),
                Pointer(source.data_ptr() + of_offset * of_bytes, of_type),
                *(count, *sizes[1:], *to_strides, *of_strides),
                TO_BOOL=to_bool,
                BLOCK=BLOCK,
            )


class Pointer:
    """An argument for a kernel: an address of the device and the type of the elements there."""

    def __init__(self, address: int, dtype: torch.dtype) -> None:
        self._address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self._address


def _bytes(tensor: torch.Tensor) -> Any:
    """The memory of a dense host tensor as a buffer, which keeps the tensor alive."""
    buffer = (ctypes.c_char * (tensor.numel() * tensor.itemsize)).from_address(tensor.data_ptr())
    buffer.owner = tensor  # type: ignore[attr-defined]
    return buffer

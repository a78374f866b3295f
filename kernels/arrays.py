"""The array interface that the host functions of the kernels use, independent of the library.

An array is anything with `data_ptr()`, `dtype`, `shape` and strides: the kit's `DeviceArray`, or a torch
tensor. torch is imported only if the input is a torch tensor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Protocol


class Array(Protocol):
    """A dense array in memory that kernels can access."""

    @property
    def dtype(self) -> Any:
        """The element type. Its string ends in the plain name, as in ``float32`` or ``torch.float32``."""

    @property
    def shape(self) -> Sequence[int]:
        """Sizes of the dimensions, in elements."""

    def data_ptr(self) -> int:
        """Address of the first element, in bytes."""


def is_torch(array: Array) -> bool:
    """Whether `array` is a torch tensor, determined without importing torch."""
    return _is_of_torch(type(array))


@functools.cache
def _is_of_torch(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "torch"


def dtype_name(array: Array) -> str:
    """Plain name of the element type: ``float32``, ``bfloat16``, ``bool``, …"""
    return _plain_name(array.dtype)


@functools.cache
def _plain_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def element_count(array: Array) -> int:
    """Number of elements."""
    return math.prod(array.shape)


def element_strides(array: Array) -> tuple[int, ...]:
    """The stride of each dimension, in elements."""
    stride = getattr(array, "stride", None)
    return tuple(stride()) if callable(stride) else tuple(array.strides)  # type: ignore[attr-defined]


def empty(shape: Sequence[int], like: Array, dtype: str | None = None) -> Array:
    """Allocate an uninitialised contiguous array on the device of `like`.

    `shape` is in elements; `dtype` is a plain name such as ``float32``, by default that of `like`.
    """
    if is_torch(like):
        kind = like.dtype if dtype is None else _torch_type(dtype)
        return like.new_empty(shape, dtype=kind)  # type: ignore[attr-defined, no-any-return]
    name = dtype or dtype_name(like)
    return type(like).empty(tuple(shape), name, like.device)  # type: ignore[attr-defined, no-any-return]


@functools.cache
def _torch_type(name: str) -> Any:
    import torch

    return getattr(torch, name)


def zeros(shape: Sequence[int], like: Array, dtype: str | None = None) -> Array:
    """`empty`, with every element 0."""
    array: Array = empty(shape, like, dtype).zero_()  # type: ignore[attr-defined]
    return array


def check_shape(name: str, array: Array, shape: Sequence[int]) -> None:
    """Raise ValueError unless `array` has exactly this shape."""
    if array.shape != shape and tuple(array.shape) != tuple(shape):
        raise ValueError(f"{name} has shape {tuple(array.shape)}, expected {tuple(shape)}")


def check_contiguous(**arrays: Array) -> None:
    """Raise ValueError for an array that is not contiguous in row-major order."""
    for name, array in arrays.items():
        if is_torch(array) and array.is_contiguous():  # type: ignore[attr-defined]
            continue
        expected = 1
        for size, stride in zip(reversed(array.shape), reversed(element_strides(array)), strict=True):
            if size > 1 and stride != expected:
                raise ValueError(
                    f"{name} of shape {tuple(array.shape)} has strides {element_strides(array)}; "
                    "make it contiguous first"
                )
            expected *= size

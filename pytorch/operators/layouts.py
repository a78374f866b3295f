"""Facts about how tensors lie in their storages."""

from __future__ import annotations

from collections.abc import Sequence

import torch

Dimension = tuple[int, int, int]
"""The size of a dimension, and its stride in each of two tensors, in elements."""


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a range of memory without gaps or overlaps."""
    if tensor.is_contiguous():
        return True
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def same_dense_layout(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether copying the bytes of one to the other copies each element to its place."""
    if a.dtype != b.dtype or a.is_conj() != b.is_conj() or a.is_neg() != b.is_neg():
        return False
    if a.is_contiguous() and b.is_contiguous():
        return True
    return a.stride() == b.stride() and is_dense(a)


def share_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of a device are views of the same storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def merged(sizes: Sequence[int], first: Sequence[int], second: Sequence[int]) -> list[Dimension]:
    """The dimensions of two tensors of the same sizes, as few as possible, ordered by the strides of the first."""
    dims = [dim for dim in zip(sizes, first, second, strict=True) if dim[0] != 1]
    dims.sort(key=lambda dim: (-dim[1], -dim[2]))
    result: list[Dimension] = []
    for size, a, b in dims:
        if result and result[-1][1] == size * a and result[-1][2] == size * b:
            result[-1] = (result[-1][0] * size, a, b)
        else:
            result.append((size, a, b))
    return result


def offsets(dims: Sequence[Dimension]) -> list[tuple[int, int]]:
    """The offsets of all points of some dimensions in both tensors, in elements."""
    points = [(0, 0)]
    for size, a, b in dims:
        points = [(x + i * a, y + i * b) for x, y in points for i in range(size)]
    return points

"""Operators in Inductor that the kit makes of others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.decomposition import decompositions

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators import convolution, pooling, recurrent

_aten = torch.ops.aten


def register() -> None:
    """Add the decompositions, which leave other devices' tensors to those that were there."""
    _add(_aten.convolution.default, _convolution)
    _add(_aten.convolution_backward.default, _convolution_backward)
    for name, function in {**recurrent.COMPOSED, **pooling.COMPOSED}.items():
        _add(getattr(_aten, name).default, function)
    _add(_aten.topk.default, _topk)


def _add(operator: Any, decomposition: Callable[..., Any]) -> None:
    others = decompositions.get(operator)

    @functools.wraps(decomposition)
    def choose(*args: Any, **kwargs: Any) -> Any:
        tensors = (value for value in args if isinstance(value, torch.Tensor))
        if next(tensors).device.type == accelerator().name:
            return decomposition(*args, **kwargs)
        return NotImplemented if others is None else others(*args, **kwargs)

    decompositions[operator] = choose


_LONGEST_SORT = 512
"""Elements of a row that Inductor sorts in a kernel: ``sort`` in torch/_inductor/lowering.py (torch 2.13)."""


def _topk(values: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """By sorting, for which Inductor has code. Long rows are left to the CPU."""
    if not values.dim() or not isinstance(values.shape[dim], int) or values.shape[dim] > _LONGEST_SORT:
        return NotImplemented
    ordered, indices = torch.sort(values, dim=dim, descending=largest)
    return ordered.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _convolution(*args: Any) -> torch.Tensor:
    input, weight, *rest = args
    if input.dim() == weight.dim():
        return convolution.convolution(input, weight, *rest)
    return convolution.convolution(input.unsqueeze(0), weight, *rest).squeeze(0)


def _convolution_backward(
    grad_output: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, bias_sizes: Any, *rest: Any
) -> Any:
    return convolution.convolution_backward(grad_output, input, weight, *rest)

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
    for operator, product in ((_aten.addmm.default, _aten.mm), (_aten.baddbmm.default, _aten.bmm)):
        _add(operator, functools.partial(_without_summand, product))


def _add(operator: Any, decomposition: Callable[..., Any]) -> None:
    others = decompositions.get(operator)

    def choose(*args: Any, **kwargs: Any) -> Any:
        tensors = (value for value in args if isinstance(value, torch.Tensor))
        found = NotImplemented
        if next(tensors).device.type == accelerator().name:
            found = decomposition(*args, **kwargs)
        return others(*args, **kwargs) if found is NotImplemented and others is not None else found

    decompositions[operator] = choose


def _without_summand(
    product: Any,
    summand: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Any:
    """The product alone where the summand is multiplied by 0: then infinities and NaN of it have no effect.

    Inductor (2.11 to 2.13) multiplies them, in its templates and in its decomposition of ``addmm``.
    """
    if beta != 0:
        return NotImplemented
    found = product(left, right)
    if alpha == 1:
        return found
    return found * (alpha if found.dtype.is_floating_point or found.dtype.is_complex else int(alpha))


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

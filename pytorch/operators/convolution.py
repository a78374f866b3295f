"""Convolutions as matrix products of windows: the device has no library for them.

Each function is made of other operators of torch, so that eager and Inductor run it on the device. The windows of the
input are a view; the product reads them as a matrix of N*O rows, where O is the number of output points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from triton_porting_kit.pytorch.operators.registry import implements

Ints = Sequence[int]


@implements("convolution_overrideable")
def convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> torch.Tensor:
    """As ``aten.convolution``: `input` is N, C, and one to three sizes."""
    rank = weight.dim() - 2
    stride, padding, dilation = full(stride, rank), full(padding, rank), full(dilation, rank)
    output_padding = full(output_padding, rank)
    if transposed:
        result = _transposed(input, weight, stride, padding, dilation, output_padding, groups)
    else:
        result = _forward(input, weight, stride, padding, dilation, groups)
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * rank)
    return result.contiguous()


@implements("convolution_backward_overrideable")
def convolution_backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """The gradients of `convolution` by the input, the weight and the bias, as far as `output_mask` wants them."""
    rank = weight.dim() - 2
    stride, padding, dilation = full(stride, rank), full(padding, rank), full(dilation, rank)
    sizes, kernel = input.shape[2:], weight.shape[2:]
    by_input = by_weight = by_bias = None
    if output_mask[0]:
        if transposed:
            by_input = _forward(grad_output, weight, stride, padding, dilation, groups)
            for axis, size in enumerate(sizes, 2):  # an output padding may have points of its own
                by_input = by_input.narrow(axis, 0, size)
        else:
            rest = [
                size - _transposed_size(out, k, s, p, d)
                for size, out, k, s, p, d in zip(
                    sizes, grad_output.shape[2:], kernel, stride, padding, dilation, strict=True
                )
            ]
            by_input = _transposed(grad_output, weight, stride, padding, dilation, rest, groups)
        by_input = by_input.contiguous()
    if output_mask[1]:
        values, windows = (input, grad_output) if transposed else (grad_output, input)
        by_weight = _weight_gradient(values, windows, kernel, stride, padding, dilation, groups)
    if output_mask[2]:
        by_bias = grad_output.sum([0, *range(2, rank + 2)])
    return by_input, by_weight, by_bias


def full(values: Ints, rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _forward(
    input: torch.Tensor, weight: torch.Tensor, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> torch.Tensor:
    count = input.shape[0]
    windows, points = _windows(input, weight.shape[2:], stride, padding, dilation, groups)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = windows @ matrix.transpose(1, 2)  # groups, N * O, channels of a group
    result = result.reshape(groups, count, math.prod(points), -1).permute(1, 0, 3, 2)
    return result.reshape(count, weight.shape[0], *points)


def _windows(
    input: torch.Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> tuple[torch.Tensor, list[int]]:
    """The windows as matrices (groups, N * O, C / groups * K), and the sizes of the output."""
    rank = len(kernel)
    pads = [amount for p in reversed(padding) for amount in (p, p)]
    padded = functional.pad(input, pads) if any(pads) else input
    view = padded
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        view = view.unfold(axis + 2, (k - 1) * d + 1, s)[..., ::d]
    points = list(view.shape[2 : 2 + rank])
    count, channels = input.shape[:2]
    view = view.reshape(count, groups, channels // groups, *points, *kernel)
    order = [1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]
    return view.permute(order).reshape(groups, count * math.prod(points), -1), points


def _transposed(
    input: torch.Tensor,
    weight: torch.Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    output_padding: Ints,
    groups: int,
) -> torch.Tensor:
    """The convolution of the input, spread by the stride, with the weight reversed."""
    rank = weight.dim() - 2
    kernel = weight.shape[2:]
    spread = _spread(input, stride)
    pads: list[int] = []
    for k, p, d, extra in reversed(list(zip(kernel, padding, dilation, output_padding, strict=True))):
        edge = d * (k - 1) - p
        pads += [edge, edge + extra]
    spread = functional.pad(spread, pads)
    outputs = weight.shape[1]
    turned = weight.flip(list(range(2, rank + 2))) if any(k > 1 for k in kernel) else weight
    turned = turned.reshape(groups, weight.shape[0] // groups, outputs, *kernel).transpose(1, 2)
    turned = turned.reshape(groups * outputs, weight.shape[0] // groups, *kernel)
    return _forward(spread, turned, [1] * rank, [0] * rank, dilation, groups)


def _spread(input: torch.Tensor, stride: Ints) -> torch.Tensor:
    """The input with stride - 1 zeros between its elements."""
    result = input
    for axis, step in enumerate(stride, 2):
        if step > 1:
            size = result.shape[axis]
            pads = [0, step - 1]
            result = functional.pad(result.unsqueeze(axis + 1), [0, 0] * (result.dim() - axis - 1) + pads)
            result = result.flatten(axis, axis + 1).narrow(axis, 0, (size - 1) * step + 1)
    return result


def _transposed_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1


def _weight_gradient(
    values: torch.Tensor,
    windowed: torch.Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> torch.Tensor:
    """For each channel of `values`, the sum over its points of the windows of the other tensor there."""
    windows, points = _windows(windowed, kernel, stride, padding, dilation, groups)
    count, channels = values.shape[:2]
    inner = values.shape[2:]
    matrix = values.reshape(count, groups, channels // groups, math.prod(inner)).permute(1, 2, 0, 3)
    if list(inner) != points:  # an output padding or a remainder: these windows have no value
        keep = windows.reshape(groups, count, *points, -1)
        for axis, size in enumerate(inner):
            keep = keep.narrow(axis + 2, 0, size)
        windows = keep.reshape(groups, count * math.prod(inner), -1)
    product = matrix.reshape(groups, channels // groups, -1) @ windows
    return product.reshape(channels, windowed.shape[1] // groups, *kernel)

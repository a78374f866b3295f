"""The gradient of average pools, of other operators where Inductor (2.11 to 2.14) compiles it wrongly.

With `ceil_mode`, the last windows may hang over the padded input. A mean is that of the rest of the window, but
Inductor divides gradients by the size of the whole window: https://github.com/pytorch/pytorch/issues/198119
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.convolution import Ints, full

_aten = torch.ops.aten


def average_pool_backward(
    operator: torch._ops.OpOverload,
    grad_output: torch.Tensor,
    input: torch.Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """As ``aten.avg_pool2d_backward`` and ``avg_pool3d_backward``; NotImplemented for what Inductor compiles well."""
    if not ceil_mode or not count_include_pad or divisor_override is not None:
        return NotImplemented
    rank = _RANKS[operator]
    kernel, steps, pads = full(kernel_size, rank), full(stride or kernel_size, rank), full(padding, rank)
    scaled = grad_output.to(torch.promote_types(grad_output.dtype, torch.float32))
    for d in range(rank):
        count, extent = grad_output.shape[d - rank], input.shape[d - rank]
        starts = torch.arange(count, device=grad_output.device) * steps[d] - pads[d]
        sizes = torch.clamp(starts + kernel[d], max=extent + pads[d]) - starts
        scaled = scaled / sizes.reshape(-1, *[1] * (rank - 1 - d))
    means = scaled.to(grad_output.dtype)
    return operator(means, input, kernel_size, stride, padding, ceil_mode, count_include_pad, 1)


_RANKS = {_aten.avg_pool2d_backward.default: 2, _aten.avg_pool3d_backward.default: 3}

COMPOSED: dict[str, Callable[..., Any]] = {
    operator._schema.name.removeprefix("aten::"): partial(average_pool_backward, operator)
    for operator in _RANKS
}
"""What Inductor compiles in place of these operators, by name."""

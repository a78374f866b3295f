"""Batch normalisation, whose schema does not say that it writes the running statistics."""

from __future__ import annotations

import torch

from triton_porting_kit.pytorch.operators.registry import implements

_aten = torch.ops.aten


@implements("native_batch_norm")
def native_batch_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The operator whose schema says so. Autograd must not see that the statistics have changed."""
    if running_mean is None or running_var is None:
        return _aten._native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)  # type: ignore[no-any-return]
    statistics = (running_mean, running_var)
    versions = tuple(each._version for each in statistics)
    result = _aten._native_batch_norm_legit.default(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    torch._C._autograd._unsafe_set_version_counter(statistics, versions)
    return result  # type: ignore[no-any-return]

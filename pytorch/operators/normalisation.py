"""Batch normalisation: autograd must not see that it writes the running statistics.

Its backward operators take the statistics, but do not read them after training. So torch's own operators write them
without a new version.
"""

from __future__ import annotations

from typing import Any

import torch

from triton_porting_kit.pytorch.operators import fallback
from triton_porting_kit.pytorch.operators.registry import implements

_aten = torch.ops.aten
_Optional = torch.Tensor | None


@implements("native_batch_norm")
def native_batch_norm(
    input: torch.Tensor,
    weight: _Optional,
    bias: _Optional,
    running_mean: _Optional,
    running_var: _Optional,
    *settings: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `native_batch_norm_legit`, whose schema says what it writes; but the statistics may be missing."""
    if running_mean is None or running_var is None:
        return _aten._native_batch_norm_legit.no_stats(input, weight, bias, *settings)  # type: ignore[no-any-return]
    return native_batch_norm_legit(input, weight, bias, running_mean, running_var, *settings)  # type: ignore[no-any-return]


@implements("_native_batch_norm_legit")
def native_batch_norm_legit(*args: Any) -> Any:
    """With the statistics at positions 3 and 4."""
    return _unnoticed(_aten._native_batch_norm_legit.default, args)


@implements("_batch_norm_with_update")
def batch_norm_with_update(*args: Any) -> Any:
    """With the statistics at positions 3 and 4."""
    return _unnoticed(_aten._batch_norm_with_update.default, args)


def _unnoticed(operator: torch._ops.OpOverload, args: tuple[Any, ...]) -> Any:
    statistics = args[3:5]
    versions = tuple(each._version for each in statistics)
    result = fallback.run(operator, *args)
    torch._C._autograd._unsafe_set_version_counter(statistics, versions)
    return result

"""Operators that find indices, which the CPU runs."""

from __future__ import annotations

import torch

from triton_porting_kit.pytorch.operators import fallback
from triton_porting_kit.pytorch.operators.registry import implements


@implements("nonzero_static")
def nonzero_static(self: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    """With the strides that torch expects beside the CPU: those of ``meta`` tensors."""
    operator = torch.ops.aten.nonzero_static.default
    found = fallback.run_on_host(operator, self, size=size, fill_value=fill_value)
    return found.t().contiguous().t()  # type: ignore[no-any-return]

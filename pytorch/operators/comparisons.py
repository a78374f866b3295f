"""Comparisons whose result is one value for the host."""

from __future__ import annotations

import torch

from triton_porting_kit.pytorch.operators.registry import implements


@implements("equal")
def equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    if self.shape != other.shape:
        return False
    return bool((self == other).all())

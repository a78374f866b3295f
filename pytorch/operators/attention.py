"""Attention: the composition of products and softmax, which eager and Inductor run on the device."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.pytorch.operators.registry import implements

_MATH = 0
"""``SDPBackend.MATH``: c10/core/SDPBackend in aten/src/ATen/SDPBackend.h."""


@implements("_fused_sdp_choice")
def choose(*args: Any, **kwargs: Any) -> int:
    return _MATH

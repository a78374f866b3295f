"""Triton's autotuner."""

from __future__ import annotations

import sys
from typing import Any

from triton_porting_kit.errors import ToolchainError


def autotuned_kernel() -> Any:
    """The kernel, without the autotuner, whose configurations Triton prunes right now.

    Triton does not give it to the function that prunes, but that function is called by the autotuner. Raises
    `ToolchainError` if it is not.
    """
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    frame = sys._getframe(1)
    while frame is not None:
        tuner = frame.f_locals.get("self")
        if isinstance(tuner, Autotuner):
            kernel: Any = tuner.fn
            while not isinstance(kernel, JITFunction):
                kernel = kernel.fn
            return kernel
        frame = frame.f_back  # type: ignore[assignment]
    raise ToolchainError("configurations are only pruned within Triton's autotuner: pass the function to it")

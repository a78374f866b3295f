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

    frame = sys._getframe(1)
    while frame is not None:
        tuner = frame.f_locals.get("self")
        if isinstance(tuner, Autotuner):
            return _kernel_of(tuner)
        frame = frame.f_back  # type: ignore[assignment]
    raise ToolchainError("configurations are only pruned within Triton's autotuner: pass the function to it")


def tuned_kernels(tuner: Any) -> dict[Any, Any]:
    """What was compiled for the current device of an autotuner's kernel, by specialisation.

    An entry that is removed is compiled again, or taken from Triton's cache on disk, when it is next launched.
    """
    from triton.runtime.driver import driver

    found: dict[Any, Any] = _kernel_of(tuner).device_caches[driver.active.get_current_device()][0]
    return found


def _kernel_of(tuner: Any) -> Any:
    from triton.runtime.jit import JITFunction

    kernel = tuner.fn
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    return kernel

"""Triton's autotuner."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from triton_porting_kit.errors import ToolchainError

from .caches import kernel_cache_folder
from .releases import internal


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


@internal
def may_compile_ahead(tuner: Any) -> bool:
    """Whether nobody notices that kernels of an autotuner are compiled before they are launched, and elsewhere.

    Hooks would be called more often, or in other processes; and the results must be found in a cache on disk.
    """
    from triton import knobs
    from triton.runtime import _async_compile

    hooks = (
        knobs.runtime.jit_cache_hook,
        knobs.runtime.jit_post_compile_hook,
        knobs.compilation.listener,
        _async_compile.active_mode.get(),
    )
    return not (
        knobs.compilation.always_compile
        or any(hook is not None for hook in hooks)
        or _kernel_of(tuner).pre_run_hooks
    )


@internal
def asynchronous_compilation(
    executor: Executor, expect: Callable[[Callable[[], Any]], None]
) -> AbstractContextManager[Any]:
    """A context in which Triton leaves compilations to `executor`; kernels are complete when it ends.

    `expect` is called with each one whose kernel the cache does not have, before it is submitted. Errors are dropped: a
    kernel that could not be compiled is not kept.
    """
    from triton.runtime._async_compile import AsyncCompileMode

    class Mode(AsyncCompileMode):  # type: ignore[misc]
        def submit(self, key: str, compile_fn: Callable[[], Any], *rest: Any) -> Any:
            if key not in self.future_kernels and not _is_cached(key):
                expect(compile_fn)
            return super().submit(key, compile_fn, *rest)

    return Mode(executor, ignore_errors=True)


@internal
def finished_kernel(asked: Any) -> Any:
    """The kernel that a launch under `asynchronous_compilation` has asked for; None if it could not be compiled."""
    from triton.runtime._async_compile import FutureKernel

    return asked.kernel if isinstance(asked, FutureKernel) else asked


def _is_cached(key: str) -> bool:
    folder = kernel_cache_folder(hashlib.sha256(key.encode()).hexdigest())
    return folder is not None and any(folder.glob("__grp__*"))


def _kernel_of(tuner: Any) -> Any:
    from triton.runtime.jit import JITFunction

    kernel = tuner.fn
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    return kernel

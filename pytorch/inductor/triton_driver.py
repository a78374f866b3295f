"""Selects Triton's driver for each kernel of Inductor by the device that the kernel is for.

Inductor (2.13) selects a driver before it compiles a kernel, by asking every driver whether it is active, and none
before it loads one. So a kernel that was compiled for one device is loaded by the driver of another one where a program
uses two, or where TRITON_DEFAULT_BACKEND names another one. There is no hook for this.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from torch._inductor.runtime import triton_heuristics, triton_helpers

from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Wrap the functions of Inductor that compile and load a kernel."""
    compile_ = triton_heuristics.CachingAutotuner._precompile_config
    load = triton_heuristics.TritonCompileResult.make_launcher
    to_gpu = triton_helpers.set_driver_to_gpu

    @functools.wraps(compile_)
    def _precompile_config(self: Any, cfg: Any) -> Any:
        with _driver_for(self.device_props.type):
            return compile_(self, cfg)

    @functools.wraps(load)
    def make_launcher(self: Any) -> Any:
        with _driver_for(self.compile_meta["device_type"]):
            return load(self)

    @functools.wraps(to_gpu)
    def set_driver_to_gpu() -> None:
        if not _selected:
            to_gpu()

    triton_heuristics.CachingAutotuner._precompile_config = _precompile_config
    triton_heuristics.TritonCompileResult.make_launcher = make_launcher
    triton_helpers.set_driver_to_gpu = set_driver_to_gpu


_selected: list[str] = []


@contextmanager
def _ours() -> Iterator[None]:
    with accelerator().active():
        _selected.append(accelerator().name)
        try:
            yield
        finally:
            _selected.pop()


@contextmanager
def _cpu() -> Iterator[None]:
    from triton.runtime import driver

    previous = driver.active
    triton_helpers.set_driver_to_cpu()
    try:
        yield
    finally:
        driver.set_active(previous)


def _driver_for(device_type: str) -> Any:
    if device_type == accelerator().name:
        return _ours()
    return _cpu() if device_type == "cpu" else nullcontext()

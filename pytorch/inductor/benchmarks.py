"""How Inductor's autotuner measures: as Triton's does, by the driver."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.runtime import benchmarking

from triton_porting_kit.driver.benchmark import Benchmarker
from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Register the measurement of calls on the device."""
    if hasattr(benchmarking, "register_benchmarker"):
        benchmarking.register_benchmarker(accelerator().name, _measure, override=True)
    else:
        _measure_where_torch_would()


def _measure(self: Any, call: Callable[[], Any], *, warmup: float = 25, rep: float = 100, **_: Any) -> float:
    """Milliseconds of one call, the median."""
    return float(Benchmarker(accelerator().driver)(call, warmup=warmup, rep=rep, return_mode="median"))


def _measure_where_torch_would() -> None:
    """Replace Inductor's measurement for the device: torch 2.11 has no registration."""
    benchmarker: Any = benchmarking.Benchmarker
    benchmark = benchmarker.benchmark

    @functools.wraps(benchmark)
    def patched(
        self: Any, fn: Any, fn_args: Any = None, fn_kwargs: Any = None, device: Any = None, **kwargs: Any
    ) -> float:
        args, named = fn_args or (), fn_kwargs or {}
        found = self.infer_device(*args, **named) if device is None else torch.device(device)
        if found.type == accelerator().name:
            return _measure(self, lambda: fn(*args, **named), **kwargs)
        return float(benchmark(self, fn, fn_args, fn_kwargs, device, **kwargs))

    benchmarker.benchmark = patched

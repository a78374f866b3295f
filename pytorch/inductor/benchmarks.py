"""How Inductor's autotuner measures: as Triton's does, by the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._inductor.runtime.benchmarking import register_benchmarker

from triton_porting_kit.driver.benchmark import Benchmarker
from triton_porting_kit.pytorch.accelerator import accelerator


def register() -> None:
    """Register the measurement of calls on the device."""
    register_benchmarker(accelerator().name, _measure, override=True)


def _measure(self: Any, call: Callable[[], Any], *, warmup: float = 25, rep: float = 100, **_: Any) -> float:
    """Milliseconds of one call, the median."""
    return float(Benchmarker(accelerator().driver)(call, warmup=warmup, rep=rep, return_mode="median"))

"""Timing of kernels for the autotuner: wall-clock time of a call including the wait for its end, or, of a device that
models time, what its events say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from triton_porting_kit.driver.device import Device

_MINIMUM_RUNS = 3
_PATIENCE = 4.0


class _Driver(Protocol):
    """The part of `TritonDriver` that timing uses."""

    models_time: bool

    @property
    def device(self) -> Device: ...

    def get_current_stream(self, device: int | None = None) -> int: ...

    def get_empty_cache_for_benchmark(self) -> Any: ...

    def clear_cache(self, cache: Any) -> None: ...


class Benchmarker:
    """Measures the time of a call. The signature and the results are those of ``triton.testing.do_bench``."""

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def __call__(
        self,
        fn: Callable[[], Any],
        *,
        warmup: float = 25,
        rep: float = 100,
        grad_to_none: Iterable[Any] | None = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
    ) -> Any:
        """Milliseconds of one call of `fn`, with cold caches.

        Runs `fn` for `warmup`, then for `rep` milliseconds of its own time, at least three times. Clearing the caches
        is not counted, but the total time is limited to four times `rep`. On a driver that models time, every run takes
        the same: the second one is measured, by events, and a model has no caches to clear.
        """
        from triton.testing import _summarize_statistics

        if return_mode not in ("min", "max", "mean", "median", "all"):
            raise ValueError(f"return_mode {return_mode!r} is not one of min, max, mean, median, all")
        if self._driver.models_time:
            return _summarize_statistics([self._modelled(fn)], quantiles, return_mode)
        cache = self._driver.get_empty_cache_for_benchmark()
        deadline = time.perf_counter() + warmup * 1e-3
        self._run(fn)
        while time.perf_counter() < deadline:
            self._run(fn)
        times: list[float] = []
        spent, deadline = 0.0, time.perf_counter() + _PATIENCE * rep * 1e-3
        while len(times) < _MINIMUM_RUNS or (spent < rep and time.perf_counter() < deadline):
            for tensor in grad_to_none or ():
                tensor.grad = None
            self._driver.clear_cache(cache)
            self._driver.device.synchronize()
            times.append(self._run(fn))
            spent += times[-1]
        return _summarize_statistics(times, quantiles, return_mode)

    def _modelled(self, fn: Callable[[], Any]) -> float:
        """Milliseconds of one call of `fn` between two events, after another call."""
        fn()
        device, stream = self._driver.device, self._driver.get_current_stream()
        start, end = device.create_event(), device.create_event()
        try:
            device.record_event(start, stream)
            fn()
            device.record_event(end, stream)
            device.synchronize()
            return device.elapsed_time(start, end)
        finally:
            device.destroy_event(start)
            device.destroy_event(end)

    def _run(self, fn: Callable[[], Any]) -> float:
        start = time.perf_counter()
        fn()
        self._driver.device.synchronize()
        return (time.perf_counter() - start) * 1e3

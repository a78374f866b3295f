"""Timing of kernels for the autotuner: wall-clock time of a call including the wait for its end, or, of a device that
models time, what its events say. A call that has lost against the fastest configuration is not repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from triton_porting_kit.driver.device import Device
from triton_porting_kit.toolchain import tuning

_MINIMUM_RUNS = 3
_PATIENCE = 4.0
"""Times `rep`, after which fewer runs are enough."""


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

        Runs `fn` for `warmup`, then for `rep` milliseconds, at least three times unless that takes four times `rep`.
        As in Triton's own function, clearing the caches counts for `rep`, though not for the result. Where the
        autotuner has a faster configuration, runs end when it is clear that this one is slower. On a driver that models
        time, every run takes the same: the second one is measured, by events, and a model has no caches to clear.
        """
        from triton.testing import _summarize_statistics

        if return_mode not in ("min", "max", "mean", "median", "all"):
            raise ValueError(f"return_mode {return_mode!r} is not one of min, max, mean, median, all")
        if self._driver.models_time:
            times = [self._modelled(fn)]
        else:
            times = self._warm(fn, warmup)
            if not tuning.is_slower(times):
                times = self._cold(fn, rep, list(grad_to_none or ()))
        return _summarize_statistics(times, quantiles, return_mode)

    def _warm(self, fn: Callable[[], Any], warmup: float) -> list[float]:
        """The times of calls with warm caches, for `warmup` milliseconds, after a call that may compile the kernel."""
        deadline = time.perf_counter() + warmup * 1e-3
        self._run(fn)
        times: list[float] = []
        while time.perf_counter() < deadline and not tuning.is_slower(times):
            times.append(self._run(fn))
        return times

    def _cold(self, fn: Callable[[], Any], rep: float, gradients: list[Any]) -> list[float]:
        """The times of calls with cold caches."""
        cache = self._driver.get_empty_cache_for_benchmark()
        start = time.perf_counter()
        times: list[float] = []
        while not tuning.is_slower(times):
            spent = (time.perf_counter() - start) * 1e3
            if spent >= (rep if len(times) >= _MINIMUM_RUNS else _PATIENCE * rep) and times:
                break
            for tensor in gradients:
                tensor.grad = None
            self._driver.clear_cache(cache)
            self._driver.device.synchronize()
            times.append(self._run(fn))
        return times

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

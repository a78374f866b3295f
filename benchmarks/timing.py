"""Samples of competing calls, taken in turn, and what to say about them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A sample lasts at least this long: short calls are repeated within it, and the clock's steps do not show.
SAMPLE_SECONDS = 10e-3
MAX_REPEATS = 10_000
#: Where sampling takes longer than this, it ends early, but not before there are `LEAST_RUNS` samples of each call.
PATIENCE_SECONDS = 60.0
LEAST_RUNS = 3


@dataclass(frozen=True)
class Samples:
    """Times of one call in seconds, one number per run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median in seconds."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile in seconds."""
        return quartiles(self.seconds)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The first and the third quartile; of a single value, twice that value."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def time_once(call: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds per call, over `repeats` calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def choose_repeats(call: Callable[[], Any]) -> int:
    """How many calls make a sample of at least `SAMPLE_SECONDS`; warms the call up on the way."""
    seconds = time_once(call)
    if seconds < 1:
        seconds = min(time_once(call) for _ in range(2))
    return max(1, min(MAX_REPEATS, math.ceil(SAMPLE_SECONDS / max(seconds, 1e-9))))


def alternate(calls: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, Samples]:
    """Sample each call `runs` times, turn by turn, so that drift of the machine meets all of them alike.

    The order turns round after every run: each call comes first as often as last. A sample of several calls begins
    with one more that is not timed: it finds caches and memory as the peer left them. Calls of seconds are sampled less
    often: see `PATIENCE_SECONDS`.
    """
    repeats = {name: choose_repeats(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order: Sequence[str] = list(calls)
    start = time.perf_counter()
    for run in range(runs):
        if run >= LEAST_RUNS and time.perf_counter() - start > PATIENCE_SECONDS:
            break
        for name in order:
            if repeats[name] > 1:
                calls[name]()
            seconds[name].append(time_once(calls[name], repeats[name]))
        order = order[::-1]
    return {name: Samples(tuple(values)) for name, values in seconds.items()}

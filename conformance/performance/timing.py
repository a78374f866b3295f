"""Times a call with enough samples for a median, each long enough for the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

SAMPLE_SECONDS = 1e-3
"""The minimum duration of a sample; short calls are repeated."""
FEWEST_SAMPLES, MOST_SAMPLES = 3, 15
LONG = 0.1
"""The duration from which a single sample suffices."""


class Time(NamedTuple):
    """The time of one call, in seconds."""

    seconds: float
    """The median of the samples."""
    spread: float
    """The interquartile range; 0 for a single sample."""


def time_of(call: Callable[[], Any], wait: Callable[[], Any] = lambda: None, budget: float = 0.5) -> Time:
    """Time a call that has been made before. `wait` is called after each sample and is included in its time.

    Takes samples for `budget` seconds, at least `FEWEST_SAMPLES`, or a single sample if it is longer than `LONG`.
    """
    end = time.perf_counter() + budget
    once = _sample(call, wait, 1)
    repeats = max(1, min(10_000, int(SAMPLE_SECONDS / max(once, 1e-9))))
    samples = [] if repeats > 1 else [once]
    fewest = 1 if once > LONG else FEWEST_SAMPLES
    while len(samples) < fewest or (len(samples) < MOST_SAMPLES and time.perf_counter() < end):
        samples.append(_sample(call, wait, repeats))
    return Time(statistics.median(samples), _spread(samples))


def _sample(call: Callable[[], Any], wait: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    return (time.perf_counter() - start) / repeats


def _spread(samples: list[float]) -> float:
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return high - low

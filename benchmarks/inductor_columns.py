"""The columns of `benchmarks.inductor` and their targets."""

from __future__ import annotations

import math
from collections.abc import Sequence

GROUP = "inductor"
OURS, THEIRS, EAGER = "ours", "Inductor C++", "torch eager"
RATIO, FASTEST_RATIO = "ours / C++", "ours / C++, fastest runs"
EAGER_RATIO = "eager / ours"
COLD = {name: f"cold compile, {name}" for name in (OURS, THEIRS)}
COLD_RATIO = "cold compile, ours / C++"
RATIO_BAR, MEAN_BAR, COLD_BAR = 1.3, 0.9, 0.5
"""The most that one ratio, the geometric mean of all, and that of compile times may be."""


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values))

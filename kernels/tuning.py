"""Kernels with several configurations, of which the fastest is chosen once for each problem."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import triton


class Tuned:
    """A kernel of which every problem has its best configuration, found by Triton's autotuner at the first launch.

    Later launches go to the kernel itself. Triton's autotuner takes 6 µs to find what it has chosen, and 60 to 100
    after a kernel whose data has replaced its code and its objects in the caches.
    """

    def __init__(
        self, kernel: Any, configs: Sequence[triton.Config], key: Sequence[str], sums: Sequence[str] = ()
    ) -> None:
        """`key` names the arguments of which the choice depends, and `sums` those that the kernel adds to."""
        self.kernel = kernel
        self._tuner = triton.autotune(configs=[*configs], key=[*key], reset_to_zero=[*sums])(kernel)
        self._best: dict[Hashable, dict[str, Any]] = {}

    def launch(
        self,
        problem: Hashable,
        config: dict[str, Any] | None,
        grid: Callable[[dict[str, Any]], tuple[int, ...]],
        *args: Any,
        **constants: Any,
    ) -> None:
        """Launch a configuration, by default the best one for the problem.

        `problem` holds what the choice depends on, element types included.
        """
        config = config or self._best.get(problem)
        if config is None:
            self._tuner[grid](*args, **constants)
            self._best[problem] = self._tuner.best_config.all_kwargs()
        else:
            self.kernel[grid](*args, **constants, **config)

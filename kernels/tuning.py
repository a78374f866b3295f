"""Kernels with several configurations, of which the fastest is chosen once for each problem."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import triton


class Tuned:
    """A kernel and its best configuration for each problem, which Triton's autotuner finds at the first launch.

    Later launches go to the kernel itself. The autotuner takes 6 µs to look up its choice if its code and objects are
    in the caches, and about ten times as long right after a kernel that has replaced them there.
    """

    def __init__(
        self, kernel: Any, configs: Sequence[triton.Config], key: Sequence[str], sums: Sequence[str] = ()
    ) -> None:
        """`key` names the arguments that the choice depends on, `sums` those that the kernel adds to."""
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

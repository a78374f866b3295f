"""Autotuning: configurations whose code is the same are compiled and timed once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any


@functools.cache
def tune_distinct_configurations(unused_options: Callable[[], Iterable[str]]) -> None:
    """Let the autotuner leave out configurations that differ only in options without effect on the active backend.

    `unused_options`: the names of these options. Of such configurations the first is kept. Programs for GPUs try many
    counts of warps and stages: on a CPU, a kernel of 9 ms is timed for 0.4 s with each.
    """
    from triton.runtime.autotuner import Autotuner

    by_triton = Autotuner.prune_configs

    # A replacement of Triton's own method, which is called when a key was not tuned yet.
    def prune_configs(self: Any, kwargs: Any) -> Any:
        configs = by_triton(self, kwargs)
        # An option may also be a parameter of the kernel, which then sees its value.
        unused = set(unused_options()) - set(self.arg_names)
        return distinct(configs, unused) if unused else configs

    Autotuner.prune_configs = prune_configs


def distinct(configs: Iterable[Any], unused: Iterable[str]) -> list[Any]:
    """The first of all configurations that differ only in `unused` options."""
    found: dict[str, Any] = {}
    for config in configs:
        used = {name: value for name, value in config.all_kwargs().items() if name not in unused}
        found.setdefault(repr((sorted(used.items(), key=lambda item: item[0]), id(config.pre_hook))), config)
    return list(found.values())

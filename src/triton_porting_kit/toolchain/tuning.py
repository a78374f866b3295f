"""Autotuning: configurations whose code is the same are tried once, slow ones left early, lost ones released.

On a CPU, all are compiled at once before the first is timed, by as many processes as there are cores.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat, together

TUNING = "TPK_TUNING"
"""The variable that says how configurations are chosen."""
WORDS = ("full", "first")
"""Its values: all are timed, or the first that compiles is taken."""


class _State(threading.local):
    """The tuning that a thread is in."""

    best = math.inf
    """The milliseconds of its fastest configuration so far."""


_state = _State()


def is_slower(times: Sequence[float]) -> bool:
    """Whether a configuration with these times of calls, in milliseconds, has lost against the fastest one so far.

    A call may be slow by accident, but not all are: the more there are, the smaller is the difference that decides.
    """
    return bool(times) and min(times) > _state.best * (1 + 1 / len(times))


class Active(Protocol):
    """What tuning asks about the active driver, which need not be the kit's."""

    def unused_options(self) -> Iterable[str]:
        """The compile options without effect on its kernels."""

    def benchmarker(self) -> Callable[..., Any] | None:
        """Its function that times calls and asks `is_slower`; None: the driver is not the kit's."""

    def compiles_in_forks(self) -> bool:
        """Whether a forked process can compile for it."""


@functools.cache
def tune_quickly(active: Active) -> None:
    """Let Triton's autotuner spend no time on what cannot win.

    Of configurations that differ only in options without effect on the active backend, the first is tried: programs for
    GPUs try many counts of warps and stages. Others are timed until they have lost against the fastest one, and their
    code is released then: programs tune thousands of times. ``TPK_TUNING=first`` takes the first that compiles.
    Where processes can compile, all configurations are compiled at once (`together`).
    """
    from triton.runtime.autotuner import Autotuner

    by_triton, bench = Autotuner.prune_configs, Autotuner._bench

    # Replacements of Triton's own methods. This one is called when a key was not tuned yet.
    def prune_configs(self: Any, kwargs: Any) -> Any:
        self.tpk_tuning = _Tuning(self)
        configs = by_triton(self, kwargs)
        # An option may also be a parameter of the kernel, which then sees its value.
        if unused := set(active.unused_options()) - set(self.arg_names):
            configs = distinct(configs, unused)
        if active.compiles_in_forks():
            self.tpk_tuning.ahead = list(configs)
        return configs

    def _bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        benchmarker, tuning = active.benchmarker(), self.__dict__.get("tpk_tuning")
        if benchmarker is None or tuning is None:  # a subclass may prune by itself
            return bench(self, *args, config=config, **meta)
        tuning.compile_ahead(args, meta)
        return tuning.time(config, partial(bench, self, *args, config=config, **meta), benchmarker)

    Autotuner.prune_configs, Autotuner._bench = prune_configs, _bench


class _Tuning:
    """The configurations that were tried for one key: the fastest one's time, and what was compiled for it."""

    def __init__(self, tuner: Any) -> None:
        self._tuner = tuner
        self._best = math.inf
        self._compiled: set[Any] = set()
        self._first = how() == "first"
        self.ahead: Sequence[Any] = ()
        """Configurations to compile before the first is timed."""
        self._ahead_of: dict[int, Any] = {}
        """What was compiled ahead, by the identity of its configuration."""

    def compile_ahead(self, args: Sequence[Any], meta: Mapping[str, Any]) -> None:
        """Compile the kernels that a launch with these arguments may want, in several processes, once."""
        configs, self.ahead = self.ahead, ()
        # A hook may change the arguments, and with them the kernel.
        configs = [config for config in configs if config.pre_hook is None]
        count = together.processes()
        if len(configs) > 1 < count and not self._first and compat.may_compile_ahead(self._tuner):
            together.compile_together([partial(self._warm, config, args, meta) for config in configs], count)

    def _warm(self, config: Any, args: Sequence[Any], meta: Mapping[str, Any]) -> None:
        asked = self._tuner.fn.run(*args, **{**meta, **config.all_kwargs(), "warmup": True})
        self._ahead_of[id(config)] = asked

    def time(
        self, config: Any, bench: Callable[[], Sequence[float]], benchmarker: Callable[..., Any]
    ) -> Sequence[float]:
        """The times that `bench` finds of a configuration: the median and two other quantiles."""
        if self._first and self._best < math.inf:
            return [math.inf] * 3
        kernels = compat.tuned_kernels(self._tuner)
        ahead = compat.finished_kernel(self._ahead_of.pop(id(config), None))
        before = {key for key, kernel in kernels.items() if kernel is not ahead}
        by_program = self._tuner.do_bench
        self._tuner.do_bench = self._replacement(by_program, benchmarker)
        _state.best = self._best
        try:
            times = bench()
        finally:
            self._tuner.do_bench, _state.best = by_program, math.inf
        lost = kernels.keys() - before
        if times[0] < self._best:
            self._best, lost, self._compiled = times[0], self._compiled, lost
        for key in lost:
            kernels.pop(key, None)
        return times

    def _replacement(
        self, by_program: Callable[..., Any], benchmarker: Callable[..., Any]
    ) -> Callable[..., Any]:
        """What times a configuration instead of Triton's own functions or the program's."""
        if self._first:
            return _untimed
        warmup, rep = self._tuner.num_warmups, self._tuner.num_reps
        if (warmup is None and rep is None) or self._tuner.use_cuda_graph:
            return by_program
        # Programs that name times get a function of Triton's with at least eight calls, however long each one takes.
        return partial(benchmarker, warmup=25 if warmup is None else warmup, rep=100 if rep is None else rep)


def _untimed(call: Callable[[], Any], quantiles: Sequence[float]) -> list[float]:
    call()
    return [0.0] * len(quantiles)


def how() -> str:
    """How configurations are chosen: ``full`` or ``first``. Raises `OptionError`."""
    word = os.environ.get(TUNING) or WORDS[0]
    if word not in WORDS:
        raise OptionError(f"{TUNING} is {word!r}", remedy=f"set it to {' or '.join(WORDS)}")
    return word


def distinct(configs: Iterable[Any], unused: Iterable[str]) -> list[Any]:
    """The first of all configurations that differ only in `unused` options."""
    found: dict[str, Any] = {}
    for config in configs:
        used = {name: value for name, value in config.all_kwargs().items() if name not in unused}
        found.setdefault(repr((sorted(used.items(), key=lambda item: item[0]), id(config.pre_hook))), config)
    return list(found.values())

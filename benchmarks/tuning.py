"""How much faster an autotuner with ten configurations is where a process on each core compiles them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import triton

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.arrays import empty
from triton_porting_kit.kernels.matmul import Tiles, matmul_kernel
from triton_porting_kit.toolchain.together import PROCESSES

from .compiling import forget, fresh_cache
from .figures import Figure, measured, ratio
from .first_result import GROUP
from .timing import Samples, time_once

NAME = "autotune matmul fp32, 10 configurations"
TILES = [Tiles(m, n, k, 8) for m in (32, 64, 128) for n in (32, 64, 128) for k in (32, 64)][:10]
BAR = 1.7
RUNS, QUICK_RUNS = 7, 2
SIZE = 64


def tuning_figures(place: Any, wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """Seconds of a first launch whose configurations are compiled and called once, if "autotune" is wanted."""
    counts = (1, min(2, len(os.sched_getaffinity(0))))
    if not wanted(NAME) or counts[1] == 1:
        return []
    a, b = (place.put(operand) for operand in cases.matmul_case(SIZE, SIZE, SIZE, "float32").operands())
    arrays = (a, b, empty((SIZE, SIZE), a))
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(QUICK_RUNS if quick else RUNS):
        for count in counts:
            seconds[count].append(_first_launch(arrays, count))
    one, two = (Samples(tuple(seconds[count])) for count in counts)
    return [
        measured(one, GROUP, NAME, "1 process"),
        measured(two, GROUP, NAME, "2 processes"),
        ratio(one, two, GROUP, NAME, "1 process / 2 processes", 0, BAR),
    ]


def _first_launch(arrays: Sequence[Any], count: int) -> float:
    """Seconds of a launch of an autotuned kernel that nothing is cached of."""

    def once(call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
        call()
        return [0.0] * len(quantiles)

    configs = [triton.Config(tiles.constexprs()) for tiles in TILES]
    tuner = triton.autotune(configs=configs, key=["M"], do_bench=once)(matmul_kernel)
    before = os.environ.get(PROCESSES)
    os.environ[PROCESSES] = str(count)
    try:
        with fresh_cache():
            forget((matmul_kernel,))
            return time_once(lambda: tuner[(4,)](*arrays, *(SIZE,) * 3, *(SIZE, 1) * 3, LEAKY_RELU=False))
    finally:
        forget((matmul_kernel,))
        if before is None:
            del os.environ[PROCESSES]
        else:
            os.environ[PROCESSES] = before

"""What a launch costs: the launcher object, each program of a large grid, and the whole way from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton

from triton_porting_kit.kernels.places import Operand

from .figures import Figure, measured
from .timing import Samples, alternate, quartiles

GROUP = "launch"
PROGRAMS = 100_000
LAUNCHER_BAR, PROGRAM_BAR, END_TO_END_BAR = 3e-6, 20e-9, 1.3


@triton.jit
def empty_kernel(a_ptr, b_ptr, c_ptr, n):
    """Nothing, with four arguments."""


@triton.jit
def idle_kernel(a_ptr, b_ptr, c_ptr, n):
    """The same, whose launcher is taken away."""


def nothing(*args: Any) -> None:
    """What takes arguments and does nothing."""


def launch_figures(place: Any, threads: int, wanted: Callable[[str], Any], runs: int) -> list[Figure]:
    """The figures whose names are wanted: "launch launcher object", "launch grid", "launch end to end"."""
    arrays = [place.put(Operand(np.zeros(16), "float32")) for _ in range(3)]
    arguments = (*arrays, 16)
    compiled = empty_kernel[(1,)](*arguments)
    idle = idle_kernel[(1,)](*arguments)
    idle._run = nothing
    launcher = compiled.run
    # As JITFunction.run passes them: stream, function, metadata, launch metadata and two hooks.
    rest = (0, compiled.function, compiled.packed_metadata, None, None, None, *arguments)
    figures: list[Figure] = []
    if wanted("launch launcher object"):
        samples = alternate(
            {"launcher": lambda: launcher(1, 1, 1, *rest), "nothing": lambda: nothing(1, 1, 1, *rest)}, runs
        )
        beyond = _difference(samples["launcher"], samples["nothing"])
        figures += [
            measured(samples["launcher"], GROUP, "launcher object", "call", threads),
            measured(samples["nothing"], GROUP, "launcher object", "Python's own call", threads),
            measured(beyond, GROUP, "launcher object", "beyond Python's call", threads, bar=LAUNCHER_BAR),
        ]
    if wanted("launch grid"):
        whole = alternate({"grid": lambda: launcher(PROGRAMS, 1, 1, *rest)}, runs)["grid"]
        each = Samples(tuple(value * threads / PROGRAMS for value in whole.seconds))
        figures.append(
            measured(each, GROUP, f"grid of {PROGRAMS}", "per program and core", threads, bar=PROGRAM_BAR)
        )
    if wanted("launch end to end"):
        samples = alternate(
            {"ours": lambda: empty_kernel[(1,)](*arguments), "idle": lambda: idle_kernel[(1,)](*arguments)},
            runs,
        )
        pairs = [a / b for a, b in zip(samples["ours"].seconds, samples["idle"].seconds, strict=True)]
        value = samples["ours"].median / samples["idle"].median
        figures += [
            measured(samples["ours"], GROUP, "end to end", "whole call", threads),
            measured(samples["idle"], GROUP, "end to end", "with a launcher that does nothing", threads),
            Figure(GROUP, "end to end", "ratio", threads, "x", value, *quartiles(pairs), bar=END_TO_END_BAR),
        ]
    return figures


def _difference(one: Samples, other: Samples) -> Samples:
    return Samples(tuple(a - b for a, b in zip(one.seconds, other.seconds, strict=True)))

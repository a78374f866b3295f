"""`torch.compile` by the kit beside Inductor's own C++, with one number of threads. `benchmarks.inductor` starts it."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from .figures import Figure, measured
from .inductor_columns import (
    COLD,
    COLD_BAR,
    COLD_RATIO,
    EAGER,
    EAGER_RATIO,
    FASTEST_RATIO,
    GROUP,
    OURS,
    RATIO,
    RATIO_BAR,
    THEIRS,
)
from .inductor_patterns import Pattern, Program, patterns
from .timing import Samples, alternate, quartiles, time_once

BACKENDS = {THEIRS: "cpp", OURS: "triton"}
QUICK_RUNS, RUNS = 5, 11
SINGLE_CALLS, CALLS_IN_A_ROW, SINGLE_SECONDS = 40, 3, 5.0
#: Largest difference from float64, over the largest element.
TOLERANCES = {torch.float32: 2e-4, torch.bfloat16: 3e-2}


class WrongResult(Exception):
    """A compiled program's result is beyond its tolerance, so its time says nothing."""


def compiled(program: Program, backend: str) -> Callable[..., Any]:
    """The program, to be compiled by its first call."""
    function: Callable[..., Any] = torch.compile(
        program.function, dynamic=False, options={"cpu_backend": backend}
    )
    return function


def check(name: str, results: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> None:
    """Compare with float64. Raises `WrongResult`."""
    for place, (found, right) in enumerate(zip(results, expected, strict=True)):
        if not found.is_floating_point():
            if not torch.equal(found, right):
                raise WrongResult(f"{name}: result {place} differs")
            continue
        error = (found.double() - right).abs().max().item() / max(right.abs().max().item(), 1e-30)
        if not error <= TOLERANCES[found.dtype]:
            raise WrongResult(f"{name}: result {place} is off by {error:.2e} of its largest element")


def measure(pattern: Pattern, threads: int, runs: int) -> list[Figure]:
    """The figures of a pattern. Raises `WrongResult`."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    program = pattern.make()
    expected = program.exact().outputs()
    cold: dict[str, float] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for column, backend in BACKENDS.items():
        function = compiled(program, backend)
        start = time.perf_counter()
        results = program.outputs(function)
        cold[column] = time.perf_counter() - start
        check(f"{pattern.name}, {column}", results, expected)
        calls[column] = lambda function=function: program.outputs(function)  # type: ignore[misc]
    calls[EAGER] = program.outputs
    samples = alternate(calls, runs)
    name = pattern.name
    found = [measured(sample, GROUP, name, column, threads) for column, sample in samples.items()]
    found.append(_over(samples[OURS], samples[THEIRS], name, RATIO, threads, True, RATIO_BAR))
    found.append(_over(samples[EAGER], samples[OURS], name, EAGER_RATIO, threads, False, pattern.eager_bar))
    least = fastest({column: calls[column] for column in BACKENDS})
    ratio = least[OURS] / least[THEIRS]
    found.append(measured(ratio, GROUP, name, FASTEST_RATIO, threads, unit="x", bar=RATIO_BAR))
    found += [measured(cold[column], GROUP, name, COLD[column], threads) for column in cold]
    return [
        *found,
        measured(cold[OURS] / cold[THEIRS], GROUP, name, COLD_RATIO, threads, unit="x", bar=COLD_BAR),
    ]


def fastest(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of the fastest of many single calls, in turn: what other programs on the machine disturb least."""
    found = dict.fromkeys(calls, math.inf)
    start = time.perf_counter()
    for _ in range(SINGLE_CALLS):
        for name, call in calls.items():
            for _ in range(CALLS_IN_A_ROW):
                found[name] = min(found[name], time_once(call))
        if time.perf_counter() - start > SINGLE_SECONDS:
            break
    return found


def _over(
    above: Samples, below: Samples, name: str, column: str, threads: int, less: bool, bar: float | None
) -> Figure:
    """A ratio of medians, with the quartiles of runs that were neighbours in time."""
    pairs = [x / y for x, y in zip(above.seconds, below.seconds, strict=True)]
    low, high = quartiles(pairs)
    return Figure(GROUP, name, column, threads, "x", above.median / below.median, low, high, less, bar)


def warm_up() -> None:
    """Compile once with both: libraries are imported, and C++'s precompiled headers are there."""
    program = Program(lambda x: (x * 2).sum(-1), (torch.randn(8, 64),))
    for backend in BACKENDS.values():
        program.outputs(compiled(program, backend))


def all_figures(threads: int, select: str, quick: bool) -> Iterator[tuple[list[Figure], str]]:
    """For each pattern its figures, or what was wrong."""
    warm_up()
    for pattern in patterns():
        if not re.search(select, pattern.name) or (quick and not pattern.quick):
            continue
        try:
            figures = measure(pattern, threads, QUICK_RUNS if quick else RUNS)
        except Exception as error:  # one that fails leaves the others their figures
            yield [], f"{pattern.name}: {type(error).__name__}: {error}"
            continue
        texts = [f"{f.column} {f.text()}" for f in figures if f.unit == "x"]
        print(f"{threads} threads, {pattern.name}: {'; '.join(texts)}", file=sys.stderr, flush=True)
        yield figures, ""


def main() -> None:
    """Measure and write figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--select", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    figures: list[Figure] = []
    wrong: list[str] = []
    for found, fault in all_figures(given.threads, given.select, given.quick):
        figures += found
        wrong += [fault] * bool(fault)
    data = {"figures": [figure.to_json() for figure in figures], "wrong": wrong}
    given.out.write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    main()

"""One workload measured: compared with float64, then timed in turn with torch eager and `torch.compile`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..figures import Figure, measured, ratio
from ..inductor_worker import check
from ..probe import Roof
from ..rows import BEST, COMPILED, EAGER, WORKLOAD_BAR
from ..timing import Samples, alternate
from .work import Made, Workload

GROUP, OURS = "workloads", "ours"


def measure(workload: Workload, roof: Roof | None, threads: int, runs: int, quick: bool) -> list[Figure]:
    """The figures of a workload. Raises `WrongResult`."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made = workload.make()
    program, name = made.program, workload.name
    calls: dict[str, Callable[[], Any]] = {
        OURS: lambda: made.ours(*program.inputs),
        EAGER: program.outputs,
        **{other: functools.partial(call, *program.inputs) for other, call in made.others.items()},
    }
    if not quick:
        compiled = torch.compile(program.function, dynamic=False)
        calls[COMPILED] = lambda: program.outputs(compiled)
    check(name, calls[OURS](), program.exact().outputs())
    samples = alternate(calls, runs)
    mine = samples.pop(OURS)
    best = min(samples.values(), key=lambda found: found.median)
    return [
        measured(mine, GROUP, name, OURS, threads),
        *(measured(found, GROUP, name, peer, threads) for peer, found in samples.items()),
        *(
            ratio(found, mine, GROUP, name, f"{peer} / ours", threads, None)
            for peer, found in samples.items()
        ),
        ratio(best, mine, GROUP, name, BEST, threads, WORKLOAD_BAR),
        *_of_the_roof(made, mine, roof, name, threads),
    ]


def _of_the_roof(made: Made, mine: Samples, roof: Roof | None, name: str, threads: int) -> list[Figure]:
    least = None if roof is None else roof.seconds(made.moved, made.flops, made.dtype)
    if least is None:
        return []
    value = least / mine.median
    return [measured(value, GROUP, name, "of the roof", threads, unit="x", less=False)]

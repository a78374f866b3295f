"""Run cases on a device, several in one kernel, and compare their results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray, WrongResult
from triton_porting_kit.conformance.comparison import Comparison
from triton_porting_kit.conformance.language.source import make_batch, make_kernel
from triton_porting_kit.conformance.language.table import Case
from triton_porting_kit.conformance.language.work import Work
from triton_porting_kit.conformance.memory import MemoryAccess


def arguments(work: Work, memory: MemoryAccess) -> list[GuardedArray]:
    """Memory for a kernel's parameters: first its inputs, then its results."""
    arrays = [GuardedArray.of(memory, kind, values) for values, kind in work.inputs]
    for result in work.results:
        array = GuardedArray(memory, result.kind, np.shape(result.values))
        if result.initial is not None:
            array.write(result.initial)
        arrays.append(array)
    return arrays


def comparisons(work: Work, arrays: list[GuardedArray]) -> list[tuple[str, Comparison]]:
    """The comparison of each result. Raises `WrongResult` if an operand or a guard zone was overwritten."""
    count = len(work.inputs)
    for k, array in enumerate(arrays[:count]):
        array.check_guards()
        if not array.is_unchanged():
            raise WrongResult(f"operand {k} was written to")
    pairs = zip(work.results, arrays[count:], strict=True)
    return [(f"result {k} ({result.kind})", result.compare(a.read())) for k, (result, a) in enumerate(pairs)]


def start(work: Work, memory: MemoryAccess) -> list[GuardedArray]:
    """Launch the kernel of a case and return its arguments."""
    arrays = arguments(work, memory)
    make_kernel(work.source)[(work.grid,)](*arrays, **work.options)
    return arrays


def start_together(works: list[Work], memory: MemoryAccess) -> list[list[GuardedArray]]:
    """Launch several cases as one kernel with one program, and return their arguments."""
    arrays = [arguments(work, memory) for work in works]
    kernels = {f"case_{k}": make_kernel(work.source) for k, work in enumerate(works)}
    names = [[f"A{k}_{i}" for i in range(len(own))] for k, own in enumerate(arrays)]
    parameters = ", ".join(name for own in names for name in own)
    calls = "".join(f"    case_{k}({', '.join(own)})\n" for k, own in enumerate(names))
    make_batch(kernels, f"def batch({parameters}):\n{calls}")[(1,)](*(a for own in arrays for a in own))
    return arrays


def can_be_batched(work: Work) -> bool:
    """Whether a case may share a kernel with others."""
    return work.grid == 1 and not work.options


def check(work: Work, arrays: list[GuardedArray]) -> None:
    """Raises `WrongResult` for the first array with wrong contents."""
    for what, comparison in comparisons(work, arrays):
        if comparison.differ:
            raise WrongResult(f"{what}: {comparison.message}")


def launch(work: Work, memory: MemoryAccess) -> None:
    """Run one case alone and compare its results. Raises `WrongResult`."""
    check(work, start(work, memory))


def run(cases: Iterable[Case], memory: MemoryAccess) -> dict[str, Exception | None]:
    """The outcome of each case, by id: None, or the exception that it raised.

    Cases that can share a kernel are compiled as one. If that fails, each is compiled by itself.
    """
    outcomes: dict[str, Exception | None] = {}
    together: dict[str, Work] = {}
    alone: dict[str, Work] = {}
    for case in cases:
        try:
            work = case.work()
        except Exception as error:
            outcomes[case.id] = error
            continue
        (together if can_be_batched(work) else alone)[case.id] = work
    if len(together) > 1:
        try:
            memories = start_together(list(together.values()), memory)
        except Exception:
            alone |= together
        else:
            for (name, work), own in zip(together.items(), memories, strict=True):
                outcomes[name] = _outcome(check, work, own)
    else:
        alone |= together
    for name, work in alone.items():
        outcomes[name] = _outcome(launch, work, memory)
    return outcomes


def _outcome(function: Any, *args: Any) -> Exception | None:
    try:
        function(*args)
    except Exception as error:
        return error
    return None

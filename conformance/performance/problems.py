"""Times the kernels of real size, and NumPy and torch on the same machine."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.arrays import GuardedArray, Home
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.kernels.problem import Operand, Problem
from triton_porting_kit.conformance.memory import MemoryAccess, TorchMemory
from triton_porting_kit.conformance.performance.timing import Time, time_of
from triton_porting_kit.conformance.types import Kind


class Pool(Home):
    """Allocates each array once: repeated launches get the same arrays in the same order."""

    def __init__(self, memory: MemoryAccess) -> None:
        super().__init__(memory)
        self._made: list[GuardedArray] = []
        self._next = 0

    def rewind(self) -> None:
        """Start again with the first array."""
        self._next = 0

    def empty(self, kind: Kind, shape: Sequence[int]) -> GuardedArray:
        if self._next == len(self._made):
            self._made.append(super().empty(kind, shape))
        found = self._made[self._next]
        if (found.kind, found.shape) != (kind, tuple(shape)):  # this launch differs from the one before
            found = self._made[self._next] = super().empty(kind, shape)
        self._next += 1
        return found


def timed() -> list[tuple[Check, Problem]]:
    """The checks whose kernels are timed: those with a NumPy peer."""
    return [
        (check, check.body)
        for check in catalogue.checks(["kernels"])
        if isinstance(check.body, Problem) and check.body.peer is not None
    ]


def kernels(session: Session, end: float) -> Iterator[dict[str, Any]]:
    """Measure each kernel. The remaining time until `end` (on the monotonic clock) is shared equally."""
    chosen = timed()
    for position, (check, problem) in enumerate(chosen):
        share = max(end - time.monotonic(), 0.0) / (len(chosen) - position)
        yield _figure(check, problem, session, share / 3)


def _figure(check: Check, problem: Problem, session: Session, budget: float) -> dict[str, Any]:
    figure: dict[str, Any] = {
        "kernel": check.name.split("/")[1],
        "shape": problem.shape,
        "type": problem.kind,
        "seconds": None,
        "spread": None,
        "numpy_seconds": None,
        "torch_seconds": None,
    }
    if session.capabilities is not None and (lacking := session.capabilities.lacks(check)):
        return figure | {"error": f"the profile does not claim {lacking}"}
    operands = list(problem.operands(np.random.default_rng(session.seed_of(check.name))))
    try:
        found = kernel_time(problem, operands, session.memory, budget)
    except Exception as error:
        return figure | {"error": f"{type(error).__name__}: {error}"[:500]}
    figure |= {"seconds": found.seconds, "spread": found.spread}
    if (numpy_call := _numpy_call(problem, operands)) is not None:
        figure["numpy_seconds"] = time_of(numpy_call, budget=budget).seconds
    if (peer := _torch_call(figure["kernel"], operands, session.memory)) is not None:
        torch_call, wait = peer
        try:
            torch_call()
            wait()
            figure["torch_seconds"] = time_of(torch_call, wait, budget).seconds
        except Exception as error:  # torch lacks many operations on some types and devices
            figure["torch_error"] = f"{type(error).__name__}: {error}"[:200]
    return figure


def kernel_time(problem: Problem, operands: Sequence[Operand], memory: MemoryAccess, budget: float) -> Time:
    """The time of the host function and its launches, without allocating arrays."""
    pool = Pool(memory)
    arrays = [GuardedArray.of(memory, o.kind, o.values, pool) for o in operands]

    def launch() -> None:
        pool.rewind()
        problem.launch(*arrays)

    launch()
    memory.synchronize()
    return time_of(launch, memory.synchronize, budget)


def _numpy_call(problem: Problem, operands: Sequence[Operand]) -> Callable[[], Any] | None:
    """A call of the NumPy peer; None if NumPy lacks a type."""
    peer = problem.peer
    if peer is None or any(o.kind.storage != o.kind.host for o in operands):
        return None
    values = [o.values for o in operands]
    return lambda: peer(*values)


def _torch_call(
    kernel: str, operands: Sequence[Operand], memory: MemoryAccess
) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
    """A call of the torch peer and a function that waits for it; None without torch or without a peer."""
    if importlib.util.find_spec("torch") is None:
        return None
    from triton_porting_kit.conformance.performance import torch_peers

    on_device = isinstance(memory, TorchMemory)
    device = memory.device if isinstance(memory, TorchMemory) else "cpu"
    call = torch_peers.call(kernel, operands, device)
    return None if call is None else (call, memory.synchronize if on_device else lambda: None)

"""The memory of modelled ranks: every access of a kernel is a turn of the schedule, and is held against the order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from triton_porting_kit.compiler.dialect import operations
from triton_porting_kit.compiler.dialect.interpreter import HANDLERS, Memory
from triton_porting_kit.distributed.model.order import NO_SITE, Array, Kind, Order, Progress
from triton_porting_kit.distributed.model.sites import Sites
from triton_porting_kit.distributed.model.world import Schedule, Task, current_task
from triton_porting_kit.errors import UnorderedAccess

_ATOMIC = (operations.AtomicRmw.OPERATION_NAME, operations.AtomicCas.OPERATION_NAME)
_READS = (operations.Load.OPERATION_NAME, operations.Gather.OPERATION_NAME)
_WRITES = (operations.Store.OPERATION_NAME, operations.Scatter.OPERATION_NAME)
_NAMES = {
    Kind.READ: "a load",
    Kind.WRITE: "a store",
    Kind.ATOMIC_ON_RANK: "an atomic operation that is not of scope sys",
    Kind.ATOMIC: "an atomic operation",
    Kind.VOLATILE: "a volatile load",
}


class State:
    """What memory keeps of a task."""

    def __init__(self, model: Any, progress: Progress) -> None:
        self.model, self.progress = model, progress
        self.operation: Any = None
        """The operation that is running."""
        self.loop: Any = None
        """The innermost `while` loop that is running."""
        self.heard: dict[int, Any] = {}
        """What volatile loads have found last, by address."""
        self.waits_for = self.least = 0
        """What `triton_porting_kit.language.wait` says: the address of the signal, or 0, and what it has to reach."""


class RankMemory(Memory):
    """The arrays of all ranks, at the addresses that they have in this process."""

    def __init__(self, schedule: Schedule, order: Order, describe: Callable[[int], str]) -> None:
        """`describe`: what is at an address, for errors."""
        super().__init__()
        self.counts_changes = True
        self.order, self.sites = order, Sites()
        self._schedule, self._describe = schedule, describe
        self.said: dict[int, str] = {}
        """The words in which waits say what they wait for: the attribute of `State`, by address."""
        self.slot_names: dict[int, str] = {}
        self.notified: dict[int, dict[int, int]] = {}
        """What ranks have added to words of symmetric memory, by address and rank."""

    def add_memory(self, address: int, size: int, name: str) -> None:
        """Make memory of this process accessible to kernels."""
        if size:
            content = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
            self.add(content, name, address)

    def read(self, addresses: Array, element: str) -> Array:
        found = super().read(addresses, element)
        task = current_task()
        if task is not None and (operation := task.state.operation) is not None:
            if operation.name in _ATOMIC:
                self._atomic(task, operation, addresses)
            elif operation.view.volatile:
                self._check(task, addresses, Kind.VOLATILE)
                for address, value in zip(addresses, found, strict=True):
                    self.order.hear(task.state.progress, int(address))
                    task.state.heard[int(address)] = value
            else:
                self._check(task, addresses, Kind.READ)
        return found

    def write(self, addresses: Array, values: Array) -> None:
        task = current_task()
        before = self.changes
        operation = None if task is None else task.state.operation
        if operation is not None and operation.name not in _ATOMIC:
            assert task is not None
            self._check(task, addresses, Kind.WRITE)
            if addresses.size == 1 and (said := self.said.get(int(addresses[0]))):
                setattr(task.state, said, int(values[0]))
        elif operation is not None and addresses.size == 1:
            assert task is not None
            old = int(super().read(addresses, operation.element)[0])
            by_rank = self.notified.setdefault(int(addresses[0]), {})
            by_rank[task.rank] = by_rank.get(task.rank, 0) + int(values[0]) - old
        super().write(addresses, values)
        self._schedule.changes += self.changes - before

    def host_access(self, address: int, size: int, writes: bool) -> None:
        """A copy by the host program of a rank."""
        task = current_task()
        if task is None or not size:
            return
        self._schedule.step(task)
        self._check(task, address + np.arange(size), Kind.WRITE if writes else Kind.READ)
        self._schedule.changes += writes

    def _atomic(self, task: Task, operation: Any, addresses: Array) -> None:
        view = operation.view
        self._check(task, addresses, Kind.ATOMIC if view.scope == "sys" else Kind.ATOMIC_ON_RANK)
        for address in addresses:
            self.order.atomic(task.state.progress, int(address), view.sem, view.scope)

    def _check(self, task: Task, addresses: Array, kind: Kind) -> None:
        if task.is_cancelled:
            return
        operation = task.state.operation
        site = NO_SITE if operation is None else self.sites.number(operation)
        met = self.order.access(task.state.progress, addresses, kind, site)
        if met is None:
            return
        address, slot, earlier, other_site = met
        raise UnorderedAccess(
            f"nothing orders two accesses to {self._describe(address)}:\n"
            f"  {self.slot_names[slot]}: {_NAMES[earlier]}{self.sites.text(other_site)}\n"
            f"  {task.name}: {_NAMES[kind]}{self.sites.text(site)}\n"
            "  what to do: notify behind the first of them, and wait in front of the second"
        )


def _observed(handler: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that accesses memory: others may run before it."""

    def call(run: Any, op: Any, *operands: Any) -> Any:
        task = current_task()
        assert task is not None
        task.schedule.step(task)
        task.state.operation = op
        try:
            return handler(run, op, *operands)
        finally:
            task.state.operation = None

    return call


def _observed_loop(run: Any, op: Any, *operands: Any) -> Any:
    """A loop that may wait: errors name its line."""
    task = current_task()
    assert task is not None
    outer, task.state.loop = task.state.loop, op
    result = HANDLERS[op.name](run, op, *operands)
    task.state.loop = outer
    return result


OBSERVED: Mapping[str, Callable[..., Any]] = (
    HANDLERS
    | {"scf.while": _observed_loop}
    | {name: _observed(HANDLERS[name]) for name in (*_ATOMIC, *_READS, *_WRITES)}
)
"""The interpreter's handlers, with those that access memory observed."""

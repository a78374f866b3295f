"""`time_ranks` tells how long kernels of several ranks take on chips that are joined by links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.chips import ChipDescription
from triton_porting_kit.compiler.dialect import operations
from triton_porting_kit.compiler.dialect.interpreter import HANDLERS, Memory
from triton_porting_kit.compiler.dialect.interpreter.formats import dtype_of, is_float
from triton_porting_kit.distributed.group import Group
from triton_porting_kit.distributed.model.memory import OBSERVED, RankMemory
from triton_porting_kit.distributed.model.order import Array, Order
from triton_porting_kit.distributed.model.running import ALONE, Model, ModelLauncher, with_group
from triton_porting_kit.distributed.model.timing.clock import Chip, Core
from triton_porting_kit.distributed.model.timing.events import Events
from triton_porting_kit.distributed.model.world import Task, current_task
from triton_porting_kit.toolchain import compat


@dataclass(frozen=True)
class Timed:
    """A launch of a kernel on all ranks: from when the first of them begins to when the last one is done."""

    kernel: str
    cycles: float
    bytes_sent: int
    """Over the links, by the rank that sent most."""
    link_use: float
    """The busiest link's share of the time."""


def time_ranks(
    function: Callable[[Group], Any], ranks: int, chip: ChipDescription, *, heap_bytes: int = 1 << 20
) -> list[Timed]:
    """Call `function` with a group on every rank of a modelled group; the time of each of its launches.

    Each rank is a chip of the description, which has a link. An event simulation executes the kernels' control, single
    elements and atomic operations; tiles are not moved and are zero, so that large sizes can be tried. Every rank
    launches the same kernels, whose control depends on no tile. Grids have at most 7 programs, each on a core of its
    own. Kernels are compiled for the active backend, which must have the stage `structured`.
    """
    with ALONE, compat.wrapped_launchers(ModelLauncher):
        model = _TimedModel(ranks, heap_bytes, chip)
        model.run(partial(with_group, function, ()))
    return model.timed()


class _TimedModel(Model):
    """A model whose programs have clocks."""

    schedule: Events

    def __init__(self, ranks: int, heap_bytes: int, chip: ChipDescription) -> None:
        super().__init__(ranks, 0, heap_bytes)
        self.chips = [Chip(chip) for _ in range(ranks)]
        self.handlers = _TIMED
        self._hosts = [0.0] * ranks
        self._programs: dict[int, list[Task]] = {}
        self._met: dict[int, float] = {}
        self._spans: list[list[tuple[str, float, float]]] = [[] for _ in range(ranks)]
        self._moved: list[list[tuple[int, float]]] = [[] for _ in range(ranks)]

    def _make_schedule(self, seed: int) -> Events:
        return Events(self._describe_wait)

    def _make_memory(self) -> RankMemory:
        return _TimedMemory(self)

    def rank_of(self, address: int, otherwise: int) -> int:
        """The rank whose part of the heap an address is in; `otherwise` for other memory."""
        rank = (address - self._start) // self._part
        return rank if 0 <= rank < self.ranks else otherwise

    def _task(self, rank: int, number: int, name: str, body: Callable[[], Any]) -> Task:
        task = super()._task(rank, number, name, body)
        now = self._hosts[rank]
        if number:
            task.state.core = Core(self.chips, rank, now)
            self._programs.setdefault(rank, []).append(task)
        self.schedule.start(task, now)
        return task

    def run_programs(self, host: Task, name: str, programs: Sequence[Callable[[], None]]) -> None:
        rank = host.rank
        begin = self._hosts[rank]
        self._hosts[rank] = begin + self.chips[rank].description.launch_cycles
        self._programs[rank] = []
        super().run_programs(host, name, programs)
        end = max(task.state.core.end() for task in self._programs[rank])
        self._hosts[rank] = end
        self._spans[rank].append((name, begin, end))
        chip = self.chips[rank]
        self._moved[rank].append((chip.bytes_sent, max(chip.sends.busy_cycles, chip.receives.busy_cycles)))

    def exchange(self, count: int, rank: int, content: bytes) -> list[bytes]:
        self._met[count] = max(self._met.get(count, 0.0), self._hosts[rank])
        found = super().exchange(count, rank, content)
        self._hosts[rank] = self._met[count]
        return found

    def timed(self) -> list[Timed]:
        found = []
        before = [(0, 0.0)] * self.ranks
        for number, spans in enumerate(zip(*self._spans, strict=True)):
            cycles = max(end for _, _, end in spans) - min(begin for _, begin, _ in spans)
            moved = [each[number] for each in self._moved]
            sent = max(now[0] - then[0] for now, then in zip(moved, before, strict=True))
            busy = max(now[1] - then[1] for now, then in zip(moved, before, strict=True))
            found.append(Timed(spans[0][0], cycles, sent, busy / cycles))
            before = moved
        return found


class _TimedMemory(RankMemory):
    """Memory of all ranks, of which kernels access single elements; tiles only take time."""

    def __init__(self, model: _TimedModel) -> None:
        super().__init__(model.schedule, Order(0, 8, 1, 1), model.describe)
        self._model = model

    def host_access(self, address: int, size: int, writes: bool) -> None:
        """Copies of the host take no time."""

    def read(self, addresses: Array, element: str) -> Array:
        task = current_task()
        operation = None if task is None else task.state.operation
        if task is None or operation is None or not addresses.size:
            return Memory.read(self, addresses, element)
        core: Core = task.state.core
        first, size = int(addresses[0]), addresses.size * dtype_of(element).itemsize
        peer = self._model.rank_of(first, task.rank)
        if operation.name in _TILES and operation.shape:
            core.load(size, peer)
            return np.zeros(addresses.shape, dtype_of(element))
        atomic = operation.name in _ATOMIC
        task.state.effect = core.element(size, peer, reads=not atomic or peer == task.rank)
        if atomic and operation.view.sem != "acquire":
            task.state.effect = max(task.state.effect, core.stored)
        found = Memory.read(self, addresses, element)
        if operation.view.volatile if not atomic else peer == task.rank:
            core.now = max(core.now, self._model.schedule.hear(task, first))
            task.state.heard[first] = found[0]
        return found

    def write(self, addresses: Array, values: Array) -> None:
        task = current_task()
        operation = None if task is None else task.state.operation
        if task is None or operation is None or not addresses.size:
            Memory.write(self, addresses, values)
            return
        core: Core = task.state.core
        first, size = int(addresses[0]), values.size * values.itemsize
        peer = self._model.rank_of(first, task.rank)
        if operation.name in _TILES and operation.view.tile.type.shape:
            core.store(size, peer)
            return
        if operation.name not in _ATOMIC:
            task.state.effect = core.element(size, peer, reads=False)
            if addresses.size == 1 and (said := self.said.get(first)):
                setattr(task.state, said, int(values[0]))
        before = self.changes
        Memory.write(self, addresses, values)
        if self.changes != before:
            self._model.schedule.change(first, task.state.effect)


def _matmul(run: Any, op: Any, a: Any, b: Any, total: Any) -> Any:
    """A product takes time, and its result is not computed."""
    task = current_task()
    assert task is not None
    (m, k), n = np.shape(a), np.shape(b)[1]
    kinds = [operand.type.element for operand in op.operands[:2]]
    task.state.core.product(m, n, k, *(_TYPES.get(kind, kind) for kind in kinds))
    return total


def _vector(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Arithmetic on tiles of floats."""

    def call(run: Any, op: Any, *operands: Any) -> Any:
        result = handler(run, op, *operands)
        if op.shape and is_float(op.element):
            task = current_task()
            assert task is not None
            task.state.core.vector(np.size(result) * dtype_of(op.element).itemsize)
        return result

    return call


_ATOMIC = (operations.AtomicRmw.OPERATION_NAME, operations.AtomicCas.OPERATION_NAME)
_TILES = tuple(
    each.OPERATION_NAME for each in (operations.Load, operations.Gather, operations.Store, operations.Scatter)
)
_TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32"}
_TIMED: Mapping[str, Callable[..., Any]] = (
    dict(OBSERVED)
    | {name: _vector(HANDLERS[name]) for name in HANDLERS if name.startswith("arith.") and name[-1] == "f"}
    | {"linalg.matmul": _matmul}
)

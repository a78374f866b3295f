"""`check_ranks` runs a program of several ranks by the model."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit import language
from triton_porting_kit.compiler import artefacts
from triton_porting_kit.compiler.dialect.interpreter import Kernel, Launch, as_number, read_kernel
from triton_porting_kit.distributed.group import OWN_BYTES, Group
from triton_porting_kit.distributed.model.device import RankDevice, whole_heap
from triton_porting_kit.distributed.model.memory import OBSERVED, RankMemory, State
from triton_porting_kit.distributed.model.order import Order, Progress
from triton_porting_kit.distributed.model.sites import where
from triton_porting_kit.distributed.model.world import Schedule, Task, current_task
from triton_porting_kit.distributed.rendezvous import Rendezvous
from triton_porting_kit.driver.symmetric import PAGE
from triton_porting_kit.errors import GroupError
from triton_porting_kit.toolchain import compat

MOST_PROGRAMS = 7
"""Programs of a grid."""
_LEADING = 9
"""The number of arguments of a launcher before the kernel's."""
_TIMEOUT = 3600.0
ALONE = threading.Lock()
"""Held while a model runs: it wraps the launchers of the process."""


def check_ranks(
    function: Callable[..., Any], ranks: int, *arguments: Any, seed: int = 0, heap_bytes: int = 1 << 18
) -> list[Any]:
    """Call ``function(group, *arguments)`` on every rank of a group in this process, and return what each returns.

    An interpreter runs the kernels, one program at a time; `seed` determines which goes on and which is delayed. Grids
    have at most 7 programs. Kernels are compiled for the active backend, which must have the stage `structured`.

    Raises `UnorderedAccess` if nothing orders two accesses to symmetric memory, `RanksStuck` if no rank can go on,
    `OutOfBounds`, and what `function` raises.
    """
    with ALONE, compat.wrapped_launchers(ModelLauncher):
        return Model(ranks, seed, heap_bytes).run(partial(with_group, function, arguments))


def with_group(function: Callable[..., Any], arguments: Sequence[Any], group: Group) -> Any:
    with group:
        return function(group, *arguments)


class Model:
    """The ranks of one run."""

    handlers = OBSERVED
    """What executes operations of kernels."""

    def __init__(self, ranks: int, seed: int, heap_bytes: int) -> None:
        self.ranks = ranks
        self._heap_bytes = -(-heap_bytes // PAGE) * PAGE
        self.schedule = self._make_schedule(seed)
        self._part = -(-(heap_bytes + OWN_BYTES) // PAGE) * PAGE
        self._whole = whole_heap(ranks, self._part)
        self._start = int(np.frombuffer(self._whole, np.uint8).ctypes.data) + PAGE
        self.memory = self._make_memory()
        self.progress: dict[int, Progress] = {}
        self._groups: dict[int, Group] = {}
        self._offsets: set[int] = set()
        self._arrived: list[list[tuple[int, bytes, Any]]] = []
        """What ranks bring to each exchange."""

    def _make_schedule(self, seed: int) -> Schedule:
        return Schedule(seed, self._describe_wait)

    def _make_memory(self) -> RankMemory:
        order = Order(self._start, self.ranks * self._part, self.ranks, 1 + MOST_PROGRAMS)
        return RankMemory(self.schedule, order, self.describe)

    def run(self, body: Callable[[Group], Any]) -> list[Any]:
        tasks = [
            self._task(rank, 0, "on the host", partial(self._rank, rank, body)) for rank in range(self.ranks)
        ]
        return self.schedule.run(tasks)

    def _rank(self, rank: int, body: Callable[[Group], Any]) -> Any:
        memory = self.memory
        device = RankDevice(self._whole, memory.host_access, partial(self._allocated, rank), memory.remove)
        group = Group(ModelRendezvous(self, rank), device, self._heap_bytes, _TIMEOUT)
        words = group.context.data_ptr()
        memory.said[words + 8 * language.WAITS_FOR.value] = "waits_for"
        memory.said[words + 8 * language.LEAST.value] = "least"
        self._groups[rank] = group
        return body(group)

    def _task(self, rank: int, number: int, name: str, body: Callable[[], Any]) -> Task:
        slot = rank * (1 + MOST_PROGRAMS) + number
        task = Task(self.schedule, rank, name, body)
        if slot not in self.progress:
            self.progress[slot] = Progress(slot, rank, self.ranks * (1 + MOST_PROGRAMS))
        task.state = State(self, self.progress[slot])
        self.memory.slot_names[slot] = task.name
        return task

    def _allocated(self, rank: int, address: int, size: int, symmetric: bool) -> None:
        if not symmetric:
            self.memory.add_memory(address, size, f"memory of rank {rank}")
            return
        offset = address - self._start - rank * self._part
        if offset not in self._offsets:  # the other ranks' is there, too
            self._offsets.add(offset)
            for peer in range(self.ranks):
                start = self._start + peer * self._part + offset
                self.memory.add_memory(start, size, f"symmetric memory of rank {peer} at offset {offset}")

    # --- launches ------------------------------------------------------------------------------------------

    def launch(self, task: Task, kernel: Kernel, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        """Run a kernel on the task's rank, and let the task wait for it."""
        launch = Launch(kernel, grid, self.memory, handlers=self.handlers)
        launch.takes_turns = True
        launch.turns = _Programs(self, task, kernel.name)
        launch.run(values)

    def run_programs(self, host: Task, name: str, programs: Sequence[Callable[[], None]]) -> None:
        if len(programs) > MOST_PROGRAMS:
            raise GroupError(
                f"{name} is launched with {len(programs)} programs; the model has room for {MOST_PROGRAMS} of each rank"
            )
        passed = host.state.progress.release()
        tasks = []
        for number, program in enumerate(programs):
            text = f"program {number} of {name}"
            task = self._task(host.rank, 1 + number, text, partial(np.errstate(all="ignore")(program)))
            task.state.progress.release()
            task.state.progress.acquire(passed)
            tasks.append(task)
        for task in tasks:
            self.schedule.add(task)
        self.schedule.wait(host, lambda: all(task.ended for task in tasks), f"its launch of {name}")
        for task in tasks:
            host.state.progress.acquire(task.state.progress.release())

    def exchange(self, count: int, rank: int, content: bytes) -> list[bytes]:
        """What all ranks bring to their exchange of this number."""
        task = current_task()
        assert task is not None
        if count == len(self._arrived):
            self._arrived.append([])
        brought = self._arrived[count]
        brought.append((rank, content, task.state.progress.release()))
        missing = "all ranks to call what is collective (allocations, barriers, the end)"
        self.schedule.wait(task, lambda: len(brought) == self.ranks, missing)
        for _, _, passed in brought:
            task.state.progress.acquire(passed)
        return [content for _, content, _ in sorted(brought, key=lambda each: each[0])]

    # --- texts ---------------------------------------------------------------------------------------------

    def describe(self, address: int) -> str:
        rank, offset = divmod(address - self._start, self._part)
        if rank not in self._groups:
            return f"offset {offset} of the symmetric memory of rank {rank}"
        own = self._start + rank * self._part + offset
        return f"{self._groups[rank].describe(own)} of rank {rank}"

    def _describe_wait(self, task: Task) -> str:
        if task.ready is not None:
            return f"waits for {task.waits_for}"
        state = task.state
        loop = "" if state.loop is None else f" at {where(state.loop)}"
        if not state.waits_for:
            return f"does not leave its loop{loop}"
        by_rank = self.memory.notified.get(state.waits_for, {})
        added = ", ".join(f"{by_rank[rank]} by rank {rank}" for rank in sorted(by_rank))
        found = state.heard.get(state.waits_for, "unknown")
        return (
            f"waits{loop} for {self.describe(state.waits_for)} to reach {state.least}; it is {found}"
            f" ({added or 'nobody has notified it'})"
        )


class _Programs:
    """How the interpreter runs the programs of a launch, and lets them wait."""

    def __init__(self, model: Model, host: Task, name: str) -> None:
        self._model, self._host, self._name = model, host, name

    def run(self, programs: Sequence[Callable[[], None]]) -> None:
        self._model.run_programs(self._host, self._name, programs)

    def pass_on(self, at: Any, *, limited: bool) -> None:
        task = current_task()
        assert task is not None
        self._model.schedule.spin(task)


class ModelRendezvous(Rendezvous):
    """The rendezvous of ranks in one process."""

    def __init__(self, model: Model, rank: int) -> None:
        super().__init__(rank, model.ranks, _TIMEOUT)
        self._model, self._count = model, 0

    def exchange(self, content: bytes) -> list[bytes]:
        self._count += 1
        return self._model.exchange(self._count - 1, self.rank, content)


# --- launchers -------------------------------------------------------------------------------------------


class ModelLauncher:
    """Wraps a launcher: launches by modelled ranks go to the model."""

    def __init__(self, kernel: Any, launcher: Any) -> None:
        # Triton's kernel holds a reference to this object; a reference back would be a cycle.
        self._kernel = weakref.ref(kernel)
        self._launcher = launcher
        self._read: Kernel | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def __call__(self, *call: Any, **hidden: Any) -> Any:
        task = current_task()
        if task is None:
            return self._launcher(*call, **hidden)
        if self._read is None:
            kernel = self._kernel()
            assert kernel is not None
            self._read = read_kernel(artefacts.parse_structured(kernel.asm["structured"]))
        given = self._launcher.layout.signature.flatten(call[_LEADING:])
        values = [
            np.int64(value.data_ptr()) if parameter.is_pointer else as_number(parameter, value)
            for parameter, value in zip(self._read.parameters, given, strict=True)
        ]
        grid = (int(call[0]), int(call[1]), int(call[2]))
        task.state.model.launch(task, self._read, grid, values)
        return None

"""The schedule of programs that have clocks: the one that is furthest behind goes on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from triton_porting_kit.distributed.model.world import Schedule, Task


class Events(Schedule):
    """Gives turns to tasks by their clocks, in cycles. A task that waits in a loop sleeps until a word that it has read
    changes."""

    def __init__(self, describe: Callable[[Task], str]) -> None:
        super().__init__(0, describe)
        self._able: list[tuple[float, int, Task]] = []
        self._waiting: list[Task] = []
        """Tasks that wait for a condition, which only what ends or arrives can change."""
        self._asleep: dict[int, list[Task]] = {}
        """By address."""
        self._versions: dict[int, int] = {}
        self._effects: dict[int, float] = {}
        """When the last change of a word is seen by others."""
        self._number = 0
        self._look = False

    def start(self, task: Task, now: float) -> None:
        """Let a new task begin at a time."""
        task.state.listens, task.state.seen = {}, {}
        task.state.starts_at = now

    def add(self, task: Task) -> None:
        self._push(task)
        super().add(task)

    def _first(self, tasks: Sequence[Task]) -> Task:
        return heapq.heappop(self._able)[2]

    def leave(self, task: Task) -> None:
        self._look = True
        super().leave(task)

    def step(self, task: Task) -> None:
        if not task.is_cancelled and self._able and self._able[0][0] < _now(task):
            self._push(task)
            self._switch(task)

    def hear(self, task: Task, address: int) -> float:
        """Called when a task reads a word that others change; when the word had its value."""
        task.state.listens[address] = self._versions.get(address, 0)
        return self._effects.get(address, 0.0)

    def change(self, address: int, effect: float) -> None:
        """A word has changed, which others see at a time."""
        self._versions[address] = self._versions.get(address, 0) + 1
        self._effects[address] = max(self._effects.get(address, 0.0), effect)
        for task in self._asleep.pop(address, ()):
            if task.state.sleeps:
                task.state.sleeps = False
                self._push(task)

    def spin(self, task: Task) -> None:
        if task.is_cancelled:
            return
        listens, task.state.listens = task.state.listens, {}
        same, task.state.seen = (
            listens == task.state.seen,
            listens,
        )  # the loop may end by what it has just read
        if same and all(self._versions.get(address, 0) == version for address, version in listens.items()):
            task.state.sleeps = True
            for address in listens:
                self._asleep.setdefault(address, []).append(task)
        else:
            self._push(task)
        self._switch(task)

    def wait(self, task: Task, ready: Callable[[], bool], what: str) -> None:
        task.ready, task.waits_for = ready, what
        self._look = True
        while not task.is_cancelled and not ready():
            self._waiting.append(task)
            self._switch(task)
        task.ready = None

    def _push(self, task: Task) -> None:
        self._number += 1
        heapq.heappush(self._able, (_now(task), self._number, task))

    def _choose(self) -> Task | None:
        if self.failure is not None:
            return self._tasks[0]
        if self._look:
            self._look = False
            able = [task for task in self._waiting if task.can_go_on]
            self._waiting = [task for task in self._waiting if not task.can_go_on]
            for task in able:
                self._push(task)
        return heapq.heappop(self._able)[2] if self._able else None


def _now(task: Task) -> float:
    core = getattr(task.state, "core", None)
    return float(task.state.starts_at if core is None else core.now)

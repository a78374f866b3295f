"""The schedule of modelled ranks: one program of one rank runs at a time, and a seed chooses which."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.errors import GroupError, RanksStuck

PATIENCE = 400
"""Iterations that a program waits while no memory changes, after which it counts as stuck. More than the reads after
which `triton_porting_kit.language.wait` says what it waits for."""
LONGEST_RUN = 2_000_000
"""Accesses of all ranks, after which a run counts as endless."""
_SWITCH, _DELAY = 0.4, 0.1
"""How probable it is that another program goes on before an access, and that the one that stops is delayed."""
_LONGEST_DELAY = 300
"""Accesses of other programs that a delayed one waits for at most."""


class Cancelled(BaseException):
    """Ends a task because another one has failed."""


class Task(threading.Thread):
    """A thread of execution of a rank: its host program, or a program of a grid. Runs only during its turn."""

    def __init__(self, schedule: Schedule, rank: int, name: str, body: Callable[[], Any]) -> None:
        super().__init__(daemon=True, name=f"rank {rank}, {name}")
        self.schedule, self.rank, self._body = schedule, rank, body
        self.result: Any = None
        self.is_cancelled = self.ended = False
        self.ready: Callable[[], bool] | None = None
        """What it waits for, if it is not a loop of its own."""
        self.waits_for = ""
        """The same as text."""
        self.awake_at = 0
        self.idle, self.seen = 0, -1
        self.state: Any = None
        """What memory keeps for it."""
        self.turn = threading.Semaphore(0)

    def run(self) -> None:
        self.turn.acquire()
        try:
            if self.schedule.failure is None:
                self.result = self._body()
        except Cancelled:
            pass
        except BaseException as error:  # raised again by `Schedule.run`
            if self.schedule.failure is None:
                self.schedule.failure = error
        self.ended = True
        self.schedule.leave(self)

    @property
    def can_go_on(self) -> bool:
        return self.ready is None or self.ready()


def current_task() -> Task | None:
    """The task that the calling thread is."""
    found = threading.current_thread()
    return found if isinstance(found, Task) else None


class Schedule:
    """Gives turns to tasks.

    A task goes on until it accesses memory; then, at random, another one may, and the first one may be delayed. `seed`
    determines all of it, so that a run can be repeated.
    """

    def __init__(self, seed: int, describe: Callable[[Task], str]) -> None:
        """`describe`: what a task waits for, as text, for errors."""
        self.failure: BaseException | None = None
        self.changes = 0
        """How often memory was written."""
        self._random = random.Random(seed)
        self._describe = describe
        self._tasks: list[Task] = []
        self._steps = 0
        self._done = threading.Semaphore(0)

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Run tasks, and all that they add, to their end. Returns their results. Raises the first error of any."""
        for task in tasks:
            self.add(task)
        self._first(tasks).turn.release()
        self._done.acquire()
        for task in tasks:
            task.join()
        if self.failure is not None:
            raise self.failure
        return [task.result for task in tasks]

    def _first(self, tasks: Sequence[Task]) -> Task:
        return tasks[0]

    def add(self, task: Task) -> None:
        self._tasks.append(task)
        task.start()

    def leave(self, task: Task) -> None:
        """Called by a task that has ended."""
        self._tasks.remove(task)
        if not self._tasks:
            self._done.release()
            return
        following = self._choose()
        if following is None:
            self.failure = self.failure or self._stuck()
            following = self._tasks[0]
        following.turn.release()

    def step(self, task: Task) -> None:
        """Called by a task before it accesses memory."""
        if task.is_cancelled:
            return
        self._steps += 1
        if self._steps > LONGEST_RUN:
            raise GroupError(f"{task.name}: the ranks have not ended after {LONGEST_RUN} accesses")
        if self._random.random() < _SWITCH:
            if self._random.random() < _DELAY:
                task.awake_at = self._steps + self._random.randrange(_LONGEST_DELAY)
            self._switch(task)

    def spin(self, task: Task) -> None:
        """Called by a task between two iterations of a loop that may wait. Raises `RanksStuck`."""
        if task.is_cancelled:
            return
        task.idle = task.idle + 1 if task.seen == self.changes else 0
        task.seen = self.changes
        if task.idle > PATIENCE and all(self._is_stuck(each) for each in self._tasks):
            raise self._stuck()
        self._steps += 1
        self._switch(task)

    def wait(self, task: Task, ready: Callable[[], bool], what: str) -> None:
        """Let a task wait for something, which `what` names. Raises `RanksStuck`."""
        task.ready, task.waits_for = ready, what
        while not task.is_cancelled and not ready():
            self._switch(task)
        task.ready = None

    def _is_stuck(self, task: Task) -> bool:
        return not task.can_go_on or (task.idle > PATIENCE and task.seen == self.changes)

    def _switch(self, task: Task) -> None:
        following = self._choose()
        if following is None:
            raise self._stuck()
        if following is not task:
            following.turn.release()
            task.turn.acquire()
        if self.failure is not None:
            task.is_cancelled = True
            raise Cancelled

    def _choose(self) -> Task | None:
        if self.failure is not None:
            return self._tasks[0]
        able = [task for task in self._tasks if task.can_go_on]
        hopeful = [task for task in able if not task.idle or task.seen != self.changes] or able
        awake = [task for task in hopeful if task.awake_at <= self._steps]
        return self._random.choice(awake or hopeful) if able else None

    def _stuck(self) -> RanksStuck:
        lines = [f"  {task.name}: {self._describe(task)}" for task in self._tasks]
        return RanksStuck(
            "\n".join(["the ranks wait for each other, and none can go on:", *lines])
            + "\n  what to do: look for the notification that should end one of these waits, its rank and its amount"
        )

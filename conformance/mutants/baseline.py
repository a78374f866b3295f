"""The baseline on the unmodified kit: which lines each unit executes, and how long it takes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from triton_porting_kit.conformance.mutants.client import Nursery, NurseryFailed, Server
from triton_porting_kit.conformance.mutants.reach import Reach, check_coverage
from triton_porting_kit.conformance.mutants.server import EVERYTHING
from triton_porting_kit.conformance.mutants.unit import Unit
from triton_porting_kit.errors import PortingKitError

LIMIT = 300.0
"""Time limit, in seconds, of a unit while its lines are recorded."""
_TRIES = 2
_SAVE_SECONDS = 30.0

Report = Callable[[str], None]


class SuiteFails(PortingKitError):
    """Too many checks fail on the unmodified kit, so mutants cannot be judged."""


def measure(
    reach: Reach,
    units: Sequence[Unit],
    files: Mapping[str, Path],
    *,
    jobs: int,
    threads: int,
    save: Callable[[], None],
    report: Report,
    end: float,
) -> bool:
    """Measure the units that `reach` lacks. `end`: no unit starts after this time. Returns False if units are left.

    Raises `CoverageMissing`, `NurseryFailed` and `SuiteFails`.
    """
    waiting = [unit for unit in units if unit.name not in reach]
    if not waiting:
        return True
    check_coverage()
    names = {str(path): name for name, path in files.items() if name.endswith(".py")}
    state = _Progress(len(waiting), save, report)
    with Nursery(EVERYTHING, threads) as nursery:

        def work(share: Sequence[Unit]) -> None:
            with Server(nursery, {}, names) as server, Server(nursery, {}) as plain:
                for one in (server, plain):
                    found = one.failure or one.warm()
                    if found.caught:
                        raise NurseryFailed(f"the unmodified kit cannot be opened: {found.message}")
                with state.lock:
                    reach.started.update(server.started)
                for unit in share:
                    if time.monotonic() > end:
                        return
                    _add(reach, unit, server, plain, state)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work, [waiting[number::jobs] for number in range(jobs)]))
    save()
    if len(reach.failed) > max(20, len(units) // 10):
        name, why = next(iter(reach.failed.items()))
        raise SuiteFails(
            f"{len(reach.failed)} units of checks fail on the unmodified kit, for example {name}: {why}"
        )
    return all(unit.name in reach for unit in units)


class _Progress:
    def __init__(self, count: int, save: Callable[[], None], report: Report) -> None:
        self.lock = threading.Lock()
        self._count, self._done = count, 0
        self._save, self._report, self._saved = save, report, time.monotonic()

    def advance(self) -> None:
        """Called with the lock held."""
        self._done += 1
        if time.monotonic() - self._saved > _SAVE_SECONDS:
            self._saved = time.monotonic()
            self._report(f"lines of {self._done} of {self._count} units recorded")
            self._save()


def _add(reach: Reach, unit: Unit, server: Server, plain: Server, state: _Progress) -> None:
    found = server.run(unit, LIMIT)
    if not found.caught:
        with state.lock:
            reach.add(unit.name, found.seconds, found.lines)
            state.advance()
        return
    for _ in range(_TRIES):  # recording lines slows execution, which some checks measure
        again = plain.run(unit, LIMIT)
        if not again.caught:
            break
    with state.lock:
        how = (
            f"{again.kind}: {again.message}" if again.caught else f"while lines are recorded: {found.message}"
        )
        reach.failed[unit.name] = how
        state.advance()


def threads_of(jobs: int) -> int:
    """The number of threads of a kernel when this many jobs share the machine: at least 2, so that races can occur."""
    return max(2, len(os.sched_getaffinity(0)) // jobs)

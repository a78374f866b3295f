"""The thread of a rank that watches the others: processes that have ended, and waits in kernels that take too long."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.errors import RankLost

TICK_SECONDS = 0.1


def describe_processes(*more: int) -> bytes:
    """What other ranks need to watch this process: the machine and its space of process numbers, the number, and those
    of `more` processes that belong to the rank."""
    return " ".join(map(str, (_place(), os.getpid(), *more))).encode()


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    return f"{boot.read_text().strip()}/{os.readlink(space)}"


class Processes:
    """The processes of other ranks on this machine, by what `describe_processes` gives.

    Those elsewhere are not watched, and this one need not be.
    """

    def __init__(self, descriptions: Sequence[bytes]) -> None:
        self._descriptors: dict[tuple[int, int], int] = {}
        """By rank and number; -1: it had ended before."""
        for rank, description in enumerate(descriptions):
            place, *numbers = description.decode().split(" ")
            if place != _place() or int(numbers[0]) == os.getpid():
                continue
            for number in map(int, numbers):
                try:
                    self._descriptors[rank, number] = os.pidfd_open(number)
                except ProcessLookupError:
                    self._descriptors[rank, number] = -1

    def ended(self) -> tuple[int, int] | None:
        """A rank of which a process has ended and that process's number, or None."""
        poll = select.poll()
        for process, descriptor in self._descriptors.items():
            if descriptor < 0:
                return process
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(0)}
        return next((process for process, each in self._descriptors.items() if each in ready), None)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptors.clear()


@dataclass(frozen=True)
class Watched:
    """What a watch asks and tells a rank."""

    waiting: Callable[[], tuple[int, int] | None]
    """The address of the signal for which a kernel waits and the number that it has to reach, or None."""
    explain: Callable[[], str]
    """Who waits for what."""
    gave_up: Callable[[int], bool]
    """Whether a rank that has ended had waited for too long before."""
    lose: Callable[[RankLost], None]
    """Lets everything that waits end."""


class Watch:
    """Calls `lose` of a rank once, from a thread of its own, if another one ends or a wait takes `timeout` seconds."""

    def __init__(self, processes: Processes, rank: Watched, timeout: float) -> None:
        self._processes, self._rank, self._timeout = processes, rank, timeout
        self._stopped = threading.Event()
        self._wait: tuple[int, int] | None = None
        self._since = 0.0
        self._thread = threading.Thread(target=self._run, name="tpk-group-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. Not to be called by the thread itself."""
        self._stopped.set()
        self._thread.join()
        self._processes.close()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            if (lost := self._find()) is not None:
                self._rank.lose(lost)
                return

    def _find(self) -> RankLost | None:
        wait, now = None, time.monotonic()
        with contextlib.suppress(RuntimeError):  # the device may be lost; launches then fail by themselves
            wait = self._rank.waiting()
        if wait != self._wait:
            self._wait, self._since = wait, now
        if (ended := self._processes.ended()) is not None:
            rank, process = ended
            if wait is not None and self._rank.gave_up(rank):
                return RankLost(None, self._rank.explain())
            return RankLost(
                rank,
                f"rank {rank} is lost: its process {process} has ended; see its own output for the reason, and start "
                "the group again",
            )
        if wait is None or now - self._since < self._timeout:
            return None
        return RankLost(None, self._rank.explain())

"""The thread of a rank that watches the others: processes that have ended, and waits in kernels that take too long."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from triton_porting_kit.errors import RankLost

TICK_SECONDS = 0.1


def describe_process() -> bytes:
    """What other ranks need to watch this process: the machine and its space of process numbers, and the number."""
    return f"{_place()} {os.getpid()}".encode()


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    return f"{boot.read_text().strip()}/{os.readlink(space)}"


class Processes:
    """The processes of other ranks on this machine. Those elsewhere are not watched, and this one need not be."""

    def __init__(self, descriptions: Sequence[bytes]) -> None:
        self._descriptors: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        for rank, description in enumerate(descriptions):
            place, _, number = description.decode().rpartition(" ")
            if place != _place() or int(number) == os.getpid():
                continue
            self._numbers[rank] = int(number)
            try:
                self._descriptors[rank] = os.pidfd_open(int(number))
            except ProcessLookupError:
                self._descriptors[rank] = -1

    def ended(self) -> tuple[int, int] | None:
        """A rank whose process has ended and that process's number, or None."""
        for rank, descriptor in self._descriptors.items():
            if descriptor < 0:
                return rank, self._numbers[rank]
        poll = select.poll()
        for descriptor in self._descriptors.values():
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(0)}
        found = [rank for rank, descriptor in self._descriptors.items() if descriptor in ready]
        return (found[0], self._numbers[found[0]]) if found else None

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptors.clear()


class Watched(Protocol):
    """What a watch looks at."""

    def waiting(self) -> tuple[int, int] | None:
        """The address of the signal for which a kernel waits and the number that it has to reach, or None."""

    def explain(self) -> str:
        """Who waits for what."""

    def gave_up(self, rank: int) -> bool:
        """Whether a rank that has ended had waited for too long before."""

    def lose(self, error: RankLost) -> None:
        """Let everything that waits end."""


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

"""`Patience`: a time limit that other processes of the machine do not use up."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 1.0
"""How often the processes' time is read."""
_IDLE = 0.01
"""The part of a processor below which processes do nothing: they wait for something that does not happen."""


def processor_seconds(pid: int) -> float:
    """The time that a process, its descendants and those of them that have ended have spent on processors.

    Linux only; 0 if there is no such process.
    """
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            # proc_pid_stat(5): field 3 is the first behind the name; 4 is the parent, 14 to 17 are utime, stime, cutime
            # and cstime.
            times[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    total, left = 0.0, [pid]
    while left:
        found = left.pop()
        total += times.get(found, 0.0)
        left += children.get(found, [])
    return total


class Patience:
    """Whether a process may go on.

    It may use `seconds` of time on processors for each of its threads, and `seconds` by the clock. What uses hardly any
    is stopped after `seconds` by the clock.
    """

    def __init__(self, pid: int, seconds: float, threads: int) -> None:
        self._pid, self._seconds, self._limit = pid, seconds, seconds * threads
        self._first = self._used = processor_seconds(pid)
        self._begin = self._active = time.monotonic()

    def wait(self) -> float:
        """For how many seconds to wait before asking again; 0: it is over."""
        now, used = time.monotonic(), processor_seconds(self._pid)
        if used - self._used > _IDLE * (now - self._active):
            self._used, self._active = used, now
        idle = now - self._active >= self._seconds
        over = now - self._begin >= self._seconds and used - self._first >= self._limit
        return 0.0 if idle or over else min(POLL_SECONDS, self._seconds)

"""`Turns`: lets the processes of a run execute checks concurrently, or one of them execute a check alone."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_SECONDS = 0.05


class Turns:
    """A readers-writer lock from two locked files in a shared folder. The kernel releases the locks of ended processes.

    A process that wants to run alone holds the gate while others finish, so that new ones wait. Without the gate, it
    might wait forever.
    """

    def __init__(self, folder: str, look: Callable[[], None]) -> None:
        """`folder`: empty if there are no other processes. `look` is called while waiting, and may raise."""
        self._gate, self._room = (Path(folder) / name for name in ("gate", "room"))
        self._shared, self._look = bool(folder), look

    @contextmanager
    def beside(self) -> Iterator[None]:
        """A context in which other processes may also run checks."""
        if not self._shared:
            yield
            return
        with self._locked(self._gate, fcntl.LOCK_EX):
            room = self._lock(self._room, fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(room)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A context in which no other process of the run executes checks."""
        if not self._shared:
            yield
            return
        with self._locked(self._gate, fcntl.LOCK_EX), self._locked(self._room, fcntl.LOCK_EX):
            yield

    @contextmanager
    def _locked(self, path: Path, how: int) -> Iterator[None]:
        descriptor = self._lock(path, how)
        try:
            yield
        finally:
            os.close(descriptor)

    def _lock(self, path: Path, how: int) -> int:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, how | fcntl.LOCK_NB)
                    return descriptor
                except BlockingIOError:
                    self._look()
                    time.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise

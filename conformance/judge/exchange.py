"""Communication between the judge and a candidate's process: lines of JSON, and two blocks of shared memory.

The candidate can write anything into both, so everything received must be validated.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import select
import socket
import time
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.conformance.judge.errors import JudgeError

Message = dict[str, Any]
LINE = 1 << 20
"""The maximum length of a message, in bytes."""


class Gone(Exception):
    """The other end is closed."""


class Late(Exception):
    """No message arrived in time."""


class Broken(Exception):
    """The received data is not a valid message."""


class Line:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket, self._buffer = end, b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send a message. Raises `Gone`."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone(str(error)) from error

    def receive(self, seconds: float | None = None) -> Message:
        """The next message. Raises `Gone`, `Late`, `Broken`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not select.select([self._socket], [], [], left)[0]:
                raise Late
            try:
                data = self._socket.recv(1 << 16)
            except OSError as error:
                raise Gone(str(error)) from error
            if not data:
                raise Gone
            self._buffer += data
            if len(self._buffer) > LINE:
                raise Broken(f"a message is longer than {LINE} bytes")
        line, _, self._buffer = self._buffer.partition(b"\n")
        found = untrusted.parse_json(line, "a message", Broken, finite=False)
        if not isinstance(found, dict):
            raise Broken("a message is not a JSON object")
        return found

    def close(self) -> None:
        self._socket.close()


def _sealed() -> int:
    """Create shared memory that can grow but not shrink: reading a page that the other side removed raises SIGBUS."""
    descriptor = os.memfd_create("tpk-judge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return descriptor


class Memory:
    """Anonymous memory that two processes share; the descriptor is passed to the other process."""

    def __init__(self, descriptor: int = -1) -> None:
        self.descriptor = _sealed() if descriptor < 0 else descriptor
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """The first `size` bytes; the memory grows if necessary."""
        if self._map is None or len(self._map) < size:
            there = os.fstat(self.descriptor).st_size
            if there < size:
                try:
                    os.ftruncate(self.descriptor, size)
                except OSError as error:
                    raise JudgeError(
                        f"{size:,} bytes of shared memory cannot be allocated: {error}"
                    ) from error
            self._map = mmap.mmap(self.descriptor, max(size, there))
        return memoryview(self._map)[:size]

    def close(self) -> None:
        os.close(self.descriptor)

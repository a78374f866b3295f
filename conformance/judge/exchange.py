"""What passes between the judge and a candidate's process: lines of JSON, and two pieces of shared memory.

The candidate can write whatever it likes into both: what comes from it is data to be checked.
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
"""Bytes of the longest message."""


class Gone(Exception):
    """The other end has closed."""


class Late(Exception):
    """No message came in time."""


class Broken(Exception):
    """What came is no message."""


class Line:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._socket, self._buffer = end, b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Raises `Gone`."""
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
                raise Broken("a message has no end")
        line, _, self._buffer = self._buffer.partition(b"\n")
        found = untrusted.parse_json(line, "a message", Broken, finite=False)
        if not isinstance(found, dict):
            raise Broken("a message is no object")
        return found

    def close(self) -> None:
        self._socket.close()


def _sealed() -> int:
    """A descriptor of memory that grows and does not shrink: who reads what was taken away dies of SIGBUS."""
    descriptor = os.memfd_create("tpk-judge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return descriptor


class Memory:
    """Memory that two processes share, under a descriptor that is handed on; it has no name."""

    def __init__(self, descriptor: int = -1) -> None:
        self.descriptor = _sealed() if descriptor < 0 else descriptor
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """The first `size` bytes; made larger where that is more than there were."""
        if self._map is None or len(self._map) < size:
            there = os.fstat(self.descriptor).st_size
            if there < size:
                try:
                    os.ftruncate(self.descriptor, size)
                except OSError as error:
                    raise JudgeError(f"{size:,} bytes of shared memory cannot be had: {error}") from error
            self._map = mmap.mmap(self.descriptor, max(size, there))
        return memoryview(self._map)[:size]

    def close(self) -> None:
        os.close(self.descriptor)

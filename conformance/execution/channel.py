"""`Channel`: messages between a worker and its supervisor, as lines of JSON on a dedicated socket."""

from __future__ import annotations

import json
import select
import socket
from typing import Any

Message = dict[str, Any]


class ChannelClosed(Exception):
    """The other end is closed."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket, self._buffer = end, b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send a message. Raises `ChannelClosed`."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> Message:
        """Wait for the next message. Raises `ChannelClosed`."""
        while (message := self.poll()) is None:
            select.select([self._socket], [], [])
        return message

    def poll(self) -> Message | None:
        """The next message, or None if it has not arrived completely. Raises `ChannelClosed`."""
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not data:
                raise ChannelClosed("the other end closed it")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: Message = json.loads(line)
        return found

    def close(self) -> None:
        self._socket.close()

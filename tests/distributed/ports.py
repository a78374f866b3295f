"""Ports on which ranks meet, and which nobody else takes between the test's look and their use."""

from __future__ import annotations

import itertools
import os
import socket

FIRST, COUNT = 15_000, 15_000
"""Below those that Linux gives to whoever asks for any port: net.ipv4.ip_local_port_range begins at 32768."""
_numbers = itertools.count(37 * os.getpid())
"""Processes that run tests beside each other begin at different ones."""


def free_port() -> int:
    """A port that is free on all addresses, another one at each call."""
    for number in itertools.islice(_numbers, COUNT):
        port = FIRST + number % COUNT
        with socket.socket() as found:
            try:
                found.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port from {FIRST} to {FIRST + COUNT} is free")

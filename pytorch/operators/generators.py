"""The generator of the device's random numbers, which the operators of the CPU draw from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

default_generator = torch.Generator()
_lock = threading.RLock()


@contextmanager
def as_default() -> Iterator[None]:
    """A context in which the CPU's operators draw numbers from the device's generator."""
    with _lock:
        host = torch.default_generator
        saved = host.get_state()
        host.set_state(default_generator.get_state())
        try:
            yield
        finally:
            default_generator.set_state(host.get_state())
            host.set_state(saved)

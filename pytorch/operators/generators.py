"""The generator of the device's random numbers.

Each operator on the device draws a seed for Philox from it. Those that run on the CPU draw their numbers from it.
"""

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


def draw_seed(generator: torch.Generator | None = None) -> int:
    """A number of 63 bits that decides all random numbers of one operator; by default of the device's generator."""
    with _lock:
        chosen = default_generator if generator is None else generator
        return int(torch.randint(2**62, 2**63 - 1, (), generator=chosen, device="cpu"))

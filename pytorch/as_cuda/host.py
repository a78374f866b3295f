"""``torch.cuda`` for tensors of the CPU, whose work is finished when a call returns: streams and events do nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

import torch


class Stream:
    """A stream, all of whose work has finished."""

    cuda_stream = 0
    stream_id = 0
    device = torch.device("cpu")

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.priority = priority

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether the work has finished."""
        return True

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record the time."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Event:
    """A moment."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Record the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether the recorded work has finished."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another one. Both must have been recorded."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("both events have to be recorded before their time is computed")
        return (end_event._time - self._time) * 1e3


class StreamContext:
    """A context in which a stream is current, which changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return _stream


def default_stream(device: Any = None) -> Stream:
    """The one stream."""
    return _stream


def set_stream(stream: Any) -> None:
    """Nothing to change."""


def stream(stream: Any) -> StreamContext:
    """A context in which a stream is current."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing is cached."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory of the machine, in bytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def manual_seed(seed: int) -> None:
    """Seed the CPU's generator."""
    torch.default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the CPU's generator."""
    manual_seed(seed)


def seed() -> int:
    """Seed the CPU's generator with a random number, and return that."""
    return int(torch.default_generator.seed())


def initial_seed() -> int:
    """The seed of the CPU's generator."""
    return int(torch.default_generator.initial_seed())


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the CPU's generator."""
    return torch.default_generator.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the CPU's generator."""
    torch.default_generator.set_state(state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all generators: of one."""
    return [get_rng_state()]


def set_rng_state_all(states: Iterable[torch.Tensor]) -> None:
    """Set the states of all generators."""
    for state in states:
        set_rng_state(state)


default_generators = (torch.default_generator,)


def raw_stream(device: int) -> int:
    """The handle of the one stream."""
    return 0

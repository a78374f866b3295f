"""Streams and events of the torch device."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from triton_porting_kit.driver.device import DEFAULT_STREAM
from triton_porting_kit.errors import InvalidArgument
from triton_porting_kit.pytorch.accelerator import accelerator

_QUERY_SECONDS = 20e-3

_PRIVATE_USE_1 = 20
"""``c10::DeviceType::PrivateUse1``: c10/core/DeviceType.h."""


_owned: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
"""The streams that were created here and not destroyed yet, by handle."""

_current = threading.local()
"""`stream` keeps the current stream of a thread, which programs need not keep."""


class Stream(torch.Stream):
    """A queue of work on the device. Created here it is destroyed with this object, after its work."""

    _owner = False
    _generation = 0

    def __new__(
        cls,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> Stream:
        handle = accelerator().device.create_stream() if stream_id is None else stream_id
        stream: Stream = super().__new__(cls, stream_id=handle, device_index=0, device_type=_PRIVATE_USE_1)
        stream._owner = stream_id is None
        stream._generation = accelerator().device.generation
        if stream._owner:
            _owned[handle] = stream
        return stream

    def __del__(self) -> None:
        if self._owner:
            found = accelerator()
            if not found.in_forked_child and self._generation == found.device.generation:
                found.device.destroy_stream(self.stream_id)

    def synchronize(self) -> None:
        """Wait for the work of the stream, and raise its failure."""
        accelerator().device.synchronize(self.stream_id)

    def query(self) -> bool:
        """Whether the work of the stream has finished.

        Devices have no such hook: this waits up to 20 ms for an event, which idle streams reach sooner.
        """
        event = self.record_event()
        deadline = time.perf_counter() + _QUERY_SECONDS
        while not event.query():
            if time.perf_counter() > deadline:
                return False
        return True

    def record_event(self, event: Any = None) -> Event:  # type: ignore[override]
        """Record the work that is on the stream now."""
        event = event or Event()
        event.record(self)
        return event  # type: ignore[no-any-return]

    def wait_event(self, event: Any) -> None:
        """Let later work of the stream wait for the event."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Let later work of the stream wait for the work that is on another one now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._previous = current_stream()
        set_stream(self)
        return self

    def __exit__(self, *_: Any) -> None:
        set_stream(self._previous)

    def __repr__(self) -> str:
        return f"torch.{accelerator().name}.Stream(stream_id={self.stream_id})"


class Event:
    """A point in the work of a stream."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise InvalidArgument("events of several processes are not supported")
        self._device = accelerator().device
        self._generation = self._device.generation
        self._handle = self._device.create_event()
        self._recorded = False

    def record(self, stream: Any = None) -> None:
        """Record the work that is on a stream now; by default the current one."""
        self._device.record_event(self._handle, _handle(stream))
        self._recorded = True

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream, by default the current one, wait for the recorded work."""
        self._device.wait_event(_handle(stream), self._handle)

    def query(self) -> bool:
        """Whether the recorded work has finished."""
        if not self._recorded:
            return True
        try:
            self._device.elapsed_time(self._handle, self._handle)
        except InvalidArgument:  # not reached yet
            return False
        return True

    def synchronize(self) -> None:
        """Wait for the recorded work."""
        self._device.synchronize_event(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another one."""
        return self._device.elapsed_time(self._handle, end_event._handle)

    def __del__(self) -> None:
        if not hasattr(self, "_handle") or accelerator().in_forked_child:
            return
        if self._generation == self._device.generation:
            self._device.destroy_event(self._handle)


class StreamContext:
    """A context in which a stream is current. None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._previous = current_stream()
        if self.stream is not None:
            set_stream(self.stream)

    def __exit__(self, *_: Any) -> None:
        set_stream(self._previous)


def _handle(stream: Any) -> int:
    return accelerator().stream() if stream is None else stream.stream_id


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work goes to."""
    handle = accelerator().stream()
    return _owned.get(handle) or Stream(stream_id=handle)


def default_stream(device: Any = None) -> Stream:
    """The stream that is there from the start."""
    return Stream(stream_id=DEFAULT_STREAM)


def set_stream(stream: Any) -> None:
    """Let this thread's work go to a stream."""
    accelerator().driver.set_current_stream(stream.stream_id, 0)
    _current.stream = stream


def stream(stream: Any) -> StreamContext:
    """A context in which a stream is current."""
    return StreamContext(stream)


def raw_stream(device: int) -> int:
    """The handle of the stream that this thread's work goes to. Code of Inductor calls it."""
    found = accelerator()
    found.check_process()
    return found.stream()


# --- gradients -------------------------------------------------------------------------------------------

_CALLER = "triton_porting_kit.stream"
"""The name of the stream of a thread that computes gradients. torch passes it to its own threads."""


@contextmanager
def backward() -> Iterator[None]:
    """A context in which torch computes gradients: on this thread's current stream, in all of torch's threads.

    The forward pass may have run on other streams, and PyTorch does not say on which: a guard of a device that is
    written in Python has no streams. So the current stream first waits for all other ones. They wait for it afterwards,
    because it used memory that is theirs.
    """
    found = accelerator()
    if not found.is_open or found.in_forked_child:
        yield
        return
    stream = found.stream()
    if stream == DEFAULT_STREAM and not _owned:
        yield
        return
    found.driver.inherited_stream = _inherited
    outer = _inherited()
    _join(stream)
    torch._C._stash_obj_in_tls(_CALLER, stream)
    try:
        yield
    finally:
        torch._C._stash_obj_in_tls(_CALLER, outer)
        _join(stream)


def _inherited() -> int:
    if torch._C._is_key_in_tls(_CALLER):
        return torch._C._get_obj_in_tls(_CALLER)  # type: ignore[no-any-return]
    return DEFAULT_STREAM


def _join(stream: int) -> None:
    """Let later work of one stream and of all others wait for the work that is on any of them now."""
    device = accelerator().device
    live = {each.stream_id: each for each in list(_owned.values()) if each._generation == device.generation}
    others = (live.keys() | {DEFAULT_STREAM}) - {stream}
    event = device.create_event()
    try:
        for other in others:
            device.record_event(event, other)
            device.wait_event(stream, event)
        device.record_event(event, stream)
        for other in others:
            device.wait_event(other, event)
    finally:
        device.destroy_event(event)

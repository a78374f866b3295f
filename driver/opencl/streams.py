"""Streams as in-order queues, and events as markers on them."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from ctypes import c_int32, c_void_p
from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.abi.launching import Code
from triton_porting_kit.driver.opencl import _opencl
from triton_porting_kit.driver.opencl.library import Library
from triton_porting_kit.driver.opencl.platforms import DeviceInfo
from triton_porting_kit.errors import AssertionFailed, InvalidArgument, LaunchError

_PROFILING = 2
_READ_WRITE = 1
_STATUS, _END = 0x11D3, 0x1283
_COMPLETE = 0


class Stream:
    """One queue, with the failure that kernels on it report. Threads may share it."""

    def __init__(self, library: Library, context: int, info: DeviceInfo) -> None:
        self._library, self._context, self._name = library, context, info.name
        self.queue = library.create(
            "clCreateCommandQueue", "creating a stream", context, info.handle, _PROFILING
        )
        self.lock = threading.RLock()
        """Held by what takes several calls, other than launches."""
        self.status = library.create(
            "clCreateBuffer", "creating a stream", context, _READ_WRITE, 4 * kernel.STATUS_WORDS, None
        )
        self.native = _opencl.Queue(library.functions, self.queue, self.status)
        self._kept: deque[tuple[int, Any]] = deque()
        self._closed = False
        # clFinish of Mesa's rusticl waits for commands that are not flushed, and for nothing if all are.
        self._needs_marker = info.platform == "rusticl"
        self._write_status()

    def _write_status(self) -> None:
        zero = c_int32(0)
        code = self._library.clEnqueueWriteBuffer(
            self.queue, self.status, 1, 0, 4, ctypes.byref(zero), 0, None, None
        )
        self._library.check(code, "clearing a failure")

    def _read_status(self, words: int) -> list[int]:
        data = (c_int32 * words)()
        code = self._library.clEnqueueReadBuffer(
            self.queue, self.status, 1, 0, 4 * words, data, 0, None, None
        )
        self._library.check(code, "reading a failure")
        return list(data)

    def keep(self, event: int, thing: Any) -> None:
        """Keep a host buffer alive until an event, which this takes over."""
        with self.lock:
            # Any statement may collect garbage, which frees arrays and so calls `wait` in the middle of this.
            kept, self._kept = self._kept, deque()
            try:
                while kept and state(self._library, kept[0][0]) <= _COMPLETE:
                    self._library.clReleaseEvent(kept.popleft()[0])
            finally:
                self._kept = kept + self._kept
                self._kept.append((event, thing))

    def wait(self) -> None:
        """Wait for the queue. Another thread may close the stream meanwhile."""
        with self.lock:
            if self._closed:
                return
            self._library.clRetainCommandQueue(self.queue)
            kept, self._kept = self._kept, deque()
            if self._needs_marker:
                self._library.clEnqueueMarkerWithWaitList(self.queue, 0, None, None)
        try:
            self._library.check(self._library.clFinish(self.queue), "waiting for a stream")
            for event, _ in kept:
                self._library.check(min(state(self._library, event), 0), "a copy")
        finally:
            self._library.clReleaseCommandQueue(self.queue)
            for event, _ in kept:
                self._library.clReleaseEvent(event)

    def finish(self) -> None:
        """Wait for the queue, and raise the failure of a kernel, once."""
        self.wait()
        with self.lock:
            if self._closed or not self.native.take_failure():
                return
            if self._read_status(1) == [0]:
                return
            status = self._read_status(kernel.STATUS_WORDS)
            self._write_status()
        raise failure_of(status, self._name)

    def close(self) -> None:
        """Release the queue and its buffers."""
        with self.lock:
            self._closed = True
            self.native.close()
            self._library.clReleaseMemObject(self.status)
            self._library.clReleaseCommandQueue(self.queue)


def failure_of(status: list[int], device: str) -> LaunchError:
    """The error of a failed kernel, from the numbers that it left: docs/opencl.md has their order."""
    if status[0] != Code.AssertionFailed:
        return LaunchError(f"a kernel on {device} failed with code {status[0]}")
    index: list[str] = []
    rank, rest = status[6], (status[4] & 0xFFFFFFFF) | status[5] << 32
    for size in reversed(status[7 : 7 + rank]):
        rest, position = divmod(rest, size)
        index.insert(0, str(position))
    element = f", element ({', '.join(index)})" if index else ""
    text = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in status[kernel.STATUS_TEXT :])
    said = text.partition(b"\0")[0].decode(errors="replace")
    program = f"program ({status[1]}, {status[2]}, {status[3]})"
    return AssertionFailed(f"a device-side assertion failed on {device} in {program}{element}: {said}")


class Event:
    """A point of a stream's work, once it is recorded. Threads may share it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._marker = 0

    def record(self, stream: Stream) -> None:
        """Stand for the work that is on a stream now."""
        marker = c_void_p()
        code = self._library.clEnqueueMarkerWithWaitList(stream.queue, 0, None, ctypes.byref(marker))
        self._library.check(code, "recording an event")
        self._library.clFlush(stream.queue)
        self.close(int(marker.value or 0))

    def let_wait(self, stream: Stream) -> None:
        """Let later work of a stream wait."""
        with self._lock:
            if self._marker:
                markers = (c_void_p * 1)(self._marker)
                code = self._library.clEnqueueBarrierWithWaitList(stream.queue, 1, markers, None)
                self._library.check(code, "waiting for an event")
                self._library.clFlush(stream.queue)

    def wait(self) -> None:
        """Wait on the host."""
        with self._lock:
            marker = self._marker
            if not marker:
                return
            self._library.clRetainEvent(marker)
        try:
            self._library.check(
                self._library.clWaitForEvents(1, (c_void_p * 1)(marker)), "waiting for an event"
            )
        finally:
            self._library.clReleaseEvent(marker)

    def nanoseconds(self) -> int:
        """When the work was done. Raises `InvalidArgument` if it was not, or was never recorded."""
        with self._lock:
            if not self._marker or state(self._library, self._marker) != _COMPLETE:
                raise InvalidArgument("elapsed_time: an event was not recorded, or not reached yet")
            return self._library.number("clGetEventProfilingInfo", self._marker, _END)

    def close(self, marker: int = 0) -> None:
        """Release the marker, and take over another one."""
        with self._lock:
            old, self._marker = self._marker, marker
        if old:
            self._library.clReleaseEvent(old)


def state(library: Library, event: int) -> int:
    """The state of an event's command: 0 is complete, a negative number a failure."""
    return library.number("clGetEventInfo", event, _STATUS)

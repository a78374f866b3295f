"""A device of an OpenCL platform behind the kit's hooks."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.abi.kernel import FAIL
from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM, Buffer, Device
from triton_porting_kit.driver.opencl import _opencl
from triton_porting_kit.driver.opencl.container import Container
from triton_porting_kit.driver.opencl.library import REMEDY, open_library
from triton_porting_kit.driver.opencl.memory import BufferMemory, Memory, SharedMemory
from triton_porting_kit.driver.opencl.platforms import DeviceInfo, device_infos
from triton_porting_kit.driver.opencl.programs import (
    BuildFailure,
    context_of,
    program_of_binary,
    program_of_source,
    renew_context,
)
from triton_porting_kit.driver.opencl.streams import Event, Stream
from triton_porting_kit.driver.properties import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.errors import DeviceError, InvalidArgument, InvalidModule, LaunchError, ToolchainError

SCRATCH_LIMIT = 256 << 20
"""Bytes of scratch that a program may use. Each compute unit has as much as the kernel needs."""

_HIGHEST_COUNT = 2**31 - 1


@dataclass
class _Module:
    container: Container
    kernel: _opencl.Kernel
    functions: list[int] = field(default_factory=list)


class OpenCLDevice(Device):
    """One OpenCL device. Streams are in-order queues; memory is shared virtual memory, or else buffers."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info, self._library, self._context = info, open_library(), context_of(info)
        self._lock = threading.RLock()
        self._handles = itertools.count(1)
        self._native = _opencl.Device(self._library.functions, self._context, info.name, info.compute_units)
        kind = SharedMemory if info.shares_memory else BufferMemory
        self._memory: Memory = kind(self._library, self._context, info, self._native)
        self._streams: dict[int, Stream] = {}
        self._add_stream(DEFAULT_STREAM)
        self._events: dict[int, Event] = {}
        self._modules: dict[int, _Module] = {}

    def __repr__(self) -> str:
        return f"OpenCLDevice({self.info.name!r})"

    def properties(self) -> DeviceProperties:
        info = self.info
        return DeviceProperties(
            name=info.name, arch=info.arch, memory_bytes=info.memory_bytes, core_count=info.compute_units,
            max_scratch_bytes=0, clock_rate_khz=info.clock * 1000, max_allocation_bytes=info.largest_allocation,
            max_dram_scratch_bytes=min(SCRATCH_LIMIT, info.largest_allocation // info.compute_units),
            extra={
                "platform": info.platform, "driver": info.driver, "version": info.version,
                "local_memory_bytes": info.local_memory_bytes, "sub_group_sizes": info.sub_group_sizes,
                "work_group_items": info.largest_group, "warp_size": info.warp_size,
                "extensions": info.extensions,
            },
        )  # fmt: skip

    # --- memory ------------------------------------------------------------------------------------------

    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        return self._memory.allocate(size, alignment)

    def memfree(self, addr: int) -> None:
        start, buffer = self._memory.remove(addr)
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.wait()
        self._memory.release(start, buffer)

    def memcpy_htod(self, dst: int, src: Buffer, stream: int = DEFAULT_STREAM) -> None:
        data = _bytes_of(src, "memcpy_htod", writable=False)
        self._memory.check(dst, data.nbytes, "memcpy_htod")
        queue = self._stream(stream)
        if data.nbytes:
            queue.keep(self._memory.write(queue.queue, dst, data.ctypes.data, data.nbytes), data)

    def memcpy_dtoh(self, dst: Buffer, src: int, stream: int = DEFAULT_STREAM) -> None:
        data = _bytes_of(dst, "memcpy_dtoh", writable=True)
        self._memory.check(src, data.nbytes, "memcpy_dtoh")
        queue = self._stream(stream)
        if data.nbytes:
            queue.keep(self._memory.read(queue.queue, data.ctypes.data, src, data.nbytes), data)

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        if size < 0:
            raise InvalidArgument(f"memcpy_dtod on {self.info.name}: the size {size} is negative")
        self._memory.check(dst, size, "memcpy_dtod")
        self._memory.check(src, size, "memcpy_dtod")
        queue = self._stream(stream)
        if size:
            queue.keep(self._memory.copy(queue.queue, dst, src, size), None)

    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        if size < 0 or not 0 <= value <= 255:
            raise InvalidArgument(
                f"memset on {self.info.name}: the size {size} or the byte {value} is out of range"
            )
        self._memory.check(dst, size, "memset")
        queue = self._stream(stream).queue
        if size:
            self._memory.fill(queue, dst, value, size)
            self._library.clFlush(queue)

    # --- streams and events ------------------------------------------------------------------------------

    def _add_stream(self, handle: int) -> None:
        created = Stream(self._library, self._context, self.info)
        self._streams[handle] = created
        self._native.add_stream(handle, created.native)

    def _stream(self, stream: int, kind: type[Exception] = InvalidArgument) -> Stream:
        try:
            return self._streams[stream]
        except (KeyError, TypeError):
            raise kind(
                f"{self.info.name} has no stream {stream}: it was destroyed, or never created"
            ) from None

    def create_stream(self) -> int:
        with self._lock:
            handle = next(self._handles)
            self._add_stream(handle)
        return handle

    def destroy_stream(self, stream: int) -> None:
        if stream == DEFAULT_STREAM:
            raise InvalidArgument(f"{self.info.name}: the default stream cannot be destroyed")
        with self._lock:
            found = self._stream(stream)
            del self._streams[stream]
            self._native.remove_stream(stream)
        try:
            found.finish()
        finally:
            found.close()

    def synchronize(self, stream: int | None = None) -> None:
        with self._lock:
            waited = [self._stream(stream)] if stream is not None else list(self._streams.values())
        failure: Exception | None = None
        for each in waited:
            try:
                each.finish()
            except LaunchError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _event(self, event: int) -> Event:
        try:
            return self._events[event]
        except (KeyError, TypeError):
            raise InvalidArgument(
                f"{self.info.name} has no event {event}: it was destroyed, or never created"
            ) from None

    def create_event(self) -> int:
        with self._lock:
            handle = next(self._handles)
            self._events[handle] = Event(self._library)
        return handle

    def destroy_event(self, event: int) -> None:
        with self._lock:
            found = self._event(event)
            del self._events[event]
        found.close()

    def record_event(self, event: int, stream: int = DEFAULT_STREAM) -> None:
        self._event(event).record(self._stream(stream))

    def wait_event(self, stream: int, event: int) -> None:
        self._event(event).let_wait(self._stream(stream))

    def synchronize_event(self, event: int) -> None:
        self._event(event).wait()

    def elapsed_time(self, start: int, end: int) -> float:
        first, last = self._event(start).nanoseconds(), self._event(end).nanoseconds()
        return (last - first) / 1e6

    # --- modules and launches ----------------------------------------------------------------------------

    def load_module(self, binary: bytes, name: str) -> int:
        container = Container.unpack(bytes(binary), name)
        if container.name != name:
            raise InvalidModule(f"the binary is that of the kernel {container.name!r}, not of {name!r}")
        if container.buffers == self.info.shares_memory:
            kinds = ("addresses", "buffers with offsets")
            raise InvalidModule(
                f"the binary of {name!r} takes {kinds[container.buffers]}, and memory of {self.info.name} is used by "
                f"{kinds[not container.buffers]}: compile it again"
            )
        program = self._program(container)
        try:
            kernel = self._library.create(
                "clCreateKernel", f"finding {container.kernel}", program, container.kernel.encode()
            )
        except InvalidModule:
            self._library.clReleaseProgram(program)
            raise
        self._library.clReleaseProgram(program)  # the kernel keeps it
        native = _opencl.Kernel(
            self._library.functions,
            kernel,
            name,
            container.pointers,
            container.scratch_bytes,
            FAIL in container.source,
            container.buffers,
            container.work_items,
            container.local_bytes,
        )
        with self._lock:
            handle = next(self._handles)
            self._modules[handle] = _Module(container, native)
        return handle

    def _program(self, container: Container) -> int:
        """From the binary if this driver made it for this device, else from the source."""
        if (container.device, container.driver) == (self.info.arch, self.info.driver) and container.binary:
            try:
                return program_of_binary(self.info, container.binary)
            except BuildFailure:
                pass
        return program_of_source(self.info, container.source)

    def _module(self, module: int) -> _Module:
        try:
            return self._modules[module]
        except (KeyError, TypeError):
            raise InvalidModule(
                f"{self.info.name} has no module {module}: it was unloaded, or never loaded"
            ) from None

    def unload_module(self, module: int) -> None:
        with self._lock:
            found = self._module(module)
            del self._modules[module]
            for function in found.functions:
                self._native.remove_function(function)

    def get_function(self, module: int, name: str) -> int:
        with self._lock:
            found = self._module(module)
            if name != found.container.name:
                raise InvalidModule(f"the module of {found.container.name!r} has no kernel {name!r}")
            handle = next(self._handles)
            self._native.add_function(handle, found.kernel)
            found.functions.append(handle)
        return handle

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        counts = tuple(grid)
        if not 1 <= len(counts) <= 3 or not all(
            isinstance(count, int) and 0 <= count <= _HIGHEST_COUNT for count in counts
        ):
            raise LaunchError(
                f"the grid {counts} on {self.info.name} is not one to three counts from 0 to {_HIGHEST_COUNT}"
            )
        x, y, z = (*counts, 1, 1)[:3]
        self._native.launch(function, (x, y, z), stream, args)

    def launch_entry(self) -> NativeLaunchEntry:
        return NativeLaunchEntry(_opencl.launch_entry, self._native.context)

    # --- life --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        with self._lock:
            for handle, stream in self._streams.items():
                self._native.remove_stream(handle)
                with contextlib.suppress(DeviceError):  # of a lost device, or of work that nobody waited for
                    stream.wait()
                stream.close()
            for event in self._events.values():
                event.close()
            for module in list(self._modules):
                self.unload_module(module)
            self._events.clear()
            self._memory.clear()
            self._context = renew_context(self.info)
            self._native.set_context(self._context)
            self._memory.context = self._context
            self._streams = {}
            self._add_stream(DEFAULT_STREAM)
            super().reset()


def _bytes_of(buffer: Buffer, call: str, *, writable: bool) -> Any:
    """A host buffer as an array of bytes. Raises `InvalidArgument` for one that is not contiguous, or not writable."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise InvalidArgument(f"{call}: {type(buffer).__name__} has no buffer") from None
    if not view.c_contiguous:
        raise InvalidArgument(f"{call}: the host buffer is not contiguous")
    if writable and view.readonly:
        raise InvalidArgument(f"{call}: the host buffer cannot be written")
    if not view.nbytes:
        return np.empty(0, np.uint8)
    return np.frombuffer(view, np.uint8)


def open_devices() -> list[OpenCLDevice]:
    """All devices that are used. Raises `ToolchainError` if there is none."""
    infos = device_infos()
    if not infos:
        raise ToolchainError(f"the loader knows no OpenCL device. What to do: {REMEDY}")
    return [OpenCLDevice(info) for info in infos]

"""A device of an OpenCL platform behind the kit's hooks."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.abi.kernel import FAIL
from triton_porting_kit.driver.device import (
    DEFAULT_ALIGNMENT,
    DEFAULT_STREAM,
    Buffer,
    Device,
    DeviceProperties,
)
from triton_porting_kit.driver.opencl.container import Container
from triton_porting_kit.driver.opencl.library import open_library
from triton_porting_kit.driver.opencl.memory import Memory
from triton_porting_kit.driver.opencl.platforms import DeviceInfo, device_infos
from triton_porting_kit.driver.opencl.programs import (
    BuildFailure,
    context_of,
    program_of_binary,
    program_of_source,
)
from triton_porting_kit.driver.opencl.streams import Event, Stream
from triton_porting_kit.errors import InvalidArgument, InvalidModule, LaunchError, ToolchainError

SCRATCH_LIMIT = 256 << 20
"""Bytes of scratch that a program may use. Each compute unit has as much as the kernel needs."""

_COARSE_SVM = 1
_SVM_POINTERS = 0x11B6
_COPY_HOST = 4 | 32
"""CL_MEM_READ_ONLY and CL_MEM_COPY_HOST_PTR."""
_HIGHEST_COUNT = 2**31 - 1


@dataclass
class _Module:
    container: Container
    program: int
    kernel: int
    functions: list[int] = field(default_factory=list)
    memory_version: int = -1
    can_fail: bool = True
    """Whether the kernel may write a failure, which the next wait must then look for."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenCLDevice(Device):
    """One OpenCL device. Memory is shared virtual memory; streams are in-order queues.

    Raises `ToolchainError` for a device without shared virtual memory.
    """

    def __init__(self, info: DeviceInfo) -> None:
        if not info.svm & _COARSE_SVM:
            raise ToolchainError(
                f"{info.name} of {info.platform} has no shared virtual memory, which the arguments of kernels need"
            )
        self.info, self._library, self._context = info, open_library(), context_of(info)
        self._lock = threading.RLock()
        self._handles = itertools.count(1)
        self._memory = Memory(
            self._library,
            self._context,
            info.name,
            info.memory_bytes,
            info.largest_allocation,
            info.alignment,
        )
        self._streams = {DEFAULT_STREAM: self._new_stream()}
        self._events: dict[int, Event] = {}
        self._modules: dict[int, _Module] = {}
        self._functions: dict[int, _Module] = {}

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
                "local_memory_bytes": info.local_memory_bytes,
                "extensions": info.extensions,
            },
        )  # fmt: skip

    # --- memory ------------------------------------------------------------------------------------------

    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        return self._memory.allocate(size, alignment)

    def memfree(self, addr: int) -> None:
        start = self._memory.remove(addr)
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.wait()
        self._memory.release(start)

    def memcpy_htod(self, dst: int, src: Buffer, stream: int = DEFAULT_STREAM) -> None:
        data = _bytes_of(src, "memcpy_htod", writable=False)
        self._memory.check(dst, data.nbytes, "memcpy_htod")
        self._copy(dst, data.ctypes.data, data.nbytes, stream, data)

    def memcpy_dtoh(self, dst: Buffer, src: int, stream: int = DEFAULT_STREAM) -> None:
        data = _bytes_of(dst, "memcpy_dtoh", writable=True)
        self._memory.check(src, data.nbytes, "memcpy_dtoh")
        self._copy(data.ctypes.data, src, data.nbytes, stream, data)

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        if size < 0:
            raise InvalidArgument(f"memcpy_dtod on {self.info.name}: the size {size} is negative")
        self._memory.check(dst, size, "memcpy_dtod")
        self._memory.check(src, size, "memcpy_dtod")
        self._copy(dst, src, size, stream, None)

    def _copy(self, to: int, source: int, size: int, stream: int, kept: Any) -> None:
        queue = self._stream(stream)
        if not size:
            return
        event = c_void_p()
        with self._memory.lock:
            code = self._library.clEnqueueSVMMemcpy(
                queue.queue, 0, to, source, size, 0, None, ctypes.byref(event)
            )
            self._library.check(code, f"copying {size} bytes")
            self._library.clFlush(queue.queue)
            queue.keep(int(event.value or 0), kept)

    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        if size < 0 or not 0 <= value <= 255:
            raise InvalidArgument(
                f"memset on {self.info.name}: the size {size} or the byte {value} is out of range"
            )
        self._memory.check(dst, size, "memset")
        queue = self._stream(stream).queue
        if size:
            byte = ctypes.c_uint8(value)
            with self._memory.lock:
                code = self._library.clEnqueueSVMMemFill(
                    queue, dst, ctypes.byref(byte), 1, size, 0, None, None
                )
                self._library.check(code, f"setting {size} bytes")
                self._library.clFlush(queue)

    # --- streams and events ------------------------------------------------------------------------------

    def _new_stream(self) -> Stream:
        return Stream(self._library, self._context, self.info)

    def _stream(self, stream: int, kind: type[Exception] = InvalidArgument) -> Stream:
        try:
            return self._streams[stream]
        except (KeyError, TypeError):
            raise kind(
                f"{self.info.name} has no stream {stream}: it was destroyed, or never created"
            ) from None

    def create_stream(self) -> int:
        created = self._new_stream()
        with self._lock:
            handle = next(self._handles)
            self._streams[handle] = created
        return handle

    def destroy_stream(self, stream: int) -> None:
        if stream == DEFAULT_STREAM:
            raise InvalidArgument(f"{self.info.name}: the default stream cannot be destroyed")
        with self._lock:
            found = self._stream(stream)
            del self._streams[stream]
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
        program = self._program(container)
        try:
            kernel = self._library.create(
                "clCreateKernel", f"finding {container.kernel}", program, container.kernel.encode()
            )
        except InvalidModule:
            self._library.clReleaseProgram(program)
            raise
        with self._lock:
            handle = next(self._handles)
            self._modules[handle] = _Module(container, program, kernel, can_fail=FAIL in container.source)
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
                del self._functions[function]
        self._library.clReleaseKernel(found.kernel)  # launches in flight keep both
        self._library.clReleaseProgram(found.program)

    def get_function(self, module: int, name: str) -> int:
        with self._lock:
            found = self._module(module)
            if name != found.container.name:
                raise InvalidModule(f"the module of {found.container.name!r} has no kernel {name!r}")
            handle = next(self._handles)
            self._functions[handle] = found
            found.functions.append(handle)
        return handle

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        module = self._functions.get(function)
        if module is None:
            raise LaunchError(f"{self.info.name} has no function {function}: it was unloaded, or never found")
        counts = self._counts(grid)
        queue = self._stream(stream, LaunchError)
        for offset in module.container.pointers:
            address = int.from_bytes(args[offset : offset + 8], "little")
            if address:
                self._memory.check(address, 0, f"launch of {module.container.name}")
        programs = counts[0] * counts[1] * counts[2]
        if not programs:
            return
        items = min(programs, self.info.compute_units)
        code, block = c_int32(0), ctypes.create_string_buffer(args, max(len(args), 1))
        arguments = self._library.create(
            "clCreateBuffer", "copying arguments", self._context, _COPY_HOST, max(len(args), 1), block
        )
        stride = -(-module.container.scratch_bytes // 64) * 64
        with self._memory.lock, queue.lock, module.lock:
            scratch = queue.scratch(items * stride)
            self._set(module, arguments, scratch, programs, counts, queue.status)
            code.value = self._library.clEnqueueNDRangeKernel(
                queue.queue, module.kernel, 1, None, (c_size_t * 1)(items), (c_size_t * 1)(1), 0, None, None
            )
        self._library.clReleaseMemObject(arguments)  # the kernel keeps it until it has run
        self._library.check(code.value, f"launching {module.container.name}")
        queue.launched(module.can_fail)

    def _set(
        self,
        module: _Module,
        arguments: int,
        scratch: int | None,
        programs: int,
        counts: tuple[int, int, int],
        status: int,
    ) -> None:
        values = [
            c_void_p(arguments), c_void_p(scratch), c_int64(0), c_int64(programs), *map(c_int32, counts),
            c_void_p(status),
        ]  # fmt: skip
        for position, value in enumerate(values):
            code = self._library.clSetKernelArg(
                module.kernel, position, ctypes.sizeof(value), ctypes.byref(value)
            )
            self._library.check(code, f"argument {position} of {module.container.name}")
        if module.memory_version != self._memory.version:
            version, starts = self._memory.version, self._memory.starts
            if starts:
                listed = (c_void_p * len(starts))(*starts)
                code = self._library.clSetKernelExecInfo(
                    module.kernel, _SVM_POINTERS, ctypes.sizeof(listed), listed
                )
                self._library.check(code, f"the memory of {module.container.name}")
            module.memory_version = version

    def _counts(self, grid: Sequence[int]) -> tuple[int, int, int]:
        counts = tuple(grid)
        if not 1 <= len(counts) <= 3 or not all(
            isinstance(count, int) and 0 <= count <= _HIGHEST_COUNT for count in counts
        ):
            raise LaunchError(
                f"the grid {counts} on {self.info.name} is not one to three counts from 0 to {_HIGHEST_COUNT}"
            )
        x, y, z = (*counts, 1, 1)[:3]
        return x, y, z

    # --- life --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        with self._lock:
            for stream in self._streams.values():
                stream.wait()  # a failure that nobody asked for is gone, as everything is
                stream.close()
            for event in self._events.values():
                event.close()
            for module in list(self._modules):
                self.unload_module(module)
            self._events.clear()
            self._memory.clear()
            self._streams = {DEFAULT_STREAM: self._new_stream()}
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
    """All devices that have shared virtual memory. Raises `ToolchainError` if there is none."""
    infos = device_infos()
    usable = [info for info in infos if info.svm & _COARSE_SVM]
    if not usable:
        names = ", ".join(f"{info.platform}: {info.name}" for info in infos) or "none"
        raise ToolchainError(f"no OpenCL device with shared virtual memory was found; there are {names}")
    return [OpenCLDevice(info) for info in usable]

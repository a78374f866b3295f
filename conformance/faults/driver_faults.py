"""Faults of the driver and of the device's hooks."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from typing import Any

from triton_porting_kit.conformance.faults.fault import Table, method
from triton_porting_kit.errors import DeviceError, InvalidPointer, OutOfMemory

TABLE = Table()

# One or a few lines per fault.
# fmt: off


def _device(name: str, sentence: str, *caught_by: str, seconds: float = 60.0, **replacements: Any) -> None:
    """Add a fault in hooks of the device. A replacement receives the real hook, the device and the arguments."""
    TABLE.add("driver", name, sentence, method("device", **replacements), *(f"runtime/{p}" for p in caught_by), seconds=seconds)


def _state(device: Any) -> dict[Any, Any]:
    """The state of a fault, stored on the device."""
    found: dict[Any, Any] = device.__dict__.setdefault("_fault_state", {})
    return found


def _bytes(buffer: Any) -> Any:
    """A view of a buffer's bytes."""
    return memoryview(buffer).cast("B") if memoryview(buffer).nbytes else memoryview(b"")


# --- copies ----------------------------------------------------------------------------------------------


def _short(size: int) -> int:
    return size - size % 8


def _htod_short(real: Any, self: Any, dst: int, src: Any, stream: int = 0) -> None:
    content = _bytes(src)
    real(self, dst, content[: _short(len(content))], stream)


def _dtoh_short(real: Any, self: Any, dst: Any, src: int, stream: int = 0) -> None:
    size = memoryview(dst).nbytes
    real(self, _bytes(dst)[: _short(size)] if size >= 8 else dst, src, stream)


def _htod_over(real: Any, self: Any, dst: int, src: Any, stream: int = 0) -> None:
    content = bytes(_bytes(src))
    padded = content + bytes(-len(content) % 4)
    try:
        real(self, dst, padded, stream)
    except DeviceError:
        real(self, dst, src, stream)


def _dtoh_next(real: Any, self: Any, dst: Any, src: int, stream: int = 0) -> None:
    size = memoryview(dst).nbytes
    try:
        real(self, dst, src + size % 2, stream)
    except DeviceError:
        real(self, dst, src, stream)


def _dtod_aligned(real: Any, self: Any, dst: int, src: int, size: int, stream: int = 0) -> None:
    real(self, dst, src - src % 4 if size else src, size, stream)


def _elements(buffer: Any) -> Any:
    """As many bytes of a buffer as it has elements in its first dimension."""
    view = memoryview(buffer)
    return _bytes(view)[: len(view) if view.ndim else 1]


_device("htod-elements", "copies to the device count elements, not bytes", "copies/htod-from-array", "copies/htod-from-floats", "copies/htod-from-scalar", memcpy_htod=lambda real, self, dst, src, stream=0: real(self, dst, _elements(src), stream))
_device("dtoh-elements", "copies to the host count elements, not bytes", "copies/dtoh-into-matrix", "copies/dtoh-into-floats", "copies/dtoh-into-scalar", memcpy_dtoh=lambda real, self, dst, src, stream=0: real(self, _elements(dst), src, stream))
_device("htod-short", "copies to the device omit the bytes after the last multiple of 8", "copies/htod-15-*", "copies/htod-4097-*", memcpy_htod=_htod_short)
_device("dtoh-short", "copies to the host omit the bytes after the last multiple of 8", "copies/dtoh-15-*", "copies/dtoh-255-*", memcpy_dtoh=_dtoh_short)
_device("htod-over", "copies to the device write whole words, beyond the end", "copies/htod-1-*", "copies/htod-65-*", memcpy_htod=_htod_over)
_device("dtoh-next", "copies of an odd size to the host begin one byte late", "copies/dtoh-7-*", memcpy_dtoh=_dtoh_next)
_device("dtod-aligned", "copies on the device begin at a multiple of 4", "copies/dtod-64-at-1", "copies/dtod-4096-at-7", memcpy_dtod=_dtod_aligned)
_device("dtod-turned", "copies on the device exchange source and target", "copies/dtod-64-*", memcpy_dtod=lambda real, self, dst, src, size, stream=0: real(self, src, dst, size, stream))
_device("dtod-short", "copies on the device are a byte short", "copies/dtod-3-*", memcpy_dtod=lambda real, self, dst, src, size, stream=0: real(self, dst, src, max(size - 1, 0), stream))
_device("copy-lost", "large copies to the device do nothing", "copies/htod-large", memcpy_htod=lambda real, self, dst, src, stream=0: real(self, dst, src, stream) if memoryview(src).nbytes <= 1 << 22 else None)
_device("memset-value", "memset loses the highest bit of the value", "copies/memset-value-*", memset=lambda real, self, dst, value, size, stream=0: real(self, dst, value & 0x7F, size, stream))
_device("memset-any-value", "memset accepts a value that is not a byte", "copies/memset-value-*-refused", memset=lambda real, self, dst, value, size, stream=0: real(self, dst, value & 0xFF, size, stream))
_device("memset-short", "memset leaves the last byte out", "copies/memset-7-*", memset=lambda real, self, dst, value, size, stream=0: real(self, dst, value, max(size - 1, 0), stream))


def _swallowed(real: Any, self: Any, *args: Any, **keywords: Any) -> Any:
    """Swallow errors."""
    try:
        return real(self, *args, **keywords)
    except DeviceError:
        return None


_device("copy-errors-swallowed", "copies to invalid addresses are not refused", "copies/htod-*-refused", "copies/dtod-*-refused", memcpy_htod=_swallowed, memcpy_dtod=_swallowed)

# --- memory ----------------------------------------------------------------------------------------------


def _small_shared(real: Any, self: Any, size: int, alignment: int = 64) -> int:
    """Return the same address for all small allocations."""
    if not 0 < size <= 64:
        return int(real(self, size, alignment))
    shared = _state(self)
    if "address" not in shared:
        shared["address"] = real(self, 4096, 4096)
    return int(shared["address"])


def _shared_free(real: Any, self: Any, addr: int) -> None:
    if addr != _state(self).get("address"):
        real(self, addr)


def _off_alignment(real: Any, self: Any, size: int, alignment: int = 64) -> int:
    address = int(real(self, size + 8, alignment))
    _state(self)[address + 8] = address
    return address + 8


def _free_moved(real: Any, self: Any, addr: int) -> None:
    real(self, _state(self).pop(addr, addr))


def _no_limit(real: Any, self: Any, size: int, alignment: int = 64) -> int:
    try:
        return int(real(self, size, alignment))
    except OutOfMemory:
        return int(real(self, 64, alignment))


def _sticky(real: Any, self: Any, size: int, alignment: int = 64) -> int:
    state = _state(self)
    if state.get("exhausted"):
        raise OutOfMemory("memory was exhausted before")
    try:
        return int(real(self, size, alignment))
    except OutOfMemory:
        state["exhausted"] = True
        raise


def _free_interior(real: Any, self: Any, addr: int) -> None:
    try:
        real(self, addr)
    except InvalidPointer:
        real(self, addr & ~0x3F)


def _free_others(real: Any, self: Any, addr: int) -> None:
    """Overwrite the most recent allocation."""
    real(self, addr)
    for neighbour in _state(self).get("live", [])[-1:]:
        if neighbour != addr:
            with contextlib.suppress(DeviceError):
                self._native.memset(neighbour, 0xEE, 1, 0)


def _noting(real: Any, self: Any, size: int, alignment: int = 64) -> int:
    address = int(real(self, size, alignment))
    if size:
        _state(self).setdefault("live", []).append(address)
    return address


_device("free-leaks", "freeing does nothing", "memory/free-returns-memory", "memory/double-free", memfree=lambda real, self, addr: None)
_device("free-twice", "freeing an address twice is not refused", "memory/double-free", memfree=_swallowed)
_device("free-interior", "freeing an address inside of an allocation frees it", "memory/free-interior-*", memfree=_free_interior)
_device("free-spoils", "freeing writes to another allocation", "memory/free-keeps-others", memalloc=_noting, memfree=_free_others)
_device("alignment-off", "memory is aligned to 8 bytes only", "memory/alignment-default", memalloc=_off_alignment, memfree=_free_moved)
_device("alignment-ignored", "a requested alignment is ignored", "memory/alignment-4096", memalloc=lambda real, self, size, alignment=64: _aligned_64(real, self, size, alignment), memfree=_free_moved)
_device("alignment-any", "alignments that are not powers of two are accepted", "memory/alignment-3-refused", memalloc=lambda real, self, size, alignment=64: real(self, size, 64))
_device("small-shared", "small allocations overlap", "memory/disjoint", "memory/independent", memalloc=_small_shared, memfree=_shared_free)
_device("size-short", "allocations are a byte short", "memory/size-*", memalloc=lambda real, self, size, alignment=64: real(self, size - 1 if size > 0 else size, alignment))
_device("size-32-bits", "sizes keep 32 bits", "memory/too-much-*", memalloc=lambda real, self, size, alignment=64: real(self, size & 0xFFFFFFFF if size > 0 else size, alignment))
_device("no-out-of-memory", "if there is too little memory, a small block is returned", "memory/too-much-*", "memory/exhaustion", memalloc=_no_limit)
_device("exhaustion-stays", "after memory was exhausted, all allocations fail", "memory/recovery", memalloc=_sticky)
_device("zero-size-null", "an allocation of no bytes is NULL", "memory/zero-size", memalloc=lambda real, self, size, alignment=64: 0 if size == 0 else real(self, size, alignment), memfree=lambda real, self, addr: real(self, addr) if addr else None)
_device("negative-size", "a negative size is taken for its absolute value", "memory/negative-size", memalloc=lambda real, self, size, alignment=64: real(self, abs(size), alignment))


def _aligned_64(real: Any, self: Any, size: int, alignment: int) -> int:
    if alignment <= 64:
        return int(real(self, size, alignment))
    address = int(real(self, size + 64, alignment))
    _state(self)[address + 64] = address
    return address + 64


# --- streams and events -------------------------------------------------------------------------------------


def _raised_again(real: Any, self: Any, stream: int | None = None) -> None:
    state = _state(self)
    try:
        real(self, stream)
    except DeviceError as error:
        state["failure"] = error
        raise
    if "failure" in state:
        raise state.pop("failure")


def _lost_failure(real: Any, self: Any, stream: int | None = None) -> None:
    with contextlib.suppress(DeviceError):
        real(self, stream)


def _launch_and_wait(real: Any, self: Any, function: int, grid: Any, stream: int, args: bytes) -> None:
    real(self, function, grid, stream, args)
    self._native.synchronize(stream)


def _noting_stream(real: Any, self: Any) -> int:
    stream = int(real(self))
    _state(self).setdefault(threading.get_ident(), []).append(stream)
    return stream


def _forgetting_stream(real: Any, self: Any, stream: int) -> None:
    for streams in _state(self).values():
        if stream in streams:
            streams.remove(stream)
    real(self, stream)


def _synchronize_own(real: Any, self: Any, stream: int | None = None) -> None:
    """Wait for the streams that this thread has created."""
    for each in (0, *_state(self).get(threading.get_ident(), ())) if stream is None else (stream,):
        real(self, each)


def _every_second_launch(real: Any, self: Any, function: int, grid: Any, stream: int, args: bytes) -> None:
    state = _state(self)
    state["launches"] = state.get("launches", 0) + bool(stream)
    real(self, function, grid, stream if state["launches"] % 2 else 0, args)


def _memset_in_turn(real: Any, self: Any, dst: int, value: int, size: int, stream: int = 0) -> None:
    self._native.synchronize_all()
    real(self, dst, value, size, stream)


def _record_once(real: Any, self: Any, event: int, stream: int = 0) -> None:
    recorded = _state(self).setdefault("recorded", set())
    if event not in recorded:
        recorded.add(event)
        real(self, event, stream)


_device("copies-overtake", "copies on a stream do not wait for earlier work", "streams/kernel-then-copy", memcpy_dtoh=lambda real, self, dst, src, stream=0: real(self, dst, src, 0), memcpy_dtod=lambda real, self, dst, src, size, stream=0: real(self, dst, src, size, 0))
_device("htod-overtakes", "copies to the device do not wait for earlier work on their stream", "streams/htod-after-kernel", memcpy_htod=lambda real, self, dst, src, stream=0: real(self, dst, src, 0))
_device("dtod-overtakes", "copies on the device do not wait for earlier work on their stream", "streams/dtod-after-kernel", memcpy_dtod=lambda real, self, dst, src, size, stream=0: real(self, dst, src, size, 0))
_device("memset-overtakes", "a memset on a stream does not wait for earlier work", "streams/memset-after-kernel", memset=lambda real, self, dst, value, size, stream=0: real(self, dst, value, size, 0))
_device("launch-waits", "launches on created streams have ended when they return", "streams/asynchronous", launch=_launch_and_wait)
_device("streams-in-turn", "a memset waits for all other streams", "streams/overlap", memset=_memset_in_turn)
_device("launch-default-stream", "launches on created streams go to the default stream", "streams/asynchronous", launch=lambda real, self, function, grid, stream, args: real(self, function, grid, 0, args))
_device("launch-second-stream", "every second launch on created streams goes to the default stream", "modules/launch-stream", "streams/kernels-in-order", launch=_every_second_launch)
_device("synchronize-early", "synchronize(stream) returns at once", "streams/synchronize-stream", synchronize=lambda real, self, stream=None: real(self, None) if stream is None else None)
_device("synchronize-device-early", "synchronize() returns at once", "streams/synchronize-device", synchronize=lambda real, self, stream=None: None if stream is None else real(self, stream))
_device("synchronize-own-thread", "synchronize() does not wait for streams that another thread created", "streams/synchronize-device-threads", create_stream=_noting_stream, destroy_stream=_forgetting_stream, synchronize=_synchronize_own)
_device("stream-handles", "every stream that is created is the same", "streams/handles", create_stream=lambda real, self: _state(self).setdefault("stream", real(self)), destroy_stream=lambda real, self, stream: None)
_device("streams-stay", "a destroyed stream still works", "streams/destroyed-refused", destroy_stream=lambda real, self, stream: None)
_device("wait-ignored", "wait_event does nothing", "events/wait", "events/wait-chain", wait_event=lambda real, self, stream, event: None)
_device("record-ignored", "record_event does nothing", "events/synchronize", record_event=lambda real, self, event, stream=0: None)
_device("record-once", "an event that is recorded again stays as it was", "events/record-again", record_event=_record_once)
_device("event-early", "synchronize_event returns at once", "events/synchronize", synchronize_event=lambda real, self, event: None)
_device("elapsed-zero", "the time between events is 0", "events/elapsed-plausible", elapsed_time=lambda real, self, start, end: real(self, start, end) * 0.0)
_device("elapsed-negative", "the time between events is negative", "events/elapsed-monotonic", elapsed_time=lambda real, self, start, end: -real(self, start, end))
_device("elapsed-microseconds", "the time between events is in microseconds", "events/elapsed-plausible", elapsed_time=lambda real, self, start, end: 1000 * real(self, start, end))
_device("elapsed-seconds", "the time between events is in seconds", "events/elapsed-plausible", elapsed_time=lambda real, self, start, end: real(self, start, end) / 1000)
_device("elapsed-none", "elapsed_time returns None", "events/elapsed-grows", "events/elapsed-monotonic", elapsed_time=lambda real, self, start, end: real(self, start, end) and None)
_device("elapsed-early", "the time to an event that is not reached is 0", "events/elapsed-early-refused", elapsed_time=lambda real, self, start, end: _swallowed(real, self, start, end) or 0.0)
_device("failure-lost", "what fails on a stream is never raised", "device/asynchronous-failure", synchronize=_lost_failure)
_device("failure-twice", "what fails on a stream is raised twice", "device/asynchronous-failure", synchronize=_raised_again)

# --- modules and the device ----------------------------------------------------------------------------------


def _any_binary(real: Any, self: Any, binary: bytes, name: str) -> int:
    try:
        handle = int(real(self, binary, name))
    except DeviceError:
        return int(_state(self).get("module", 1))
    _state(self)["module"] = handle
    return handle


def _by_name(real: Any, self: Any, binary: bytes, name: str) -> int:
    """Return the first module for a second binary with a kernel of the same name."""
    modules = _state(self)
    if name not in modules:
        modules[name] = real(self, binary, name)
    return int(modules[name])


def _any_function(real: Any, self: Any, module: int, name: str) -> int:
    try:
        return int(real(self, module, name))
    except DeviceError:
        return int(self._modules[module].function)


def _properties(**changes: Any) -> Any:
    return lambda real, self: dataclasses.replace(real(self), **changes)


def _changing(real: Any, self: Any) -> Any:
    return dataclasses.replace(real(self), memory_bytes=real(self).memory_bytes - time.monotonic_ns() % 4096)


def _reset_keeps(real: Any, self: Any) -> None:
    """Wait and count a generation, without freeing anything."""
    self._native.synchronize_all()
    self.generation += 1


def _reset_same_generation(real: Any, self: Any) -> None:
    generation = self.generation
    real(self)
    self.generation = generation


_device("garbage-loads", "a binary that is garbage is accepted", "modules/text-refused", load_module=_any_binary)
_device("modules-by-name", "loading returns an older module whose kernel has the same name", "modules/load-twice", "device/threads-modules", load_module=_by_name)
_device("any-function", "a kernel is found under any name", "modules/missing-function-refused", get_function=_any_function)
_device("unload-keeps", "unloading does nothing", "modules/unload-then-launch-refused", "modules/unloaded-refused", unload_module=lambda real, self, module: None)
_device("launch-drops-z", "the hook `launch` ignores the third count of the grid", "modules/launch-grid", launch=lambda real, self, function, grid, stream, args: real(self, function, tuple(grid[:2]), stream, args))
_device("launch-errors-swallowed", "launches that are refused are not reported", "modules/unload-then-launch-refused", "streams/launch-on-destroyed-refused", launch=_swallowed)
_device("memory-size", "the device reports 0 bytes of memory", "device/property-memory_bytes", properties=_properties(memory_bytes=0))
_device("core-count", "the device reports -1 cores", "device/property-core_count", properties=_properties(core_count=-1))
_device("nameless", "the device has no name", "device/property-name", properties=_properties(name=""))
_device("properties-change", "the properties change from call to call", "device/properties-constant", properties=_changing)
_device("reset-keeps", "a reset keeps memory and modules", "device/reset-memory", "device/reset-handles", reset=_reset_keeps)
_device("reset-generation", "a reset does not change the generation", "device/reset-generation", reset=_reset_same_generation)


# --- the driver's interface to Triton -------------------------------------------------------------------------------


def _driver(name: str, sentence: str, owner: str, *caught_by: str, **replacements: Any) -> None:
    TABLE.add("driver", name, sentence, method(owner, **replacements), *caught_by)


def _other_target(real: Any, self: Any) -> Any:
    target = real(self)
    return type(target)(target.backend, f"{target.arch}-{time.monotonic_ns()}", target.warp_size)


_driver("target-changes", "the target changes from call to call", "driver", "registration/discovery/target-stable", get_current_target=_other_target)
_driver("always-active", "the driver is always active", "driver", "registration/coexistence/one-active", is_active=lambda real, cls: True)
_driver("stream-forgotten", "the current stream is always the default one", "driver", "runtime/streams/asynchronous", "runtime/launches/stream", get_current_stream=lambda real, self, device=None: 0)
_driver("properties-lost", "Triton receives no properties of the device", "utils", "runtime/device/properties-for-triton", "registration/discovery/shared-memory", get_device_properties=lambda real, self, device: {})
_driver("loaded-by-name", "a kernel is loaded only once for each name", "utils", "registration/hashes/stale-source", "registration/hashes/again-constant", load_binary=lambda real, self, name, kernel, shared, device: _loaded(real, self, name, kernel, shared, device))
_driver("threads-zero", "kernels may have no threads", "utils", "language/arithmetic/add-i32-tile_17x4", load_binary=lambda real, self, *args: (*real(self, *args)[:4], 0))


def _loaded(real: Any, self: Any, name: str, *rest: Any) -> Any:
    loaded = self.__dict__.setdefault("_fault_loaded", {})
    if name not in loaded:
        loaded[name] = real(self, name, *rest)
    return loaded[name]

"""`HostDevice`: the host CPU behind the device hooks."""

from __future__ import annotations

import atexit
import mmap
import os
import platform
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, Exchange
from triton_porting_kit.driver.host import _host
from triton_porting_kit.driver.host.binary import SCRATCH_LIMIT, link
from triton_porting_kit.driver.host.shared_heap import SharedHeap
from triton_porting_kit.driver.native_device import NativeDevice
from triton_porting_kit.driver.properties import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.driver.symmetric import shared_segment, whole_pages
from triton_porting_kit.errors import GroupError, InvalidModule, LaunchError
from triton_porting_kit.toolchain.llvm import LinkedObject

_THREAD_LIMIT = 1 << 20  # a program is one thread, whatever num_warps is, so there is practically no limit


class _Module:
    """A linked object, its only kernel, and that kernel's function handle."""

    def __init__(self, code: LinkedObject, name: str, function: int) -> None:
        self.code = code
        self.name = name
        self.function = function


class HostDevice(NativeDevice):
    """The host CPU.

    Device memory is host memory: copies and kernels can use memory of torch or numpy in place. The default stream is
    synchronous, because such memory has no stream for its owner to wait for: a launch or copy on it has finished when
    the call returns. It is not ordered with other streams. Streams that are created are asynchronous. If an operation
    fails, operations enqueued after it on that stream are dropped until the failure has been raised.

    Grids run on a thread pool that all devices of the process share. ``TPK_NUM_THREADS`` sets its size (default: the
    cores that the process may use) and is read at the first launch. Every program rounds to nearest and keeps
    denormals, whatever the floating-point mode of the calling thread; ``TPK_DENORMALS`` changes this.

    Ctrl-C ends launches and waits of the main thread, and ``TPK_WATCHDOG_MS`` ends launches that take longer, between
    two programs. A wait that ends in this way drops what its thread has enqueued on streams.

    After ``os.fork()``, the child continues with its copy: memory, modules and streams work, and threads are created
    anew. Work pending at the fork belongs to the parent: the child's streams are empty, and events of pending work
    count as never recorded. When the interpreter exits, work that has not started is dropped.
    """

    _native: _host.Host

    def __init__(self, memory_limit: int | None = None) -> None:
        """`memory_limit`: the most bytes that may be allocated at a time; by default the machine's memory."""
        self._memory_limit = _physical_memory() if memory_limit is None else memory_limit
        self._native = _host.Host(self._memory_limit)
        self._modules: dict[int, _Module] = {}
        self._retired: list[tuple[LinkedObject, _host.RemovedFunction]] = []
        self._explanations: dict[str, list[str]] = {}
        self._heap: SharedHeap | None = None
        self._lock = threading.RLock()
        self._next_module = 1
        _open_devices.add(self)

    def __repr__(self) -> str:
        return f"HostDevice({self.properties().name!r})"

    def properties(self) -> DeviceProperties:
        return self._properties

    @cached_property
    def _properties(self) -> DeviceProperties:
        return DeviceProperties(
            name=_cpu_name(),
            arch=platform.machine(),
            memory_bytes=self._memory_limit,
            core_count=len(os.sched_getaffinity(0)),
            max_scratch_bytes=0,
            max_dram_scratch_bytes=SCRATCH_LIMIT,
            max_threads_per_program=_THREAD_LIMIT,
            host_visible_memory=True,
            in_process=True,
        )

    def memory_usage(self) -> tuple[int, int, int, int]:
        """Bytes in use, their peak so far, the number of live allocations, and the limit in bytes."""
        return self._native.memory_usage()

    def allocation_of(self, addr: int) -> tuple[int, int] | None:
        """Address and bytes of the live allocation that contains `addr`, or ends there; None for other memory."""
        return self._native.allocation_of(addr)

    # --- modules and launches ----------------------------------------------------------------------------

    def explain_crashes(self, name: str, command: Sequence[str]) -> None:
        """Let `command` explain crashes of kernel `name`: of the next kernel of that name that is loaded.

        The command runs without a shell when the kernel crashes. It gets three or more hexadecimal numbers after its
        own arguments: the bytes of the kernel's code, the offset of the crash in it, the address that was accessed or
        0, and the kernel's pointer arguments. Its standard output becomes part of the report.
        """
        self._explanations[name] = [*command]

    def load_module(self, binary: bytes, name: str) -> int:
        binary = bytes(binary)
        try:
            made = link(binary, name)
        except InvalidModule as error:
            raise InvalidModule(f"host CPU: load_module: the binary of kernel '{name}': {error}") from error
        explanation = self._explanations.pop(name, [])
        with self._lock:
            self._drop_retired()
            handle, self._next_module = self._next_module, self._next_module + 1
            function = self._native.add_function(
                made.entry,
                made.scratch_bytes,
                made.cleared_bytes,
                made.may_be_left,
                made.argument_bytes,
                made.exclusive_at is not None,
                -1 if made.exclusive_at is None else made.exclusive_at,
                made.stripes_at,
                name,
                made.code_bytes,
                made.program_at,
                made.pointers,
                explanation,
            )
            self._modules[handle] = _Module(made.code, name, function)
        return handle

    def unload_module(self, module: int) -> None:
        with self._lock:
            gone = self._module("unload_module", module)
            del self._modules[module]
            # Work in flight still runs the code. It is dropped later, so that unloading need not wait.
            self._retired.append((gone.code, self._native.remove_function(gone.function)))
            self._drop_retired()

    def get_function(self, module: int, name: str) -> int:
        with self._lock:
            found = self._module("get_function", module)
        if found.name != name:
            raise InvalidModule(f"host CPU: get_function: module {module} holds '{found.name}', not '{name}'")
        return found.function

    def _module(self, call: str, handle: int) -> _Module:
        try:
            return self._modules[handle]
        except KeyError:
            raise InvalidModule(f"host CPU: {call}: module {handle} does not exist or was unloaded") from None

    def _drop_retired(self) -> None:
        self._retired = [(code, function) for code, function in self._retired if function.busy]

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        if not 1 <= len(grid) <= 3:
            raise LaunchError(f"host CPU: launch: the grid has {len(grid)} counts, not one to three")
        x, y, z = (*grid, 1, 1)[:3]
        self._native.launch(function, x, y, z, stream, args)

    @contextmanager
    def only_programs(self, begin: int, end: int) -> Iterator[None]:
        """A context in which launches of this thread run only these programs of their grid, by linear index.

        Tools use it to look at one program at a time. `end` may be beyond the grid.
        """
        _host.choose_programs(begin, end)
        try:
            yield
        finally:
            _host.choose_programs(0, 2**63 - 1)

    def launch_entry(self) -> NativeLaunchEntry:
        return NativeLaunchEntry(function=_host.launch_entry, context=self._native.context)

    # --- groups ------------------------------------------------------------------------------------------

    def open_group(self, rank: int, ranks: int, heap_bytes: int, exchange: Exchange) -> SharedHeap:
        """`Device.open_group` for processes of one user on one machine.

        Each rank gets its share of the cores for kernels, unless ``TPK_NUM_THREADS`` is set or kernels ran before.
        """
        if self._heap is not None:
            raise GroupError("host CPU: open_group: the device is in a group already; close that one first")
        os.environ.setdefault("TPK_NUM_THREADS", str(max(1, self.properties().core_count // ranks)))
        limit = self._memory_limit
        with shared_segment("host CPU", rank, ranks, heap_bytes, limit, exchange) as (descriptor, size):
            self._heap = SharedHeap(rank, ranks, whole_pages(heap_bytes), mmap.mmap(descriptor, size))
        return self._heap

    def symmetric_alloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        with self._lock:
            return self._group("symmetric_alloc").allocate(size, alignment)

    def peer_address(self, rank: int, address: int) -> int:
        return self._group("peer_address").peer_address(rank, address)

    def fail_group(self, reason: str) -> None:
        self._group("fail_group")
        self._native.fail_launches(reason)

    def close_group(self) -> None:
        self._native.allow_launches()
        self._heap = None

    def _group(self, call: str) -> SharedHeap:
        heap = self._heap
        if heap is None:
            raise GroupError(f"host CPU: {call}: the device is in no group; call open_group first")
        return heap

    # --- life --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        with self._lock:
            super().reset()
            self._native.reset()
            self.close_group()
            self._modules.clear()
            self._retired.clear()


_open_devices: weakref.WeakSet[HostDevice] = weakref.WeakSet()


@atexit.register
def _close_devices() -> None:
    # Kernels and buffers must not be freed under running work when the interpreter exits.
    for device in list(_open_devices):
        device._native.close()


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())  # not platform.processor(), which starts a program

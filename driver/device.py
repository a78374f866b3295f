"""`Device`: the hooks that a vendor implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from triton_porting_kit.driver.hooks import hook, name_missing_hooks
from triton_porting_kit.driver.properties import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.errors import MissingHook

Exchange: TypeAlias = Callable[[bytes], list[bytes]]
"""Gives every rank's bytes to all ranks, in the order of ranks. Every rank of a group calls it equally often."""

Buffer: TypeAlias = Any
"""An object with the buffer protocol (bytes, bytearray, memoryview, a numpy array, ...)."""

DEFAULT_STREAM = 0
"""Handle of the default stream, which every device has."""

DEFAULT_ALIGNMENT = 64
"""The alignment of memory in bytes if the caller requests none."""


class Device(ABC):
    """One device: memory, copies, streams, events, modules, launches.

    Rules for every hook:

    - Addresses, sizes (bytes) and handles are non-negative integers. A handle is created by this device, belongs to it,
      and is 0 only for the default stream.
    - Errors are sub-classes of `triton_porting_kit.errors.DeviceError` whose message names the call, the device and the
      argument: `InvalidArgument` for invalid sizes, values and handles of streams and events, `InvalidPointer` for
      addresses, `InvalidModule` for binaries, modules and functions, `LaunchError` for launches, `OutOfMemory`, and
      `DeviceLost` once the device needs `reset`.
    - A hook that takes `stream` enqueues its work on that stream and may return before it has run. If the work fails,
      the next `synchronize` that covers the stream raises the failure, once.
    - Hooks may be called from any thread.
    """

    generation: int = 0
    """The number of resets. Everything created in an earlier generation is gone."""
    on_reset: Callable[[], None] | None = None
    """Called once, by the next reset. Set by callers that keep handles of modules."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make hooks that a subclass lacks raise `MissingHook` when called, so that a port can be written hook by
        hook."""
        super().__init_subclass__(**options)
        name_missing_hooks(cls)

    @hook(
        "properties",
        "Gives the properties of the device, which never change.",
        "runtime/device/propert*",
        "registration/discovery/target*",
    )
    @abstractmethod
    def properties(self) -> DeviceProperties:
        """The properties of this device. They do not change during the life of the object."""

    # --- memory ------------------------------------------------------------------------------------------

    @hook(
        "memory",
        "Allocates bytes at a multiple of an alignment and returns their address.",
        "runtime/memory/size-*",
        "runtime/memory/alignment-*",
        "runtime/memory/too-much-*",
        "runtime/memory/exhaustion",
    )
    @abstractmethod
    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        """Allocate `size` bytes at a multiple of `alignment`, a power of two, and return the address.

        Size 0 also gives an address, which is unique among live allocations and must be freed like any other. The
        contents are undefined. Raises `OutOfMemory`, and `InvalidArgument` for a negative size or a bad alignment.
        """

    @hook(
        "memory",
        "Frees an address that memalloc returned, after the work in flight that uses it.",
        "runtime/memory/free-*",
        "runtime/memory/double-free",
        "runtime/streams/free-waits",
    )
    @abstractmethod
    def memfree(self, addr: int) -> None:
        """Free an address that `memalloc` returned. Work in flight that uses it finishes first.

        Raises `InvalidPointer` for NULL, an address that is already free, or one that `memalloc` did not return.
        """

    @hook(
        "copies",
        "Copies a contiguous host buffer to a device address, after the work on the stream.",
        "runtime/copies/htod-*",
        "runtime/streams/htod-after-kernel",
    )
    @abstractmethod
    def memcpy_htod(self, dst: int, src: Buffer, stream: int = DEFAULT_STREAM) -> None:
        """Copy the whole of a contiguous host buffer to device address `dst`.

        `src` is kept alive until the copy has run; modifying it earlier is a race of the caller's. Raises
        `InvalidPointer` if `dst` is NULL or freed, or the range exceeds its allocation.
        """

    @hook(
        "copies",
        "Fills a contiguous writable host buffer from a device address, after the work on the stream.",
        "runtime/copies/dtoh-*",
        "runtime/streams/kernel-then-copy",
    )
    @abstractmethod
    def memcpy_dtoh(self, dst: Buffer, src: int, stream: int = DEFAULT_STREAM) -> None:
        """Fill a contiguous writable host buffer from device address `src`. Errors as for `memcpy_htod`."""

    @hook(
        "copies",
        "Copies bytes within the device, after the work on the stream.",
        "runtime/copies/dtod-*",
        "runtime/streams/dtod-after-kernel",
    )
    @abstractmethod
    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        """Copy `size` bytes within the device; overlapping ranges are undefined. Errors as above."""

    @hook(
        "copies",
        "Sets bytes of the device to a value from 0 to 255, after the work on the stream.",
        "runtime/copies/memset-*",
        "runtime/streams/memset-after-kernel",
    )
    @abstractmethod
    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        """Set `size` bytes to the byte `value` (0 to 255). Errors as above."""

    # --- streams and events ------------------------------------------------------------------------------

    @hook(
        "streams",
        "Creates a stream, whose work runs in order and independently of all other streams.",
        "runtime/streams/handles",
        "runtime/streams/overlap*",
        "runtime/streams/asynchronous",
    )
    @abstractmethod
    def create_stream(self) -> int:
        """A new stream. Its work runs in order, independently of all other streams, including the default one."""

    @hook(
        "streams",
        "Waits for the stream's work, destroys the stream, and raises a failure that has not been raised yet.",
        "runtime/streams/destroy*",
        "runtime/device/destroy-raises-failure",
    )
    @abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Wait for the stream's work, destroy the stream, and raise its failure if it has not been raised yet."""

    @hook(
        "streams",
        "Waits for all work of a stream, or of the device, and raises its first failure, once.",
        "runtime/streams/synchronize-*",
        "runtime/device/*failure*",
    )
    @abstractmethod
    def synchronize(self, stream: int | None = None) -> None:
        """Wait for everything on `stream` (None: on the device), and raise the first failure not yet raised."""

    @hook(
        "events",
        "Creates an event, which is not recorded yet.",
        "runtime/events/handles",
        "runtime/events/unrecorded-*",
    )
    @abstractmethod
    def create_event(self) -> int:
        """A new event, not yet recorded."""

    @hook(
        "events",
        "Destroys an event; waits that have begun still wait for the recorded work.",
        "runtime/events/destroyed-*",
        "runtime/events/churn",
    )
    @abstractmethod
    def destroy_event(self, event: int) -> None:
        """Destroy an event. Streams and threads that wait for it still wait for the recorded work."""

    @hook(
        "events",
        "Lets an event stand for the work that is on a stream now.",
        "runtime/events/record-again",
        "runtime/events/wait-keeps-its-point",
    )
    @abstractmethod
    def record_event(self, event: int, stream: int = DEFAULT_STREAM) -> None:
        """Let `event` stand for the work that is on `stream` now, instead of the work recorded before."""

    @hook(
        "events",
        "Lets later work of a stream start after the work that an event stands for now.",
        "runtime/events/wait*",
        "runtime/events/fan-in",
    )
    @abstractmethod
    def wait_event(self, stream: int, event: int) -> None:
        """Let work enqueued on `stream` from now on start after the work that `event` stands for now, if any."""

    @hook(
        "events",
        "Waits on the host for the work that an event stands for.",
        "runtime/events/synchronize",
        "runtime/events/unrecorded-synchronize",
    )
    @abstractmethod
    def synchronize_event(self, event: int) -> None:
        """Wait on the host for the work that `event` stands for. Returns at once if it was never recorded."""

    @hook(
        "events",
        "Gives the milliseconds between two events that were recorded and reached.",
        "runtime/events/*elapsed-*",
    )
    @abstractmethod
    def elapsed_time(self, start: int, end: int) -> float:
        """Milliseconds between two events. Raises `InvalidArgument` if one was not recorded or not reached yet."""

    # --- modules and launches ----------------------------------------------------------------------------

    @hook(
        "modules",
        "Loads the output of the compiler's last stage, and refuses anything else with InvalidModule.",
        "runtime/modules/load*",
        "runtime/modules/many",
        "runtime/modules/[!gmu]*-refused",
    )
    @abstractmethod
    def load_module(self, binary: bytes, name: str) -> int:
        """Load the output of the compiler's last stage for kernel `name`. Raises `InvalidModule`."""

    @hook(
        "modules",
        "Unloads a module, after the launches in flight of its kernels.",
        "runtime/modules/unload*",
    )
    @abstractmethod
    def unload_module(self, module: int) -> None:
        """Unload a module. Launches in flight finish first. Raises `InvalidModule` for an unknown handle."""

    @hook(
        "modules",
        "Gives the handle of a module's kernel for launches.",
        "runtime/modules/missing-function-refused",
        "runtime/modules/through-triton",
    )
    @abstractmethod
    def get_function(self, module: int, name: str) -> int:
        """The handle of kernel `name` in a module, for `launch`. Raises `InvalidModule` if it is not there."""

    @hook(
        "launches",
        "Runs a kernel for every program of a grid, with a copy of the packed argument block.",
        "runtime/modules/launch-*",
        "runtime/modules/grid-*",
        "runtime/modules/unload-then-launch-refused",
    )
    @abstractmethod
    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        """Run a kernel for every program of a grid of one to three counts; missing counts are 1.

        `args` is the packed argument block; the device has copied it when the call returns. A grid with a 0 runs
        nothing. Raises `LaunchError` for a bad grid, function or stream.
        """

    @hook(
        "launches",
        "Gives the address of a native launch routine, which launchers call without Python.",
        "runtime/launches/*",
        "runtime/grids/*",
        "runtime/arguments/*",
    )
    def launch_entry(self) -> NativeLaunchEntry | None:
        """`launch` in native code; None if there is only the Python hook."""
        return None

    # --- several devices ---------------------------------------------------------------------------------

    @hook("peers", "Tells whether this device copies from another one and waits for it.", "runtime/peers/*")
    def can_access_peer(self, peer: Device) -> bool:
        """Whether `memcpy_peer` and `wait_peer_event` take `peer`; a device that has them takes itself, too."""
        return False

    @hook("peers", "Copies bytes from another device, after the work on the stream.", "runtime/peers/cop*")
    def memcpy_peer(self, dst: int, peer: Device, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        """Copy `size` bytes at `src` of `peer` to `dst` here. Work of `peer` is not waited for. Errors as above."""
        raise self._lacks("memcpy_peer", "reaches no other device")

    @hook(
        "peers", "Lets later work of a stream start after the work of another device.", "runtime/peers/event*"
    )
    def wait_peer_event(self, stream: int, peer: Device, event: int) -> None:
        """`wait_event` for an event of `peer`. If `peer` is lost before, the stream fails with `DeviceLost`."""
        raise self._lacks("wait_peer_event", "reaches no other device")

    # --- groups ------------------------------------------------------------------------------------------

    @hook(
        "groups",
        "Opens the symmetric heap of a group, whose parts the ranks' devices share.",
        "runtime/groups/*",
    )
    def open_group(self, rank: int, ranks: int, heap_bytes: int, exchange: Exchange) -> object:
        """Join a group as one of its ranks, with a part of `heap_bytes` of its symmetric heap, which is zero.

        Every rank calls it with the same sizes; `exchange` passes handles of memory between them. The distance between
        the parts of two ranks is a multiple of 4096. Returns an object that owns the memory: addresses are valid until
        the group is closed and that object is gone; if it has a number `process`, that process is a part of the rank,
        which other ranks watch. A device is in one group at a time.

        Raises `GroupError`, `OutOfMemory`, `MissingHook` if the device has no groups.
        """
        raise self._lacks("open_group")

    @hook(
        "groups",
        "Allocates symmetric memory, which lies at the same place in the part of every rank.",
        "runtime/groups/*",
    )
    def symmetric_alloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        """Allocate `size` bytes of this rank's part of the heap at a multiple of `alignment`, at most 4096.

        If all ranks allocate the same sizes in the same order, allocations of the same number correspond to each other.
        Memory returns to the heap when the group is closed. Raises `SymmetricHeapFull`, `InvalidArgument`,
        `GroupError`.
        """
        raise self._lacks("symmetric_alloc")

    @hook(
        "groups",
        "Gives the address at which this device reaches the memory of another rank.",
        "runtime/groups/*",
    )
    def peer_address(self, rank: int, address: int) -> int:
        """The address at which kernels and copies of this device reach what `address` is on `rank`.

        `address` is in an allocation of `symmetric_alloc` of this rank, or at its end. Raises `InvalidPointer`,
        `InvalidArgument`, `GroupError`.
        """
        raise self._lacks("peer_address")

    @hook(
        "groups",
        "Makes running and later launches end with DeviceLost, because a rank of the group is lost.",
        "runtime/groups/*",
    )
    def fail_group(self, reason: str) -> None:
        """Let running and later launches fail with `DeviceLost` and this reason, until the group is closed.

        A launch need not stop within a program: `triton_porting_kit.language.wait` ends by itself.
        """
        raise self._lacks("fail_group")

    @hook(
        "groups",
        "Leaves the group; launches work again, and the device can open another one.",
        "runtime/groups/*",
    )
    def close_group(self) -> None:
        """Leave the group, whatever its state. Does nothing if the device is in none."""
        raise self._lacks("close_group")

    def _lacks(self, name: str, why: str = "has no symmetric memory") -> MissingHook:
        return MissingHook(
            f"{type(self).__qualname__} has no hook `{name}`: it {why}. docs/distributed.md says what a device that "
            "has it implements"
        )

    # --- life --------------------------------------------------------------------------------------------

    @hook(
        "reset",
        "Resets the device to its initial state: memory, streams, events and modules are gone.",
        "runtime/device/reset-*",
    )
    @abstractmethod
    def reset(self) -> None:
        """Reset the device to its initial state: all memory, streams, events and modules are gone.

        Sub-classes call this method, which starts the next generation. Arrays created earlier then know that their
        memory is gone, and do not free it.
        """
        self.generation += 1
        forget, self.on_reset = self.on_reset, None
        if forget is not None:
            forget()

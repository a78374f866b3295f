"""`Group`: a rank's view of a group, whose memory is the same on every rank."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit import language
from triton_porting_kit.distributed.environment import from_environment
from triton_porting_kit.distributed.rendezvous import Rendezvous
from triton_porting_kit.distributed.watch import Processes, Watch, Watched, describe_processes
from triton_porting_kit.driver import Device, DeviceArray
from triton_porting_kit.driver.array import Storage
from triton_porting_kit.driver.dtypes import as_dtype
from triton_porting_kit.errors import DeviceLost, GroupError, RankLost, RanksDisagree

OWN_BYTES = 4096
"""Bytes of each rank's part of the heap that the group keeps for itself."""
_WORD = 8
_LEFT, _GAVE_UP = 1, 2
_ALIGNMENT = 256


class _Status(IntEnum):
    """Words of symmetric memory in which a rank says what it does."""

    LEFT = 0
    """`_LEFT`, or `_GAVE_UP`: it has waited for longer than the timeout."""
    OFFSET = 1
    """One more than the offset of the signal that a kernel waits for, or 0."""
    LEAST = 2
    """What this signal has to reach."""
    ON_HOST = 3
    """1: it waits on the host for all ranks."""


class _SymmetricStorage(Storage):
    """An allocation in the symmetric heap, which lives as long as the heap."""

    def __init__(self, group: Group, size: int) -> None:
        self.device = group.device
        self.generation = group.device.generation
        self.size = size
        self.address = group.device.symmetric_alloc(size, _ALIGNMENT)
        self._memory = group.memory

    def __del__(self) -> None:
        """Nothing is freed: the heap goes as a whole."""


@dataclass(frozen=True)
class _Allocation:
    """What `Group.zeros` has made, and the line that called it."""

    address: int
    size: int
    itemsize: int
    text: str
    place: str


def _caller() -> str:
    """The line that calls the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__ or ""):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class Group:
    """A group of ranks, as one of them sees it. `open_group` makes one; use it as a context manager, or close it.

    `rank` and `ranks` are its number and how many there are, `device` is its device, and `context` is what kernels get
    as `group` for the functions of `triton_porting_kit.language`.

    Methods that are marked collective are called by all ranks in the same order. If a rank is lost, they raise
    `RankLost`, and so do launches (as `DeviceLost`) until the group is closed.
    """

    def __init__(self, rendezvous: Rendezvous, device: Device, heap_bytes: int, timeout: float) -> None:
        self.rank, self.ranks, self.device = rendezvous.rank, rendezvous.ranks, device
        self._rendezvous = rendezvous
        self._lost: RankLost | None = None
        self._status = 0
        self._allocations: list[_Allocation] = []
        self._said: tuple[int, int] | None = None
        self._lock = threading.Lock()
        exchange = rendezvous.exchange
        self._agree("heap_bytes", str(heap_bytes))
        self.memory: object = device.open_group(self.rank, self.ranks, heap_bytes + OWN_BYTES, exchange)
        """What owns the symmetric memory of this process."""
        try:
            self._barrier = device.symmetric_alloc(2 * _WORD)
            status = device.symmetric_alloc(len(_Status) * _WORD)
            self.context = DeviceArray.from_numpy(self._words(), device)
            self._stream = device.create_stream()
            self._status = status
            chip = getattr(self.memory, "process", None)
            processes = Processes(exchange(describe_processes(*(() if chip is None else (chip,)))))
            rendezvous.check = self.check
            self._watch: Watch | None = Watch(processes, self._watched(), timeout)
        except BaseException:
            device.close_group()
            raise

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(together=kind is None)

    def __repr__(self) -> str:
        return f"Group(rank={self.rank}, ranks={self.ranks}, device={self.device!r})"

    # --- memory --------------------------------------------------------------------------------------------

    def zeros(self, shape: int | Sequence[int], dtype: Any) -> DeviceArray:
        """An array of zeros in symmetric memory; collective. `dtype` is a type of the kit, numpy or torch, or its name.

        The memory returns when the group is closed and its arrays are gone. Raises `RanksDisagree` if ranks pass
        different arguments, `SymmetricHeapFull`, `DTypeError`.
        """
        extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        kind = as_dtype(dtype)
        text = f"{kind} {list(extents)}"
        self._agree(f"allocation {len(self._allocations) + 1}", text)
        storage = _SymmetricStorage(self, math.prod(extents) * kind.itemsize)
        self._allocations.append(_Allocation(storage.address, storage.size, kind.itemsize, text, _caller()))
        strides = [math.prod(extents[dim + 1 :]) for dim in range(len(extents))]
        return DeviceArray(storage, kind, extents, tuple(strides))

    def tensor(self, shape: int | Sequence[int], dtype: Any) -> Any:
        """`zeros` as a torch tensor on the CPU, for devices whose memory the host can access; collective."""
        from torch.utils.dlpack import from_dlpack

        return from_dlpack(self.zeros(shape, dtype))

    def describe(self, address: int) -> str:
        """What is at an address of this rank's symmetric memory, as text: the allocation, its line, the element."""
        if 0 <= address - self._barrier < 2 * _WORD:
            return f"word {(address - self._barrier) // _WORD} of barrier_all"
        for number, each in enumerate(self._allocations, 1):
            if each.address <= address < each.address + each.size:
                element = (address - each.address) // each.itemsize
                return f"element {element} of allocation {number} ({each.text}, made at {each.place})"
        return f"offset {address - self._barrier} of the symmetric memory"

    # --- together ------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait on the host until every rank is here; collective. Launches on streams are not waited for."""
        self.exchange(b"")

    def exchange(self, content: bytes) -> list[bytes]:
        """The bytes of every rank, by rank; collective. Meant for a few kilobytes."""
        self.check()
        self._say(_Status.ON_HOST, 1)
        try:
            return self._rendezvous.exchange(content)
        except RankLost as error:
            self._lose(error)
            raise
        finally:
            self._say(_Status.ON_HOST, 0)

    def check(self) -> None:
        """Raise `RankLost` if a rank is lost."""
        if (lost := self._lost) is not None:
            raise RankLost(lost.rank, lost.reason)

    def close(self, *, together: bool = True) -> None:
        """Leave the group. Its arrays that are still there keep their memory, but peers no longer write to it.

        `together`: wait for the other ranks first, so that none of them still needs this one; collective. After a loss
        nobody is waited for.
        """
        watch, self._watch = self._watch, None
        if watch is None:
            return
        try:
            if together and self._lost is None:
                self._say(_Status.LEFT, _LEFT)
                self.exchange(b"")
        finally:
            watch.stop()
            self.device.destroy_stream(self._stream)
            self.device.close_group()
            self._rendezvous.close()
            self.memory = None

    def _agree(self, what: str, mine: str) -> None:
        """Raise `RanksDisagree` unless every rank passes the same text."""
        theirs = [each.decode() for each in self.exchange(f"{what}: {mine}".encode())]
        if len({*theirs}) > 1:
            listed = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(theirs))
            raise RanksDisagree(
                f"ranks disagree: {listed}. All ranks allocate the same shapes and types in the same order"
            )

    # --- losing a rank -------------------------------------------------------------------------------------

    def _words(self) -> np.ndarray[Any, Any]:
        """The content of `context`; see the constants of `triton_porting_kit.language`."""
        words = np.zeros(language.DISTANCES.value + self.ranks, np.int64)
        words[language.RANK.value], words[language.RANKS.value] = self.rank, self.ranks
        words[language.BARRIER.value] = self._barrier
        words[language.RANDOM.value] = 1_000_003 * language.DELAY_SEED + self.rank
        for peer in range(self.ranks):
            distance = self.device.peer_address(peer, self._barrier) - self._barrier
            words[language.DISTANCES.value + peer] = distance
        return words

    def _word(self, index: int) -> int:
        return self.context.data_ptr() + index * _WORD

    def _read(self, address: int) -> int:
        found = np.zeros(1, np.int64)
        self.device.memcpy_dtoh(found, address, self._stream)
        self.device.synchronize(self._stream)
        return int(found[0])

    def _say(self, what: _Status, number: int) -> None:
        """Let other ranks read what this one does."""
        if self._status:
            word = np.array([number], np.int64)
            self.device.memcpy_htod(self._status + what * _WORD, word, self._stream)
            self.device.synchronize(self._stream)

    def _watched(self) -> Watched:
        return Watched(self._waiting, self._explain, self._gave_up, self._lose)

    def _waiting(self) -> tuple[int, int] | None:
        address = self._read(self._word(language.WAITS_FOR.value))
        wait = (address, self._read(self._word(language.LEAST.value))) if address else None
        if wait != self._said:
            self._said = wait
            self._say(_Status.LEAST, wait[1] if wait else 0)
            self._say(_Status.OFFSET, address - self._barrier + 1 if wait else 0)
        return wait

    def _explain(self) -> str:
        ranks = "; ".join(map(self._explain_rank, range(self.ranks)))
        return (
            f"{ranks}. This has taken longer than the group's timeout: look for the notification that should end one "
            "of these waits, its rank and its amount"
        )

    def _explain_rank(self, rank: int) -> str:
        """What a rank waits for. Every rank has the same allocations, so this rank's describe those of others."""
        offset, least, on_host = (
            self._read_of(rank, self._status + what * _WORD)
            for what in (_Status.OFFSET, _Status.LEAST, _Status.ON_HOST)
        )
        if offset:
            address = self._barrier + offset - 1
            found = np.zeros(1, f"i{self._itemsize(address)}")
            self.device.memcpy_dtoh(found, self.device.peer_address(rank, address), self._stream)
            self.device.synchronize(self._stream)
            return f"rank {rank} waits in a kernel for {self.describe(address)} to reach {least}, and has {found[0]}"
        if on_host:
            return f"rank {rank} waits on the host for all ranks"
        return f"rank {rank} does not wait"

    def _itemsize(self, address: int) -> int:
        for each in self._allocations:
            if each.address <= address < each.address + each.size:
                return each.itemsize
        return _WORD

    def _gave_up(self, rank: int) -> bool:
        """Whether a rank that has ended had waited for longer than the timeout before."""
        return self._read_of(rank, self._status) == _GAVE_UP

    def _lose(self, error: RankLost) -> None:
        """Let everything of this rank that waits for others end."""
        with self._lock:
            if self._lost is not None:
                return
            with contextlib.suppress(DeviceLost):  # of this rank: its launches fail by themselves
                if error.rank is not None and self._read_of(error.rank, self._status) == _LEFT:
                    return  # as this rank is about to
            self._lost = error
            with contextlib.suppress(DeviceLost):
                if error.rank is None:
                    self._say(_Status.LEFT, _GAVE_UP)
                self.device.fail_group(error.reason)
                stop = np.ones(1, np.int64)
                self.device.memcpy_htod(self._word(language.STOP.value), stop, self._stream)

    def _read_of(self, rank: int, address: int) -> int:
        return self._read(self.device.peer_address(rank, address))


def open_group(
    *,
    heap_bytes: int = 64 << 20,
    rendezvous: Rendezvous | None = None,
    device: Device | None = None,
    timeout: float = 300.0,
) -> Group:
    """Make this process a rank of a group; collective.

    `heap_bytes`: symmetric memory of each rank. `rendezvous`: by default what `from_environment` finds. `device`: by
    default the current device of Triton's active driver, which must be the kit's. `timeout`: seconds that other ranks
    may be late, on the host and in a kernel's `wait`.

    Raises `RendezvousError`, `RanksDisagree`, `GroupError`, `OutOfMemory`, and `MissingHook` if the device has no
    symmetric memory.
    """
    met = from_environment(timeout=timeout) if rendezvous is None else rendezvous
    return Group(met, _active_device() if device is None else device, heap_bytes, timeout)


def _active_device() -> Device:
    from triton.runtime.driver import driver

    device = getattr(driver.active, "device", None)
    if not isinstance(device, Device):
        raise GroupError(
            f"the active driver, {type(driver.active).__name__}, has no device of the kit; set TRITON_DEFAULT_BACKEND "
            "to a backend that has one, or pass device="
        )
    return device

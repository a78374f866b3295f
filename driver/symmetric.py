"""The symmetric heap of processes on one machine: one segment of shared memory, with a part for each rank.

The segment has no name in any file system. Rank 0 creates it and the others open it through ``/proc``, which the kernel
permits to processes of the same user only. It is gone when the last process that maps it has ended, however it ends.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from triton_porting_kit.driver.device import Exchange
from triton_porting_kit.errors import (
    GroupError,
    InvalidArgument,
    InvalidPointer,
    OutOfMemory,
    SymmetricHeapFull,
)

PAGE = 4096
"""The parts of ranks, and the header before them, begin at multiples of it."""
_TOKEN_BYTES = 32
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class SymmetricHeap:
    """A mapped segment: a page with a token, then a part for each rank. `Device.open_group` returns one.

    It serves `Device.symmetric_alloc` and `Device.peer_address`.
    """

    _release: Callable[[], None] | None = None

    def __init__(
        self,
        name: str,
        rank: int,
        ranks: int,
        part_bytes: int,
        start: int,
        *,
        process: int | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """`name`: of the device, for messages. `part_bytes`: of each rank, in whole pages. `start`: the address of the
        segment on the device. `process`: another process than this one without which the rank is lost, such as a
        simulated chip's. `release`: called when nobody uses the memory any more."""
        self.rank, self.ranks, self.part_bytes, self.process = rank, ranks, part_bytes, process
        self._name, self._release = name, release
        self._base = start + PAGE + rank * part_bytes
        self._used = 0

    def __del__(self) -> None:
        if self._release is not None:
            self._release()

    def allocate(self, size: int, alignment: int) -> int:
        """The next `size` bytes of this rank's part. Empty allocations have addresses of their own, too."""
        if size < 0:
            raise InvalidArgument(f"{self._name}: symmetric_alloc: size {size} is negative")
        if alignment < 1 or alignment & (alignment - 1) or alignment > PAGE:
            raise InvalidArgument(
                f"{self._name}: symmetric_alloc: alignment {alignment} is not a power of two between 1 and {PAGE}"
            )
        offset = -(-self._used // alignment) * alignment
        end = offset + max(size, 1)
        if end > self.part_bytes:
            raise SymmetricHeapFull(
                f"{self._name}: symmetric_alloc: {size} bytes asked for, {max(0, self.part_bytes - offset)} of the "
                f"{self.part_bytes} bytes of each rank are free; open the group with more heap_bytes"
            )
        self._used = end
        return self._base + offset

    def peer_address(self, rank: int, address: int) -> int:
        """See `Device.peer_address`."""
        if not 0 <= rank < self.ranks:
            raise InvalidArgument(
                f"{self._name}: peer_address: rank {rank} is not one of the group's {self.ranks} ranks"
            )
        if not 0 <= address - self._base <= self._used:
            raise InvalidPointer(
                f"{self._name}: peer_address: address {address:#x} is not in symmetric memory of rank {self.rank}, of "
                f"which {self._used} bytes at {self._base:#x} are allocated"
            )
        return address + (rank - self.rank) * self.part_bytes


def whole_pages(part_bytes: int) -> int:
    """The bytes of a part that a rank asks for, in whole pages."""
    return -(-part_bytes // PAGE) * PAGE


@contextmanager
def shared_segment(
    name: str, rank: int, ranks: int, part_bytes: int, limit: int, exchange: Exchange
) -> Iterator[tuple[int, int]]:
    """A file descriptor of a group's segment, and its bytes, to be mapped in this block; collective.

    Rank 0 creates it. `name`: of the device, for messages. `limit`: bytes that the device can map. Raises
    `InvalidArgument`, `OutOfMemory`, and `GroupError` if what rank 0 has announced is not there or another size.
    """
    if ranks < 1 or not 0 <= rank < ranks or part_bytes < 1:
        raise InvalidArgument(
            f"{name}: open_group: rank {rank} of {ranks} with {part_bytes} bytes; ranks count from 0, and each needs "
            "memory"
        )
    part_bytes = whole_pages(part_bytes)
    size = PAGE + ranks * part_bytes
    if size > limit:
        raise OutOfMemory(
            f"{name}: open_group: {ranks} parts of {part_bytes} bytes are more than the {limit} bytes of memory"
        )
    if rank == 0:
        file, token = _create(size)
        exchange(f"{os.getpid()} {file} ".encode() + token)
    else:
        file = _open(name, exchange(b"")[0], size)
    try:
        yield file, size
        exchange(b"")  # until all have opened it
    finally:
        os.close(file)


def _create(size: int) -> tuple[int, bytes]:
    """A sealed segment whose first bytes are a token, which is returned, too."""
    file = os.memfd_create("tpk-group", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(file, 0o600)
        os.ftruncate(file, size)
        token = secrets.token_hex(_TOKEN_BYTES // 2).encode()
        os.pwrite(file, token, 0)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(file)
        raise
    return file, token


def _open(name: str, message: bytes, size: int) -> int:
    """Open the segment that rank 0 has announced, if it is what it should be."""
    process, number, token = message.split(b" ", 2)
    path = f"/proc/{int(process)}/fd/{int(number)}"
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise GroupError(
            f"{name}: open_group: the memory of rank 0 cannot be opened at {path}: {error.strerror}; ranks must be "
            "processes of one user that see each other in /proc"
        ) from error
    try:
        status = os.fstat(file)
        is_private = status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o600
        sealed = stat.S_ISREG(status.st_mode) and fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS == _SEALS
        if not (is_private and sealed and hmac.compare_digest(os.pread(file, _TOKEN_BYTES, 0), token)):
            raise GroupError(f"{name}: open_group: {path} is not the memory that rank 0 has created")
        if status.st_size != size:
            raise GroupError(
                f"{name}: open_group: rank 0 has {status.st_size} bytes for the whole group, but this rank expects "
                f"{size}: pass the same heap_bytes everywhere"
            )
    except BaseException:
        os.close(file)
        raise
    return file

"""The symmetric heap of processes on one machine: one segment of shared memory, with a part for each rank.

The segment has no name in any file system. Rank 0 creates it and the others open it through ``/proc``, which the kernel
permits to processes of the same user only. It is gone when the last process that maps it has ended, however it ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import hmac
import mmap
import os
import secrets
import stat

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


class SharedHeap:
    """The mapped segment: a page with a token, then a part of `part_bytes` for each rank."""

    def __init__(self, rank: int, ranks: int, part_bytes: int, memory: mmap.mmap) -> None:
        self.rank, self.ranks, self.part_bytes = rank, ranks, part_bytes
        self._memory = memory
        self._start = ctypes.c_char.from_buffer(memory)
        self._first = ctypes.addressof(self._start) + PAGE
        self._base = self._first + rank * part_bytes
        self._used = 0

    def allocate(self, size: int, alignment: int) -> int:
        """The next `size` bytes of this rank's part. Empty allocations have addresses of their own, too."""
        if size < 0:
            raise InvalidArgument(f"host CPU: symmetric_alloc: size {size} is negative")
        if alignment < 1 or alignment & (alignment - 1) or alignment > PAGE:
            raise InvalidArgument(
                f"host CPU: symmetric_alloc: alignment {alignment} is not a power of two between 1 and {PAGE}"
            )
        offset = -(-self._used // alignment) * alignment
        end = offset + max(size, 1)
        if end > self.part_bytes:
            raise SymmetricHeapFull(
                f"host CPU: symmetric_alloc: {size} bytes asked for, {max(0, self.part_bytes - offset)} of the "
                f"{self.part_bytes} bytes of each rank are free; open the group with more heap_bytes"
            )
        self._used = end
        return self._base + offset

    def peer_address(self, rank: int, address: int) -> int:
        """See `Device.peer_address`."""
        if not 0 <= rank < self.ranks:
            raise InvalidArgument(
                f"host CPU: peer_address: rank {rank} is not one of the group's {self.ranks} ranks"
            )
        if not 0 <= address - self._base <= self._used:
            raise InvalidPointer(
                f"host CPU: peer_address: address {address:#x} is not in symmetric memory of rank {self.rank}, of "
                f"which {self._used} bytes at {self._base:#x} are allocated"
            )
        return address + (rank - self.rank) * self.part_bytes


def open_heap(rank: int, ranks: int, part_bytes: int, limit: int, exchange: Exchange) -> SharedHeap:
    """Create the segment on rank 0, and map it on all ranks. `limit`: bytes of memory that the machine has."""
    if ranks < 1 or not 0 <= rank < ranks or part_bytes < 1:
        raise InvalidArgument(
            f"host CPU: open_group: rank {rank} of {ranks} with {part_bytes} bytes; ranks count from 0, and each needs "
            "memory"
        )
    part_bytes = -(-part_bytes // PAGE) * PAGE
    size = PAGE + ranks * part_bytes
    if size > limit:
        raise OutOfMemory(
            f"host CPU: open_group: {ranks} parts of {part_bytes} bytes are more than the machine's {limit} bytes"
        )
    if rank == 0:
        file, token = _create(size)
        try:
            exchange(f"{os.getpid()} {file} ".encode() + token)
            memory = mmap.mmap(file, size)
            exchange(b"")  # until all have opened it
        finally:
            os.close(file)
    else:
        message = exchange(b"")[0]
        memory = _open(message, size)
        exchange(b"")
    return SharedHeap(rank, ranks, part_bytes, memory)


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


def _open(message: bytes, size: int) -> mmap.mmap:
    """Map the segment that rank 0 has announced, if it is what it should be."""
    process, number, token = message.split(b" ", 2)
    path = f"/proc/{int(process)}/fd/{int(number)}"
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise GroupError(
            f"host CPU: open_group: the memory of rank 0 cannot be opened at {path}: {error.strerror}; ranks must be "
            "processes of one user that see each other in /proc"
        ) from error
    try:
        status = os.fstat(file)
        is_private = status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o600
        sealed = stat.S_ISREG(status.st_mode) and fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS == _SEALS
        if not (is_private and sealed and hmac.compare_digest(os.pread(file, _TOKEN_BYTES, 0), token)):
            raise GroupError(f"host CPU: open_group: {path} is not the memory that rank 0 has created")
        if status.st_size != size:
            raise GroupError(
                f"host CPU: open_group: rank 0 has {status.st_size} bytes for the whole group, but this rank expects "
                f"{size}: pass the same heap_bytes everywhere"
            )
        return mmap.mmap(file, size)
    finally:
        os.close(file)

"""How the ranks of a group exchange bytes: what every way has in common, and the way by files."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from triton_porting_kit import trust
from triton_porting_kit.errors import InsecureCacheError, RendezvousError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.01
"""Seconds between two looks for what other ranks send."""


class Rendezvous(ABC):
    """Exchanges bytes between the ranks of a group.

    `check` is called again and again while other ranks are late, and may raise an error to end the wait.
    """

    def __init__(self, rank: int, ranks: int, timeout: float) -> None:
        """`timeout`: seconds that other ranks may be late."""
        if ranks < 1 or not 0 <= rank < ranks:
            raise RendezvousError(f"rank {rank} of {ranks} ranks: ranks are numbers from 0 to ranks - 1")
        self.rank, self.ranks, self.timeout = rank, ranks, timeout
        self.check: Callable[[], None] = lambda: None

    @abstractmethod
    def exchange(self, content: bytes) -> list[bytes]:
        """The bytes of every rank, by rank. Every rank calls it. Raises `RendezvousError` if a rank is late."""

    def close(self) -> None:
        """Release what the rendezvous holds. No rank exchanges anything afterwards."""
        return

    def _late(self, missing: int) -> RendezvousError:
        return RendezvousError(
            f"rank {self.rank} has waited {self.timeout:g} s for rank {missing} of {self.ranks}: is it running, with "
            "the same number of ranks and the same rendezvous?"
        )


class Alone(Rendezvous):
    """The rendezvous of a group of one rank."""

    def __init__(self) -> None:
        super().__init__(0, 1, 0.0)

    def exchange(self, content: bytes) -> list[bytes]:
        return [content]


class KeyedRendezvous(Rendezvous):
    """A rendezvous at a store of keys and bytes that all ranks reach."""

    def __init__(self, rank: int, ranks: int, timeout: float) -> None:
        super().__init__(rank, ranks, timeout)
        self._count = 0

    @abstractmethod
    def put(self, key: str, content: bytes) -> None:
        """Store bytes, all at once."""

    @abstractmethod
    def find(self, key: str) -> bytes | None:
        """The bytes of a key; None if it is not there yet."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key of this rank."""

    def exchange(self, content: bytes) -> list[bytes]:
        self._count += 1
        self.put(f"{self._count}.{self.rank}", content)
        deadline = time.monotonic() + self.timeout
        found = [content if rank == self.rank else self._wait(rank, deadline) for rank in range(self.ranks)]
        if self._count > 1:
            # All ranks have put what belongs to this exchange, so they have read what belongs to the last.
            self.remove(f"{self._count - 1}.{self.rank}")
        return found

    def _wait(self, rank: int, deadline: float) -> bytes:
        pause = _FIRST_PAUSE
        while True:
            content = self.find(f"{self._count}.{rank}")
            if content is not None:
                return content
            self.check()
            if time.monotonic() > deadline:
                raise self._late(rank)
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


class FolderRendezvous(KeyedRendezvous):
    """A rendezvous by files in a private folder, which is there before and empty."""

    def __init__(self, folder: str | Path, rank: int, ranks: int, timeout: float) -> None:
        super().__init__(rank, ranks, timeout)
        self._folder = Path(folder)
        remedy = "make one with `mktemp -d`"
        if not self._folder.is_dir():
            raise RendezvousError(f"{self._folder}, where ranks should meet, is not a folder; {remedy}")
        try:
            trust.check_private(self._folder, remedy)
            trust.check_way(self._folder, remedy)
        except InsecureCacheError as error:
            raise RendezvousError(f"ranks cannot meet in {self._folder}: {error}") from error

    def put(self, key: str, content: bytes) -> None:
        path = self._folder / key
        if path.exists():
            raise RendezvousError(f"{path} exists: a rank has the same number, or the folder was used before")
        trust.write_private(path, content)

    def find(self, key: str) -> bytes | None:
        try:
            return (self._folder / key).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._folder / key).unlink()

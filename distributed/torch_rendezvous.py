"""A rendezvous by torch.distributed: a process group, or the store that ``torchrun`` describes."""

from __future__ import annotations

import functools
import itertools
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from triton_porting_kit.distributed.rendezvous import KeyedRendezvous, Rendezvous
from triton_porting_kit.errors import RendezvousError


class ProcessGroup(Rendezvous):
    """The ranks of a process group, by default the default one. It must take CPU tensors, as gloo does.

    Its own timeout holds.
    """

    def __init__(self, group: Any = None) -> None:
        super().__init__(dist.get_rank(group), dist.get_world_size(group), 0.0)
        self._group = group

    def exchange(self, content: bytes) -> list[bytes]:
        try:
            sizes = self._gather(torch.tensor([len(content)]))
            longest = max(int(size) for size in sizes)
            padded = bytearray(content.ljust(max(longest, 1), b"\0"))
            parts = self._gather(torch.frombuffer(padded, dtype=torch.uint8))
        except RuntimeError as error:
            raise RendezvousError(
                f"rank {self.rank} cannot exchange bytes by its process group of torch.distributed: {error}; is every "
                "rank running, and does the group take CPU tensors?"
            ) from error
        return [bytes(part[: int(size)].tolist()) for part, size in zip(parts, sizes, strict=True)]

    def _gather(self, mine: torch.Tensor) -> list[torch.Tensor]:
        found = [torch.empty_like(mine) for _ in range(self.ranks)]
        dist.all_gather(found, mine, group=self._group)
        return found


class Store(KeyedRendezvous):
    """A store of torch.distributed that all ranks have."""

    def __init__(self, store: Any, rank: int, ranks: int, timeout: float) -> None:
        super().__init__(rank, ranks, timeout)
        self._store = store

    def put(self, key: str, content: bytes) -> None:
        self._store.set(key, content)

    def find(self, key: str) -> bytes | None:
        try:
            found: bytes | None = self._store.get(key) if self._store.check([key]) else None
        except RuntimeError as error:
            raise RendezvousError(
                f"rank {self.rank} has lost torch's store: {error}; the process that holds it has ended"
            ) from error
        return found

    def remove(self, key: str) -> None:
        self._store.delete_key(key)


@functools.cache
def _store(timeout: float) -> tuple[Any, int, int]:
    """The store, this rank, and the number of ranks. Rank 0 may hold the store, which therefore stays open."""
    found: tuple[Any, int, int] = next(iter(rendezvous("env://", timeout=timedelta(seconds=timeout))))
    return found


_opened = itertools.count()


def from_environment(timeout: float) -> Store:
    """The store of ``MASTER_ADDR`` and ``MASTER_PORT``, which ``torchrun`` or rank 0 holds."""
    try:
        store, rank, ranks = _store(timeout)
    except (ValueError, RuntimeError) as error:
        raise RendezvousError(
            f"torch.distributed finds no store at MASTER_ADDR={os.environ.get('MASTER_ADDR')!r}, "
            f"MASTER_PORT={os.environ.get('MASTER_PORT')!r}: {error}"
        ) from error
    return Store(PrefixStore(f"tpk-group-{next(_opened)}", store), rank, ranks, timeout)

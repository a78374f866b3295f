"""Collectives, compared with NumPy on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from triton_porting_kit.distributed import Collectives, Group
from triton_porting_kit.distributed.collectives import ALGORITHMS, BLOCK

COUNTS = (1, 7, 4099)


def _values(rank: int, count: int, dtype: str) -> np.ndarray[Any, Any]:
    """Small integers, different on each rank, whose sums every type holds exactly."""
    return np.random.default_rng([count, rank]).integers(0, 9, count).astype(dtype)


def compare(group: Group, dtype: str, counts: Sequence[int] = COUNTS, block: int = BLOCK) -> list[str]:
    """Which collectives give a wrong result."""
    ranks, me, wrong = group.ranks, group.rank, []
    calls = Collectives(group, programs=2, block=block)
    for count in counts:
        mine = [_values(rank, count, dtype) for rank in range(ranks)]
        parts = np.stack([_values(rank, count * ranks, dtype) for rank in range(ranks)])
        to_me = parts.reshape(ranks, ranks, count)[:, me]
        x, source = group.zeros(count, dtype), group.zeros(count * ranks, dtype)
        x.copy_(mine[me])
        source.copy_(parts[me])
        gathered, exchanged = group.zeros(count * ranks, dtype), group.zeros(count * ranks, dtype)
        scattered = group.zeros(count, dtype)
        calls.all_gather(x, gathered)
        calls.all_to_all(source, exchanged)
        calls.reduce_scatter(source, scattered)
        found = {
            "all_gather": (gathered, np.concatenate(mine)),
            "all_to_all": (exchanged, to_me.reshape(-1)),
            "reduce_scatter": (scattered, to_me.sum(0, dtype=dtype)),
        }
        total = np.stack(mine).sum(0, dtype=dtype)
        for algorithm in ALGORITHMS:
            y, out = group.zeros(count, dtype), group.zeros(count, dtype)
            y.copy_(mine[me])
            target = out if algorithm == "one_shot" else y
            calls.all_reduce(y, target, algorithm=algorithm)
            found[algorithm] = target, total
        for call, (got, expected) in found.items():
            values = got.numpy()
            if not np.array_equal(values, expected):
                wrong.append(f"{call} of {count} {dtype}: {values[:8]} instead of {expected[:8]}")
    return wrong

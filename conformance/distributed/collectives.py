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


CALLS = ("all_gather", "all_to_all", "reduce_scatter", *ALGORITHMS)


def _call(
    calls: Collectives, call: str, count: int, dtype: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a collective gives the second time, when its memory is used again, and what it should give."""
    group = calls.group
    ranks, me = group.ranks, group.rank
    mine = [_values(rank, count, dtype) for rank in range(ranks)]
    parts = np.stack([_values(rank, count * ranks, dtype) for rank in range(ranks)])
    to_me = parts.reshape(ranks, ranks, count)[:, me]
    gathers, reduces = call == "all_gather", call in ALGORITHMS
    given = mine[me] if gathers or reduces else parts[me]
    expected = {
        "all_gather": np.concatenate(mine),
        "all_to_all": to_me.reshape(-1),
        "reduce_scatter": to_me.sum(0, dtype=dtype),
    }.get(call, np.stack(mine).sum(0, dtype=dtype))
    source, out = group.zeros(given.size, dtype), group.zeros(expected.size, dtype)
    for _ in range(2):
        source.copy_(given)
        if not reduces:
            getattr(calls, call)(source, out)
        else:
            calls.all_reduce(source, out if call == "one_shot" else source, algorithm=call)
        found = (source if call in ("two_shot", "ring") else out).numpy()
    return found, expected


def compare(
    group: Group,
    dtype: str,
    counts: Sequence[int] = COUNTS,
    block: int = BLOCK,
    chosen: Sequence[str] = CALLS,
) -> list[str]:
    """Which collectives give a wrong result."""
    wrong = []
    calls = Collectives(group, programs=2, block=block)
    for count in counts:
        for call in chosen:
            found, expected = _call(calls, call, count, dtype)
            if not np.array_equal(found, expected):
                wrong.append(f"{call} of {count} {dtype}: {found[:8]} instead of {expected[:8]}")
    return wrong


def again(group: Group, calls: int, count: int) -> int:
    """How many of many all-reduces, one after the other without any other wait, give a wrong sum."""
    collectives, wrong = Collectives(group, programs=2), 0
    ranks = group.ranks
    x, out = group.zeros(count, "int32"), group.zeros(count, "int32")
    for call in range(calls):
        algorithm = ALGORITHMS[call % len(ALGORITHMS)]
        target = out if algorithm == "one_shot" else x
        x.fill_(call + group.rank)
        collectives.all_reduce(x, target, algorithm=algorithm)
        wrong += int((target.numpy() != call * ranks + ranks * (ranks - 1) // 2).any())
    return wrong

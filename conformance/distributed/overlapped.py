"""Kernels that compute while they communicate, compared with NumPy in float64 on every rank.

Every rank makes the values of all ranks from the same seeds, so that nothing but the kernels communicates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from triton_porting_kit.distributed import Group
from triton_porting_kit.distributed.overlapped import Overlapped
from triton_porting_kit.driver import DeviceArray

Array = np.ndarray[Any, Any]

CALLS = 2
"""How often each operation runs in sequence, without another one between: memory is used again then."""
_RELATIVE = 2e-5
"""The error of float32 that is accepted, relative to the largest expected value."""


def _values(seed: list[int], *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _on(group: Group, values: Array) -> DeviceArray:
    return DeviceArray.from_numpy(values, group.device)


def _empty(group: Group, *shape: int) -> DeviceArray:
    return DeviceArray.full(shape, -7.0, "float32", group.device)


def _error(what: str, found: DeviceArray, expected: Array) -> list[str]:
    got = found.numpy()
    error = float(np.abs(got.astype(np.float64) - expected).max(initial=0.0))
    limit = _RELATIVE * max(1.0, float(np.abs(expected).max(initial=0.0)))
    return [] if error <= limit else [f"{what}: an error of {error}, of which {limit} is accepted"]


def products(group: Group, m: int, k: int, n: int, block: int = 32) -> list[str]:
    """What is wrong of all-gather + matmul and matmul + reduce-scatter; `m` rows of each rank."""
    ranks, me, wrong = group.ranks, group.rank, []
    calls = Overlapped(group, programs=2, block=block, inner=16)
    for call in range(CALLS):
        a = [_values([call, rank, 1], m, k) for rank in range(ranks)]
        b = _values([call, me, 2], k, n)
        out = _empty(group, ranks * m, n)
        calls.all_gather_matmul(_on(group, a[me]), _on(group, b), out)
        wrong += _error(f"all-gather + matmul, call {call}", out, np.concatenate(a).astype(np.float64) @ b)
    for call in range(CALLS):
        wide = [_values([call, rank, 3], ranks * m, k) for rank in range(ranks)]
        others = [_values([call, rank, 4], k, n) for rank in range(ranks)]
        out = _empty(group, m, n)
        calls.matmul_reduce_scatter(_on(group, wide[me]), _on(group, others[me]), out)
        total = np.sum([a.astype(np.float64) @ b for a, b in zip(wide, others, strict=True)], axis=0)
        wrong += _error(f"matmul + reduce-scatter, call {call}", out, total[me * m : (me + 1) * m])
    return wrong


def experts(group: Group, tokens: int, width: int, top: int, each: int, block: int = 32) -> list[str]:
    """What is wrong of expert-parallel dispatch and combine; `each` experts on a rank. Expert e multiplies by e + 1."""
    ranks, me, wrong = group.ranks, group.rank, []
    count = ranks * each
    calls = Overlapped(group, programs=2, block=block)
    for call in range(CALLS):
        random = np.random.default_rng([call, me, 4])
        x = random.standard_normal((tokens, width)).astype(np.float32)
        chosen = np.stack([random.permutation(count)[:top] for _ in range(tokens)]).astype(np.int32)
        weights = random.random((tokens, top)).astype(np.float32)
        numbers = _on(group, chosen)
        for _ in range(CALLS):  # read in between, since the next call writes to the same memory
            got = calls.dispatch(_on(group, x), numbers, count)
            rows, of_expert, counts = got.rows.numpy(), got.experts.numpy(), got.counts.numpy()
        results = np.zeros_like(rows)
        for source in range(ranks):
            there = slice(0, int(counts[source]))
            its = of_expert[source, there]
            if not ((its >= me * each) & (its < (me + 1) * each)).all():
                wrong.append(
                    f"dispatch, call {call}: rank {me} got rows of experts {sorted(set(its.tolist()))}"
                )
            results[source, there] = rows[source, there] * (its[:, None] + 1)
        got.rows.copy_(results)
        out = _empty(group, tokens, width)
        calls.combine(got.rows, numbers, _on(group, weights), got, count, out)
        factors = (weights.astype(np.float64) * (chosen + 1)).sum(1)
        wrong += _error(f"dispatch and combine, call {call}", out, x * factors[:, None])
    return wrong


def attention(
    group: Group, heads: int, sequence: int, depth: int, causal: bool, block: int = 32
) -> list[str]:
    """What is wrong of ring attention; `sequence` positions on each rank."""
    ranks, me, wrong = group.ranks, group.rank, []
    calls = Overlapped(group, programs=2, block=block)
    for call in range(CALLS):
        parts = [
            [_values([call, rank, 5 + i], heads, sequence, depth) for i in range(3)] for rank in range(ranks)
        ]
        out = _empty(group, heads, sequence, depth)
        q, k, v = (_on(group, each) for each in parts[me])
        calls.ring_attention(q, k, v, out, causal=causal)
        keys, values = (
            np.concatenate([part[i] for part in parts], axis=1).astype(np.float64) for i in (1, 2)
        )
        scores = parts[me][0].astype(np.float64) @ keys.transpose(0, 2, 1) / math.sqrt(depth)
        if causal:
            mine = me * sequence + np.arange(sequence)
            scores = np.where(np.arange(ranks * sequence) <= mine[:, None], scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        wrong += _error(f"ring attention, causal {causal}, call {call}", out, shares @ values)
    return wrong

"""Kernels that compute while they communicate, compared with float64, in processes and on schedules of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from triton_porting_kit.conformance.distributed import overlapped
from triton_porting_kit.conformance.distributed.workers import Workers
from triton_porting_kit.distributed.model import check_ranks

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (overlapped.products, (19, 21, 17, 16)),
    (overlapped.experts, (11, 19, 2, 2, 16)),
    (overlapped.attention, (3, 19, 16, True, 16)),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[each.__name__ for each, _ in CASES])
def test_processes_give_what_float64_gives(
    workers: Workers, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    assert workers.run(function, 3, *arguments) == [[]] * 3


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[each.__name__ for each, _ in CASES])
def test_every_access_is_ordered(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    assert check_ranks(function, 3, *arguments, seed=1) == [[]] * 3


def test_attention_to_all_positions(workers: Workers) -> None:
    assert workers.run(overlapped.attention, 2, 1, 40, 32, False, 16) == [[], []]

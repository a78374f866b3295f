"""Groups of ranks on the CPU: symmetric memory, the language's functions, lost ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.conformance.distributed import ranks as rank_programs
from triton_porting_kit.conformance.distributed.workers import Failed, Workers


@pytest.mark.parametrize("ranks", [1, 4])
def test_ranks_put_to_their_neighbours(workers: Workers, ranks: int) -> None:
    calls = 3
    found = workers.run(rank_programs.shift, ranks, 1000, calls)
    for rank, values in enumerate(found):
        expected = (rank - calls) % ranks + 1 + 10 * sum((rank - step) % ranks for step in range(calls))
        assert values == [expected]


def test_ranks_get_before_memory_is_overwritten(workers: Workers) -> None:
    ranks = 3
    rows = [[1000.0 * peer, 1000.0 * peer + 127] for peer in range(ranks)]
    assert workers.run(rank_programs.collect, ranks) == [[*rows, [-1.0]]] * ranks


@pytest.mark.parametrize(("ranks", "rounds"), [(2, 2000), (4, 20)])
def test_barriers(workers: Workers, ranks: int, rounds: int) -> None:
    assert workers.run(rank_programs.barriers, ranks, rounds) == [0] * ranks


def test_signals_wrap_around(workers: Workers) -> None:
    assert workers.run(rank_programs.wrap, 1) == [[1, 1]]


def test_what_a_group_says(workers: Workers) -> None:
    pytest.importorskip("torch")
    for rank, found in enumerate(workers.run(rank_programs.describe, 2)):
        assert found == {
            "rank": rank,
            "ranks": 2,
            "words": [rank, 2],
            "to itself": 0,
            "shape": [3, 5],
            "dtype": "torch.bfloat16",
            "exchanged": ["from 0", "from 1"],
        }


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        (
            "size",
            ("RanksDisagree", "rank 0: allocation 1: float32 [10]", "rank 1: allocation 1: float32 [11]"),
        ),
        ("type", ("RanksDisagree", "rank 0: allocation 1: int32 [10]", "rank 1: allocation 1: float32 [10]")),
        ("heap", ("SymmetricHeapFull", f"{64 << 20} bytes asked for", "more heap_bytes")),
    ],
)
def test_allocations_that_differ_or_do_not_fit(workers: Workers, what: str, parts: tuple[str, ...]) -> None:
    for found in workers.run(rank_programs.disagree, 2, what):
        for part in parts:
            assert part in found


def test_ranks_that_wait_for_each_other_say_who_waits_for_what(workers: Workers) -> None:
    workers.start(rank_programs.starve, 2, timeout=3.0)
    for found in (workers.answer(0), workers.answer(1)):
        for rank in (0, 1):
            part = f"rank {rank} waits in a kernel for element {rank} of allocation 1 (int32 [4], made at ranks.py:"
            assert part in found
            assert f"to reach {7 + rank}, and has 0" in found
        assert "longer than the group's timeout" in found


@pytest.mark.parametrize(("how", "ranks"), [("kernel", 3), ("host", 2)])
def test_a_lost_rank_is_noticed_by_all(cache: Path, how: str, ranks: int) -> None:
    own = Workers(ranks, cache)
    try:
        own.start(rank_programs.lose, ranks, how)
        process = own.processes[1].pid
        kind = "DeviceLost" if how == "kernel" else "RankLost"
        for rank in {0, ranks - 1} - {1}:
            found = own.answer(rank)
            assert found["seconds"] < 5
            *errors, last = found["errors"]
            assert len(errors) == 2
            for error in errors:
                assert error.startswith(kind)
                assert f"rank 1 is lost: its process {process} has ended" in error
            assert last == "rank 1"
        with pytest.raises(Failed, match="ended"):
            own.answer(1)
    finally:
        own.close()

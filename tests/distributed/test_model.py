"""Ranks by the model: what it finds, and that it accepts what is right."""

from __future__ import annotations

import model_programs
import pytest

from triton_porting_kit.compiler.dialect.interpreter import OutOfBounds
from triton_porting_kit.conformance.distributed import collectives, litmus, ranks
from triton_porting_kit.distributed.model import check_ranks
from triton_porting_kit.errors import GroupError, RanksStuck, UnorderedAccess


@pytest.mark.parametrize("seed", range(2))
def test_right_programs_give_what_processes_give(seed: int) -> None:
    assert check_ranks(model_programs.passing, 3, seed=seed) == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    assert check_ranks(ranks.barriers, 3, 3, seed=seed) == [0, 0, 0]
    assert check_ranks(litmus.reuse, 2, 3, seed=seed) == [0, 0]
    assert check_ranks(collectives.compare, 2, "int32", (7,), 4, seed=seed) == [[], []]


def test_a_missing_wait_is_a_race() -> None:
    with pytest.raises(UnorderedAccess) as caught:
        check_ranks(model_programs.passing, 2, True, False)
    text = str(caught.value)
    assert "element 0 of allocation 2 (float32 [8], made at model_programs.py:26) of rank" in text
    assert "a store at language.py:" in text or "a load at model_programs.py:22" in text
    assert "called at model_programs.py:17" in text


def test_a_missing_notification_is_a_deadlock_that_names_who_waits_for_what() -> None:
    with pytest.raises(RanksStuck) as caught:
        check_ranks(model_programs.passing, 2, False, True)
    for rank in (0, 1):
        assert (
            f"element 0 of allocation 3 (int32 [1], made at model_programs.py:27) of rank {rank} to reach 1; it is 0 "
            "(nobody has notified it)"
        ) in str(caught.value)
        assert f"rank {rank}, program 0 of pass_kernel: waits at language.py:" in str(caught.value)
        assert f"rank {rank}, on the host: waits for its launch of pass_kernel" in str(caught.value)
    assert "called at model_programs.py:21" in str(caught.value)


def test_a_notification_of_a_narrow_scope_orders_nothing_on_another_rank() -> None:
    with pytest.raises(UnorderedAccess, match="an atomic operation that is not of scope sys"):
        check_ranks(model_programs.passing, 2, True, True, "gpu")


def test_fences_order_relaxed_operations() -> None:
    assert check_ranks(model_programs.fenced, 2, True, True) == [0, 7]


@pytest.mark.parametrize("fences", [(False, True), (True, False), (False, False)])
def test_a_missing_fence_is_found_although_x86_would_hide_it(fences: tuple[bool, bool]) -> None:
    with pytest.raises(UnorderedAccess, match="element 0 of allocation 1"):
        check_ranks(model_programs.fenced, 2, *fences)


def test_an_access_behind_an_allocation() -> None:
    with pytest.raises(OutOfBounds, match=r"0 bytes behind the end of symmetric memory of rank"):
        check_ranks(model_programs.beyond, 2)


def test_a_rank_that_does_not_come_to_a_barrier() -> None:
    with pytest.raises(RanksStuck, match="rank 1, on the host: waits for all ranks"):
        check_ranks(model_programs.missing_barrier, 2)


def test_a_seed_repeats_a_schedule_and_others_differ() -> None:
    found = [check_ranks(model_programs.count, 3, seed=seed) for seed in range(12)]
    assert found == [check_ranks(model_programs.count, 3, seed=seed) for seed in range(12)]
    assert len({tuple(each) for each in found}) > 1


def test_a_grid_of_too_many_programs_is_refused() -> None:
    with pytest.raises(GroupError, match="launched with 8 programs; the model has room for 7 of each rank"):
        check_ranks(ranks.shift, 2, 2000, 1)

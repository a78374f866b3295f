"""Collectives, compared with torch's gloo on the same values."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.conformance.distributed import collectives
from triton_porting_kit.conformance.distributed.workers import Workers

pytest.importorskip("torch")

import collective_programs


@pytest.mark.parametrize(
    ("ranks", "types", "counts"), [(2, ["bfloat16"], [1, 20_001]), (3, ["float32"], [0, 12_289])]
)
def test_collectives_give_what_gloo_gives(
    workers: Workers, tmp_path: Path, ranks: int, types: list[str], counts: list[int]
) -> None:
    found = workers.run(collective_programs.compare, ranks, str(tmp_path / "gloo"), types, counts)
    assert found == [[]] * ranks


def test_sums_are_the_same_on_all_ranks(workers: Workers) -> None:
    first, *others = workers.run(collective_programs.same_everywhere, 3, 10_001)
    for other in others:
        assert other == first
    assert all(error < 2e-6 for _, error in first)


def test_many_calls_one_after_the_other(workers: Workers) -> None:
    assert workers.run(collectives.again, 2, 300, 5000) == [0, 0]


def test_wrong_arguments_are_refused(workers: Workers) -> None:
    plain, same, ring, tree, other, parts, out, kind = workers.run(collective_programs.refuse, 2)[0]
    assert plain.startswith("InvalidPointer: all_reduce: source is not in the group's symmetric memory")
    assert same.startswith("InvalidArgument: all_reduce: one_shot needs an `out`")
    assert ring.startswith("InvalidArgument: all_reduce: the ring works in place")
    assert "'tree' is none of one_shot, two_shot, ring" in tree
    assert "out has 6 elements of int32, but 9 of float32 are needed" in other
    assert "9 elements are not a part of equal size for each of 2 ranks" in parts
    assert out.startswith("InvalidPointer: all_gather: out is not")
    assert "bool cannot be summed" in kind

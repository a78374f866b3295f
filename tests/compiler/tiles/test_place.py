"""Placement: buffers in use at one time never share bytes, and plans are small."""

from __future__ import annotations

import random

import pytest

from triton_porting_kit.compiler.tiles.lifetimes import Lifetime
from triton_porting_kit.compiler.tiles.place import arranged
from triton_porting_kit.compiler.tiles.plan import most_live


def life(size: int, first: int, last: int) -> Lifetime:
    return Lifetime(None, "vector", size, "load", 1, first, last)


def peak(found: list[Lifetime]) -> int:
    """The largest sum of bytes at one time, counted at every moment."""
    moments = range(max(each.last for each in found) + 1)
    return max(sum(each.bytes for each in found if each.first <= at <= each.last) for at in moments)


@pytest.mark.parametrize("seed", range(50))
def test_no_two_live_buffers_share_a_byte(seed: int) -> None:
    choose = random.Random(seed)
    starts = [choose.randrange(60) for _ in range(30)]
    found = [life(64 * choose.randint(1, 40), first, first + choose.randrange(20)) for first in starts]
    placed = arranged(found, alignment=64)
    assert len(placed) == len(found)
    owner: dict[tuple[int, int], Lifetime] = {}
    for each in placed:
        assert each.address % 64 == 0
        for moment in range(each.lifetime.first, each.lifetime.last + 1):
            for block in range(each.address // 64, each.end // 64):
                assert owner.setdefault((moment, block), each.lifetime) is each.lifetime
    used = max(each.end for each in placed)
    assert peak(found) == most_live(found) <= used <= 1.25 * peak(found)


def test_buffers_in_turn_share_their_bytes() -> None:
    placed = arranged([life(1024, 0, 3), life(1024, 4, 7), life(512, 8, 9)], alignment=64)
    assert [each.address for each in placed] == [0, 0, 0]


def test_addresses_are_aligned() -> None:
    placed = arranged([life(100, 0, 3), life(100, 0, 3)], alignment=64)
    assert sorted(each.address for each in placed) == [0, 128]

"""The scratch block: a stack whose parts may be given back early."""

from __future__ import annotations

import random

from triton_porting_kit.compiler.loops.tiles.scratch import Stack


def test_handed_out_like_a_stack() -> None:
    scratch = Stack()
    assert scratch.take(10) == 0
    mark = scratch.mark
    assert scratch.take(64) == 64
    assert scratch.take(1) == 128
    scratch.release(mark)
    assert scratch.take(4) == 64
    assert scratch.high_water == 192


def test_what_is_given_back_is_taken_again() -> None:
    scratch = Stack()
    offsets = [scratch.take(64) for _ in range(4)]
    scratch.give_back(offsets[1])
    scratch.give_back(offsets[2])
    assert scratch.take(128) == offsets[1]
    scratch.give_back(offsets[3])
    assert scratch.mark == offsets[3]
    assert scratch.taken(0) == [offsets[0], offsets[1]]


def test_holes_set_aside_are_not_used() -> None:
    scratch = Stack()
    first, _ = scratch.take(64), scratch.take(64)
    scratch.give_back(first)
    holes, mark = scratch.set_holes_aside(), scratch.mark
    assert scratch.take(64) == mark
    scratch.release(mark)
    scratch.put_back(holes)
    assert scratch.take(64) == first


def test_nothing_is_handed_out_twice() -> None:
    choose = random.Random(4)
    scratch, held = Stack(), dict[int, int]()
    for _ in range(500):
        if held and choose.random() < 0.5:
            offset = choose.choice(list(held))
            del held[offset]
            scratch.give_back(offset)
        else:
            size = choose.randrange(1, 400)
            offset = scratch.take(size)
            assert offset % Stack.ALIGNMENT == 0
            assert all(offset + size <= start or start + room <= offset for start, room in held.items())
            held[offset] = size
        assert sorted(scratch.taken(0)) == sorted(held)
        assert all(offset + size <= scratch.mark <= scratch.high_water for offset, size in held.items())
    for offset in list(held):
        scratch.give_back(offset)
    assert scratch.mark == 0


def test_how_far_the_stack_reached() -> None:
    scratch = Stack()
    scratch.take(64)
    mark = scratch.mark
    scratch.take(128)
    scratch.release(mark)
    assert [scratch.reached(), scratch.reached()] == [192, 64]
    scratch.take(64)
    assert [scratch.reached(), scratch.high_water] == [128, 192]

"""Regions: what is in them, what is fitted, and which programs get in each other's way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from triton_porting_kit.conformance.stress.draws import content, content_at
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.numbers import whole
from triton_porting_kit.conformance.stress.oracle import expected, fitted
from triton_porting_kit.conformance.stress.program import (
    MOST_SPAN,
    Fetch,
    IllConditioned,
    Let,
    Malformed,
    Program,
    Put,
    Region,
    Statement,
    Store,
)
from triton_porting_kit.conformance.stress.regions import State
from triton_porting_kit.conformance.types import KINDS, Array

I32 = KINDS["i32"]
ALL = np.ones(4, bool)
AT = np.arange(4)


def state(use: str = "store") -> State:
    return State(Region(0, "i32", "index", 7, use))


def tile(*values: int) -> object:
    return whole(I32, np.array(values))


def test_a_load_finds_what_was_stored() -> None:
    found = state()
    found.store(np.array([3, 1, 9, 3]), np.array([True, True, False, False]), tile(5, 6, 7, 8), 0)  # type: ignore[arg-type]
    own = content(I32, 4, "index", 7)
    assert found.load(AT, ALL, 0, 0).value.tolist() == [own[0], 6, own[2], 5]
    assert found.load(AT, np.array([False, True, True, False]), -1, 0).value.tolist() == [-1, 6, own[2], -1]
    assert found.fitted() == Region(0, "i32", "index", 7, "store", low=0, size=4)


@pytest.mark.parametrize("flavour", ["index", "distinct", "full", "edges", "small"])
def test_content_is_the_same_wherever_it_is_looked_at(flavour: str) -> None:
    whole_content = content_at(I32, np.arange(-50, 50), flavour, 3)
    assert (whole_content[50:] == content(I32, 50, flavour, 3)).all()
    assert whole_content[20] == content_at(I32, np.asarray(-30), flavour, 3)


@pytest.mark.parametrize("place", [2**63 - 1, -(2**63)])
def test_the_last_places_that_64_bits_count_have_the_content_that_a_load_finds(place: int) -> None:
    found = State(Region(0, "i32", "full", 7, "store", low=place, size=1))
    loaded = found.load(np.array([place]), np.ones(1, bool), 0, 0).value
    initial, values, _ = found.final()
    assert initial == values == loaded == content_at(I32, np.array([place]), "full", 7)


def test_distinct_content_is() -> None:
    assert len(set(content_at(I32, np.arange(100, 164), "distinct", 11).tolist())) == 64


def store(program: int, at: Array = AT) -> tuple[str, int, Array]:
    return "store", program, at


def load(program: int, at: Array = AT) -> tuple[str, int, Array]:
    return "load", program, at


@pytest.mark.parametrize(
    ("accesses", "message"),
    [
        ((store(0), store(1)), "two programs store into one element"),
        ((store(0), load(1)), "a program loads what another stores"),
        ((load(1), store(0)), "a program stores what another loads"),
        ((load(0), load(1), store(0)), "a program stores what another loads"),
        ((store(0, np.array([1, 2, 1, 3])),), "two lanes store into one element"),
        ((store(0), load(0), store(0)), ""),
        ((load(0), load(1)), ""),
        ((store(0), store(1, AT + 4), load(0)), ""),
    ],
)
def test_programs_that_race_are_none(accesses: tuple[tuple[str, int, Array], ...], message: str) -> None:
    found = state()

    def run() -> None:
        for what, program, at in accesses:
            if what == "store":
                found.store(at, ALL, tile(1, 2, 3, 4), program)  # type: ignore[arg-type]
            else:
                found.load(at, ALL, 0, program)

    if message:
        with pytest.raises(IllConditioned, match=message):
            run()
    else:
        run()


def test_lanes_that_store_the_same_may_meet() -> None:
    found = state()
    found.store(np.array([5, 5, 6, 6]), ALL, tile(1, 1, 2, 2), 0)  # type: ignore[arg-type]
    assert found.values == {5: 1, 6: 2}


def test_atomic_operations_meet_and_nothing_else_does() -> None:
    found = state("add")
    found.combine(np.array([0, 0, 1, 1]), ALL, tile(1, 2, 3, 2**31 - 1), "add")  # type: ignore[arg-type]
    own = content(I32, 2, "index", 7)
    assert found.values[0] == own[0] + 3
    assert found.values[1] == int(own[1]) + 2 - 2**31
    for wrong in (lambda: found.load(AT, ALL, 0, 0), lambda: found.store(AT, ALL, tile(1, 2, 3, 4), 0)):  # type: ignore[arg-type]
        with pytest.raises(IllConditioned):
            wrong()
    with pytest.raises(IllConditioned):
        found.combine(AT, ALL, tile(1, 2, 3, 4), "max")  # type: ignore[arg-type]


def test_what_is_far_apart_is_no_region() -> None:
    with pytest.raises(IllConditioned, match="too far apart"):
        state().load(np.array([0, MOST_SPAN]), np.ones(2, bool), 0, 0)
    assert state().load(np.array([0, MOST_SPAN]), np.array([True, False]), 0, 0).value.shape == (2,)


def test_elements_that_a_region_lacks_are_not_touched() -> None:
    found = State(Region(0, "i32", "index", 7, low=1, size=2))
    found.load(AT, np.array([False, True, True, False]), 0, 0)
    initial, _, _ = found.final()
    assert initial.tolist() == content(I32, 3, "index", 7)[1:].tolist()
    found.load(AT, ALL, 0, 0)
    with pytest.raises(IllConditioned, match="does not have"):
        found.final()


def program(
    *body: Statement, low: int = 0, size: int = 1, origin: str = "literal", place: str = "zones"
) -> Program:
    """Loads elements from -2 on of a region that programs store to, too."""
    index = (
        Let((0,), "tl.arange", (), {"start": 0, "size": 4}),
        Let((1,), "literal", (0,), {"symbol": "-", "literal": 2}),
        Let((2,), "address", (1,), {"region": 0, "kind": "i32", "second": False}),
    )
    region = Region(0, "i32", "index", 7, "store", origin, low, size)
    return Program((*index, *body), warps=2, regions=(region,), place=place)


LOADED = (Fetch(3, 2), Put(2, 0), Store(0, 3, None, (4,)))


def test_regions_are_fitted_to_what_is_touched() -> None:
    found = fitted(program(*LOADED))
    assert (found.regions[0].low, found.regions[0].size) == (-2, 4)
    outputs = expected(found)
    assert [*outputs] == ["O0", "A0"]
    assert outputs["O0"].values.tolist() == content_at(I32, np.arange(-2, 2), "index", 7).tolist()
    assert outputs["A0"].values.tolist() == [0, 1, 2, 3]
    with pytest.raises(IllConditioned):
        expected(program(*LOADED))


def test_kernels_find_element_0_by_a_literal_or_an_argument() -> None:
    literal = Launch.of(fitted(program(*LOADED)))
    assert "    A0 = A0 + 2\n" in literal.source
    argument = Launch.of(fitted(program(*LOADED, origin="argument")))
    assert "    A0 = A0 + nA0\n" in argument.source
    assert [p.value for p in argument.parameters] == [2]


@pytest.mark.parametrize("warps", [1, 2])
def test_threads_wait_where_one_may_load_what_another_stores(warps: int) -> None:
    loaded, stored = (replace(program(*body), warps=warps) for body in (LOADED, (Put(2, 0),)))
    assert Launch.of(fitted(loaded)).source.count("tl.debug_barrier()") == 2
    assert "debug_barrier" not in Launch.of(fitted(stored)).source


def test_an_array_given_twice_is_one_array() -> None:
    second = Let((4,), "address", (0,), {"region": 0, "kind": "i32", "second": True})
    launch = Launch.of(fitted(program(Put(2, 0), second, Fetch(3, 4), Store(0, 3, None, (4,)))))
    assert launch.source.startswith("def kernel(O0, A0, B0):")
    assert launch.again == (1,)


NUMBERS = tuple(
    Let((value,), "tl.full", (), {"kind": "i32", "shape": (), "value": number})
    for value, number in ((4, 0), (5, 2), (6, 4), (7, 1), (8, 2))
)
DESCRIBED = (
    *NUMBERS,
    Let((9,), "address", (4,), {"region": 0, "kind": "i32", "second": False}),
    Let((10,), "tl.make_tensor_descriptor", (9, 5, 6, 7, 8), {"shape": (2, 4), "strides": (8, 1)}),
)
"""The block at row 1 and column 2 of a tensor of two rows of four elements, which lie eight apart."""


def test_a_block_of_a_tensor_descriptor() -> None:
    launch = Launch.of(fitted(program(*DESCRIBED, Fetch(11, 10), Store(0, 11, None, (2, 4)), Put(10, 11))))
    assert "v10 = tl.make_tensor_descriptor(v9, [v5, v6], [8, 1], [2, 4])" in launch.source
    assert "v11 = v10.load([v7, v8])" in launch.source
    assert "v10.store([v7, v8], v11)" in launch.source
    loaded, tensor = launch.outputs
    own = content(I32, 16, "index", 7)
    assert loaded.values.tolist() == [own[10], own[11], *[0] * 6]
    assert tensor.values.tolist() == own.tolist()


def test_a_descriptor_stores_no_part_of_16_bytes() -> None:
    odd = tuple(replace(s, attrs={**s.attrs, "value": 3}) if s.outs == (6,) else s for s in DESCRIBED)
    fitted(program(*odd, Fetch(11, 10), Store(0, 11, None, (2, 4))))
    with pytest.raises(IllConditioned, match="part of 16 bytes"):
        fitted(program(*odd, Fetch(11, 10), Put(10, 11)))


@pytest.mark.parametrize(
    "body",
    [
        (*DESCRIBED, Fetch(11, 10, None, 1)),
        (*DESCRIBED, Put(10, 0)),
        (*DESCRIBED, Let((11,), "advance", (10, 4), {})),
        (*DESCRIBED[:-1], replace(DESCRIBED[-1], attrs={"shape": (2, 4), "strides": (5, 1)})),
        (*DESCRIBED[:-1], replace(DESCRIBED[-1], attrs={"shape": (2, 4), "strides": (8, 2)})),
        (*DESCRIBED[:-1], replace(DESCRIBED[-1], attrs={"shape": (4, 2), "strides": (8, 1)})),
        (Fetch(3, 0),),
        (Put(2, 2),),
        (Put(2, 0, 0),),
        (Put(2, 0, None, "sub"),),
        (Let((3,), "tl.arange", (), {"start": 0, "size": 8}), Put(2, 3)),
    ],
)
def test_what_does_not_fit_is_no_program(body: tuple[Statement, ...]) -> None:
    with pytest.raises(Malformed):
        expected(program(*body, low=-2, size=4))


def test_elements_that_are_stored_again_are_known() -> None:
    """Between such stores, threads need a barrier."""
    found = state()
    found.store(AT, ALL, tile(1, 2, 3, 4), 0)  # type: ignore[arg-type]
    assert not found.fitted().rewritten
    found.store(AT + 3, ALL, tile(1, 2, 3, 4), 0)  # type: ignore[arg-type]
    assert found.fitted().rewritten


def test_what_a_descriptor_begins_at_is_aligned() -> None:
    found = state()
    found.load(AT + 30, ALL, 0, 0)
    found.described = True
    assert found.fitted() == Region(0, "i32", "index", 7, "store", low=0, size=48, described=True)
    found.load(AT - 1, ALL, 0, 0)
    with pytest.raises(IllConditioned, match="before a tensor descriptor's"):
        found.fitted()

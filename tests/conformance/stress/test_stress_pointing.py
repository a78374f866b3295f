"""Pointers as values, tiles that loads give elsewhere, and loops between numbers of run time: typed, computed, written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from triton_porting_kit.conformance.stress.draws import content_at
from triton_porting_kit.conformance.stress.oracle import expected, fitted
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Branch,
    Carried,
    Fetch,
    IllConditioned,
    Let,
    Loop,
    Malformed,
    Merged,
    Program,
    Region,
    Statement,
    Store,
)
from triton_porting_kit.conformance.stress.reductions import candidates
from triton_porting_kit.conformance.stress.source import source_of
from triton_porting_kit.conformance.types import KINDS, Array

REGIONS = (Region(0, "i32", "distinct", 7), Region(1, "i32", "distinct", 8))


def elements(region: int, at: Any) -> Array:
    return content_at(KINDS["i32"], np.asarray(at), "distinct", REGIONS[region].seed)


def let(out: int, op: str, *args: int, **attrs: Any) -> Let:
    return Let((out,), op, args, attrs)


def number(out: int, value: int, kind: str = "i32") -> Let:
    return let(out, "argument", kind=kind, value=value)


def address(out: int, index: int, region: int) -> Let:
    return let(out, "address", index, region=region, kind="i32", second=False)


def results(*body: Statement) -> list[list[int]]:
    """What every output holds, one after the other."""
    outputs = expected(fitted(Program(body, regions=REGIONS)))
    return [output.values.tolist() for name, output in outputs.items() if name[0] == "O"]


LINE = let(0, "tl.arange", start=0, size=8)
I = np.arange(8)


@pytest.mark.parametrize("taken", [False, True])
def test_pointers_that_an_if_chooses(taken: bool) -> None:
    found = results(
        LINE,
        number(1, 3 if taken else 2),
        let(2, "limit", 1, symbol=">", literal=2),
        Branch(2, (address(3, 0, 0),), (address(4, 0, 1),), (Merged(5, 3, 4),)),
        Fetch(6, 5),
        Store(0, 6, None, (8,)),
    )
    assert found == [elements(0 if taken else 1, I).tolist()]


def test_pointers_that_lanes_choose() -> None:
    found = results(
        LINE,
        let(1, "literal", 0, symbol="+", literal=3),
        let(2, "limit", 0, symbol="<", literal=3),
        address(3, 0, 0),
        address(4, 1, 1),
        let(5, "tl.where", 2, 3, 4),
        Fetch(6, 5),
        Store(0, 6, None, (8,)),
    )
    assert found == [np.where(I < 3, elements(0, I), elements(1, I + 3)).tolist()]


MOVED: dict[str, tuple[Let, Array]] = {
    "reshaped": (let(3, "tl.reshape", 2, shape=(4, 2)), I.reshape(4, 2)),
    "broadcast": (let(3, "tl.broadcast_to", 1, shape=(8, 2)), np.stack([I, I], 1)),
    "permuted": (let(3, "tl.permute", 2, order=(1, 0)), I.reshape(2, 4).T),
    "joined": (let(3, "tl.join", 2, 2), np.stack([I.reshape(2, 4)] * 2, -1)),
}


@pytest.mark.parametrize("name", MOVED)
def test_pointers_are_rearranged_as_numbers_are(name: str) -> None:
    move, at = MOVED[name]
    body = (
        LINE,
        address(4, 0, 0),
        let(1, "[:, None]", 4, axis=1),
        let(2, "tl.reshape", 4, shape=(2, 4)),
        move,
        Fetch(5, 3),
        Store(0, 5, None, at.shape),
    )
    assert results(*body) == [elements(0, at).ravel().tolist()]


@pytest.mark.parametrize("rows", [False, True])
def test_a_tile_elsewhere(rows: bool) -> None:
    body = (
        LINE,
        let(1, "tl.reshape", 0, shape=(2, 4)),
        address(2, 1, 0),
        let(3, "limit", 1, symbol="<", literal=3),
        let(4, "tl.arange", start=5, size=4),
        let(5, "[:, None]", 4, axis=0),
        Fetch(6, 2, 3, 0, 5 if rows else 1),
        Store(0, 6, None, (2, 4)),
    )
    at = I.reshape(2, 4)
    assert results(*body) == [
        np.where(at < 3, elements(0, at), [5, 6, 7, 8] if rows else at).ravel().tolist()
    ]
    assert f"mask=v3, other=v{5 if rows else 1})" in source_of(fitted(Program(body, regions=REGIONS)))
    with pytest.raises(Malformed):  # Triton wants a mask with it
        results(*body[:-2], Fetch(6, 2, None, 0, 5), body[-1])


def loop(
    start: int, end: int, step: int, runs: bool, kind: str = "i32", most: int = 8
) -> tuple[Statement, ...]:
    """Stores the weighted sum of the counters, and how many there were."""
    inner = (let(8, "literal", 6, symbol="*", literal=3), let(9, "+", 8, 5))
    carried = (Carried(6, 4, 9),)
    head = (number(1, start, kind), number(2, end, kind), number(3, step, kind), number(4, 0, kind))
    return (
        *head,
        Loop(5, BETWEEN, most, 2, carried, inner, 1, 3 if runs else None, 1 if runs else step),
        Store(0, 6),
    )


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 5, 1), (-7, 9, 3), (-7, -1, 2), (5, 2, 1), (4, 4, 1), (3, 4, 100), (-(2**31), 2**30, 2**30)],
)
@pytest.mark.parametrize("way", ["run time", "literal", "down"])
def test_loops_between_numbers_count_as_ranges_do(
    start: int, end: int, step: int, way: str, kind: str
) -> None:
    if way == "down":
        start, end, step = -start - 1, -end - 1, -step
    total = 0
    for counter in range(start, end, step):
        total = (total * 3 + counter + 2**63) % 2**64 - 2**63
    wrapped = total if kind == "i64" else (total + 2**31) % 2**32 - 2**31
    body = loop(start, end, step, way == "run time", kind)
    assert results(*body) == [[wrapped]]
    text = "v3" if way == "run time" else str(step)
    assert f"for v5 in range(v1, v2, {text}):" in source_of(Program(body))


@pytest.mark.parametrize(
    ("start", "end", "step", "message"),
    [
        (0, 5, 0, "not above zero"),
        (5, 0, -1, "not above zero"),
        (0, 9, 1, "too many iterations"),
        (2**31 - 6, 2**31 - 1, 3, "wraps around"),
    ],
)
def test_loops_that_are_not_defined(start: int, end: int, step: int, message: str) -> None:
    with pytest.raises(IllConditioned, match=message):
        results(*loop(start, end, step, runs=True))


@pytest.mark.parametrize("casts", [(), ("i32",), ("i32", "i32"), ("u32", "i32"), ("i64", "i32")], ids=str)
@pytest.mark.parametrize("same", [False, True])
def test_a_loop_carries_one_value_over_into_another(same: bool, casts: tuple[str, ...]) -> None:
    """If both start as the same value, Triton's front end takes the second for constant: not generated."""
    values = [4, *range(7, 7 + len(casts))]
    inner = (
        let(6, "literal", 4, symbol="+", literal=1),
        *(let(values[k + 1], "cast", values[k], to=to) for k, to in enumerate(casts)),
    )
    carried = (Carried(4, 1, 6), Carried(5, 1 if same else 2, values[-1]))
    body = (number(1, 5), number(2, 9), Loop(3, "range", 2, None, carried, inner), Store(0, 5))
    if not same or {"u32", "i64"} & {*casts}:
        assert results(*body) == [[6]]
    else:
        with pytest.raises(IllConditioned, match="starts equal to it"):
            results(*body)


@pytest.mark.parametrize(
    ("copies", "copied"),
    [
        (Loop(10, "range", 1, None, (Carried(8, 4, 8),), ()), True),
        (Loop(10, "range", 0, None, (Carried(8, 4, 6),), ()), True),
        (Loop(10, "range", 1, None, (Carried(8, 4, 6),), ()), False),
        (Branch(7, (), (), (Merged(8, 4, 4),)), True),
        (Branch(7, (), (), (Merged(8, 4, 6),)), False),
    ],
    ids=["carried unchanged", "no iteration", "changed", "both branches", "one branch"],
)
def test_a_copy_is_carried_over_into_another_value(copies: Loop | Branch, copied: bool) -> None:
    """Triton's front end also sees the copy that loops and branches make."""
    inner = (
        let(6, "literal", 4, symbol="+", literal=1),
        let(7, "compare !=", 6, 6),
        copies,
    )
    carried = (Carried(4, 1, 6), Carried(5, 1, 8))
    body = (number(1, 5), Loop(3, "range", 2, None, carried, inner), Store(0, 5))
    if copied:
        with pytest.raises(IllConditioned, match="starts equal to it"):
            results(*body)
    else:
        assert results(*body) == [[7]]


def test_loops_between_numbers_of_two_types_are_none() -> None:
    head, body = loop(0, 3, 1, runs=True), number(1, 0, "i64")
    with pytest.raises(Malformed):
        results(body, *head[1:])
    with pytest.raises(Malformed):
        results(*head[:4], replace(head[4], start=None), *head[5:])  # type: ignore[type-var]


def test_programs_with_pointers_become_smaller() -> None:
    """What makes pointers of pointers gives way, and so do steps, starts and tiles elsewhere."""
    program = fitted(
        Program(
            (
                LINE,
                address(1, 0, 0),
                let(2, "tl.reshape", 1, shape=(2, 4)),
                let(3, "tl.permute", 2, order=(1, 0)),
                let(4, "tl.full", kind="i1", shape=(4, 2), value=1),
                let(5, "tl.full", kind="i32", shape=(4, 2), value=3),
                Fetch(6, 3, 4, 0, 5),
                Store(0, 6, None, (4, 2)),
            ),
            regions=REGIONS[:1],
        )
    )
    found = [source_of(candidate) for candidate in candidates(program)]
    assert any("reshape" not in text and "permute" not in text and "tl.load" in text for text in found)
    assert any("other=0" in text for text in found)
    counted = [source_of(candidate) for candidate in candidates(Program(loop(-3, 4, 2, runs=True)))]
    assert any("range(v1, v2, 1)" in text for text in counted)
    assert any("in range(2):" in text for text in counted)

"""What happens while programs run: found where it happens, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from triton_porting_kit.conformance.stress.features import features
from triton_porting_kit.conformance.stress.happenings import happenings
from triton_porting_kit.conformance.stress.oracle import fitted
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Branch,
    Fetch,
    Let,
    Loop,
    Merged,
    Program,
    Region,
    Store,
)


def let(out: int, op: str, *args: int, **attrs: Any) -> Let:
    return Let((out,), op, args, attrs)


LINE = let(0, "tl.arange", start=0, size=8)
REGION = Region(0, "fp32", "small", 7)
U32 = let(1, "cast", 0, to="u32")
I64 = let(1, "cast", 0, to="i64")


def literal(out: int, value: int, symbol: str, number: int) -> Let:
    return let(out, "literal", value, symbol=symbol, literal=number)


def address(index: int) -> Let:
    return let(9, "address", index, region=0, kind="fp32", second=False)


MARKS: dict[str, tuple[tuple[Let, ...], set[str]]] = {
    "a product": ((literal(1, 0, "*", 2**28),), set()),
    "a large product": ((literal(1, 0, "*", 2**29),), {"a product that leaves 32 bits"}),
    "a large product of 64 bits": ((I64, literal(2, 1, "*", 2**62)), {"a product that leaves 64 bits"}),
    "a sum": ((literal(1, 0, "+", 2**31 - 8),), set()),
    "a large sum": ((literal(1, 0, "+", 2**31 - 7),), {"a sum that leaves 32 bits"}),
    "a difference without signs": ((U32, literal(2, 1, "-", 1)), {"a sum that leaves 32 bits"}),
    "a comparison": ((let(1, "limit", 0, symbol="<", literal=4),), set()),
    "a comparison with -1": (
        (let(1, "limit", 0, symbol="<", literal=-1),),
        {"a comparison of negative numbers"},
    ),
    "a comparison without signs": ((U32, let(2, "limit", 1, symbol="<", literal=4)), set()),
    "the same with more": (
        (U32, let(2, "limit", 1, symbol="<", literal=2**31)),
        {"an unsigned comparison above the signed range"},
    ),
    "an address": ((literal(1, 0, "+", 2**29 - 8), address(1)), set()),
    "a far address": ((literal(1, 0, "+", 2**29), address(1)), {"an i32 whose bytes are 2**31 and more"}),
    "an address without a sign": ((U32, literal(2, 1, "+", 2**31), address(2)), {"a u32 of 2**31 and more"}),
    "an address of 64 bits": ((I64, literal(2, 1, "-", 2**31), address(2)), {"an i64 of 2**31 and more"}),
}


@pytest.mark.parametrize("name", MARKS)
def test_marks(name: str) -> None:
    body, wanted = MARKS[name]
    found = happenings(Program((LINE, *body), regions=(REGION,)))
    assert found.marks.get(body[-1].outs[0], set()) == wanted
    assert found.wrapped == set()


@pytest.mark.parametrize(("period", "wraps"), [(7, True), (8, False), (9, False), (1, True)])
def test_remainders_that_begin_again(period: int, wraps: bool) -> None:
    number = let(1, "argument", kind="i32", value=period)
    program = Program((LINE, number, let(2, "plain %", 0, 1), literal(3, 0, "%", period)))
    assert happenings(program).wrapped == ({2, 3} if wraps else set())


def test_sums_of_which_one_term_wraps_around() -> None:
    def found(*periods: int) -> set[str]:
        rests = [literal(2 + k, 0, "%", period) for k, period in enumerate(periods)]
        body = (LINE, *rests, let(8, "+", 2, 3), let(9, "address", 8, region=0, kind="fp32", second=False))
        program = fitted(Program((*body, Fetch(10, 9), Store(0, 10, None, (8,))), regions=(REGION,)))
        return {name for name in features(program) if "term" in name}

    assert found(8, 8) == set()
    assert found(7, 8) == found(8, 5) == {"an address by a sum of which one term wraps around"}
    assert found(7, 5) == {"an address by a sum of which both terms wrap around"}


@pytest.mark.parametrize(("value", "which"), [(0, "second"), (1, "first")])
def test_which_pointer_an_if_chooses(value: int, which: str) -> None:
    condition = let(1, "tl.full", kind="i1", shape=(), value=value)
    places = [let(k, "address", 0, region=0, kind="fp32", second=k == 3) for k in (2, 3)]
    branch = Branch(1, (places[0],), (places[1],), (Merged(4, 2, 3),))
    program = Program((LINE, condition, branch), regions=(REGION,))
    assert happenings(program).found == {f"an if that chooses the {which} pointer"}


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, 3, set()),
        (-1, 3, {"a counter below zero"}),
        (3, 0, {"a loop without iterations"}),
        (-(2**30), 2**30, {"a counter below zero", "a for loop over a distance of 2**31"}),
    ],
)
def test_loops(start: int, end: int, found: set[str]) -> None:
    numbers = [
        let(k, "argument", kind="i32", value=v)
        for k, v in ((1, start), (2, end), (3, 2**29 if end > 9 else 1))
    ]
    body = (*numbers, Loop(4, BETWEEN, 8, 2, (), (), 1, 3))
    assert happenings(Program(body)).found == found

"""Random programs: what they are made of, and that a seed always makes the same one."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from stress_helpers import constructs_of, made

from triton_porting_kit.conformance.stress.checks import check_of
from triton_porting_kit.conformance.stress.draws import Draws, content, content_at
from triton_porting_kit.conformance.stress.generator import ADDRESSES, FAMILIES, PRODUCTS, ROWS, generate
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import EVERY, INTEGERS, NUMBERS
from triton_porting_kit.conformance.stress.oracle import expected
from triton_porting_kit.conformance.stress.program import (
    PLACES,
    STYLES,
    Fetch,
    Let,
    Program,
    Region,
    Store,
    size_of,
    walk,
)
from triton_porting_kit.conformance.stress.source import parameters, source_of
from triton_porting_kit.conformance.stress.typing import ATOMICS, types_of
from triton_porting_kit.conformance.types import KINDS

pytestmark = pytest.mark.xdist_group("stress-generator")  # the programs are shared

PROGRAMS = {0: 400, ADDRESSES: 800, PRODUCTS: 300, ROWS: 150}
"""Seeds from where on, and how many."""
DIGESTS = {
    0: "400cd8668496345b", ADDRESSES: "e45fa3d84233fceb", PRODUCTS: "ad455664a9677bad", ROWS: "3b1ac0db89df7c27",
}  # fmt: skip
"""Of the sources of the first programs: the same with every Python, NumPy and Triton. A change of the generator
changes it; seeds in reports then stand for other programs."""

WANTED = {
    *OPERATIONS,
    *(f"type {kind}" for kind in EVERY),
    *(f"cast from {kind}" for kind in EVERY),
    *(f"cast to {kind}" for kind in NUMBERS),
    *(f"rank {rank}" for rank in range(4)),
    *(f"grid of {rank} dimensions" for rank in (1, 2, 3)),
    *(f"load of rank {rank}" for rank in (1, 2, 3)),
    *(f"load of {kind}" for kind in EVERY),
    "load of odd extents", "load with a mask of values", "load with gaps", "load backwards", "load that repeats",
    "load transposed", "load gathered", "load gathered with a mask", "load of a scalar",
    *(f"store {form}" for form in ("plain", "spaced", "permuted", "reversed")),
    "store of part of a tile", "store with a mask of values",
    *(f"atomic {kind}" for kind in ATOMICS), "atomic with a mask",
    *(f"loop {style}" for style in STYLES), *(f"loop that carries {n}" for n in (1, 2, 3)), "nested body",
    "branch with results", "branch without results", "operands that broadcast", "reduction of all", "scan in reverse",
    *(f"dot of {kind}" for kind in ("i8", "fp16", "bf16", "fp32")), "dot of rank 2", "dot of rank 3",
    "dot with an accumulator",
    *(f"fetch of {kind}" for kind in EVERY), "fetch with a mask", "fetch of nothing elsewhere", "put with a mask",
    *(f"put {kind}" for kind in ("store", *ATOMICS)), *(f"arrays in {place}" for place in PLACES),
    "second argument", "region that starts by literal", "region that starts by argument", "step back", "step forward",
    *(f"address of {kind}" for kind in ("i32", "i64", "u8", "u16")),
    *(f"{what} by a {form} by {number}" for what in ("an address", "a mask") for form in ("remainder", "quotient")
        for number in ("a literal", "a number of run time")),
    *(f"{what} by {source}" for what in ("an address", "a mask")
        for source in ("loaded data", "an exclusive or", "an or", "a counter", "narrow unsigned arithmetic",
            "a number beyond 32 bits of run time")),
    "an address by a choice", "an address by a pointer moved by a number of run time", "a mask by a complement",
    "three loads of which each depends on the one before", "one value in an address, in a mask and stored",
    *(f"the number {number} of run time" for number in ("-2**31", "2**31 - 1", "0", "-1")),
    *(f"a {what} in {where}" for what in ("load", "store") for where in ("a for", "a while", "an if")),
    "a pointer carried by a loop", "a pointer carried forward", "a pointer carried back", "a tile carried by a loop",
    "an atomic operation", "a store to computed places", "an array given twice", "several programs",
    *(f"a tile of one {what}" for what in ("element", "row", "column")),
    *(f"a {what} in {where}" for what in ("division", "product of matrices") for where in ("a for", "a while")),
    "a division in an if", "a loop without iterations", "a loop that is unrolled often", "one element for many lanes",
    "a value of which much is computed", "loop between", "fetch of a tile elsewhere",
    *(f"{what} by {source}" for what in ("an address", "a mask")
        for source in ("an and", "wide unsigned arithmetic", "a stride of run time", "a start of run time",
            "a product that leaves 32 bits", "a sum that leaves 32 bits", "a product that leaves 64 bits",
            "a difference of large strides", "a stride beyond 32 bits", "a sum of which one term wraps around",
            "a sum of which both terms wrap around")),
    *(f"a mask by {source}" for source in ("a stride, a start and an end of run time",
        "a comparison of negative numbers", "an unsigned comparison above the signed range")),
    *(f"an address by {offset} of 2**31 and more" for offset in ("a u32", "an i64")),
    "an address by an i32 whose bytes are 2**31 and more",
    *(f"an address by a pointer that {what}" for what in ("an if chooses", "lanes choose", "was reshaped",
        "was permuted", "was given a dimension", "was broadcast", "was joined", "was split")),
    *(f"an if that chooses the {which} pointer" for which in ("first", "second")), "a load from two arrays",
    *(f"{what} elsewhere" for what in ("a tile", "a row or column", "a scalar")), "the number 1 of run time",
    "a for between numbers of run time", "a for in steps of run time", "a for that counts down",
    "a for that counts in 64 bits", "a counter below zero", "pointers exchanged by a loop",
    "an array loaded by one argument and stored by the other",
}  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [made(begin + number) for begin, count in PROGRAMS.items() for number in range(count)]


def test_every_construct_occurs(programs: list[Program]) -> None:
    found = Counter(name for program in programs for name in constructs_of(program.seed))
    assert {name: found[name] for name in WANTED if found[name] < 3} == {}
    sizes = [size_of(program) for program in programs]
    assert 15 <= sum(sizes) / len(sizes) <= 60


def test_some_programs_fit_chips_with_few_types(programs: list[Program]) -> None:
    small = [p for p in programs if {t.kind_name for t in types_of(p).values()} <= {"i1", "i32", "fp32"}]
    assert len(small) >= len(programs) // 20
    assert check_of(small[0].seed, "stress/programs/00000").needs <= {
        *("type:i1", "type:i32", "type:fp32", "atomic:i32", "feature:atomics", "feature:dot")
    }


def test_most_results_are_exact(programs: list[Program]) -> None:
    """Bounds are for what is rounded; the rest is compared bit by bit."""
    floats = [o for p in programs[:100] for o in expected(p).values() if o.kind.is_float]
    exact = sum(int((o.errors == 0).sum()) for o in floats)
    total = sum(o.errors.size for o in floats)
    assert 0.5 < exact / total < 0.95


@pytest.mark.parametrize("begin", DIGESTS)
def test_a_seed_makes_the_same_program_everywhere(begin: int) -> None:
    text = "".join(source_of(generate(begin + number)) for number in range(40))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[begin]


def literals(program: Program) -> Iterator[tuple[int, str]]:
    """The integers that a kernel's text or its launch gives types to, and these types."""
    types = types_of(program)
    for statement in walk(program.body):
        value, literal = None, None
        if isinstance(statement, Let) and "literal" in statement.attrs:
            value, literal = statement.args[0], statement.attrs["literal"]
        elif isinstance(statement, Fetch):
            value, literal = statement.out, statement.other
        if value is not None and literal is not None and types[value].kind_name in INTEGERS:
            yield literal, types[value].kind_name
    for number, bits in re.findall(r"tl\.full\(\(\), (-?\d+), tl\.int(\d+)\)", source_of(program)):
        yield int(number), f"i{bits}"
    yield from ((p.value, p.kind) for p in parameters(program) if isinstance(p.value, int))


FAR = 500_841
"""A program with a region that starts at -2**63, whose negative i64 does not have."""


def test_every_literal_is_a_number_of_its_type(programs: list[Program]) -> None:
    found = [pair for program in programs for pair in literals(program)]
    far = [*literals(generate(FAR))]
    assert (-(2**63), "i64") in far
    assert {kind for _, kind in found} >= {"i32", "i64", "u8"}
    outside = [(n, k) for n, k in (*found, *far) if not KINDS[k].lowest <= n <= KINDS[k].highest]
    assert outside == []


@pytest.mark.parametrize("origin", ["literal", "argument"])
def test_where_a_region_of_the_lowest_addresses_begins(origin: str) -> None:
    """2**63 elements on is where as many back is."""
    region = Region(0, "i32", "small", 1, origin=origin, low=-(2**63))
    index, pointer, loaded = 0, 1, 2
    body = (
        Let((index,), "argument", (), {"kind": "i64", "value": -(2**63)}),
        Let((pointer,), "address", (index,), {"region": 0, "kind": "i32", "second": False}),
        Fetch(loaded, pointer),
        Store(0, loaded),
    )
    program = Program(body, regions=(region,))
    assert {n for n, _ in literals(program)} == {-(2**63), 0}
    assert expected(program)["O0"].values == content_at(KINDS["i32"], np.array(-(2**63)), "small", 1)


def test_programs_do_not_depend_on_hashes_of_the_process() -> None:
    script = (
        "from triton_porting_kit.conformance.stress.generator import FAMILIES, generate\n"
        "from triton_porting_kit.conformance.stress.source import source_of\n"
        "print(''.join(source_of(generate(seed)) for seed in (f + k for f in FAMILIES.values() for k in range(8))), end='')"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {
        "".join(
            source_of(generate(seed)) for seed in (f + k for f in FAMILIES.values() for k in range(8))
        ).encode()
    }


def test_draws_are_those_of_the_random_stream() -> None:
    draws = Draws(7)
    assert [draws.below(100) for _ in range(5)] == [32, 15, 65, 7, 53]
    assert sorted(draws.permutation(5)) == list(range(5))


@pytest.mark.parametrize("kind", [KINDS[name] for name in EVERY], ids=str)
@pytest.mark.parametrize("flavour", ["edges", "full", "small", "whole", "ones", "zeros"])
def test_content_is_of_the_type(kind: object, flavour: str) -> None:
    assert hasattr(kind, "host")
    values = content(kind, 100, flavour, 5)  # type: ignore[arg-type]
    assert values.dtype == kind.host
    again = content(kind, 100, flavour, 5)  # type: ignore[arg-type]
    assert (values == again).all()
    if flavour in ("edges", "full", "small"):
        assert (values != content(kind, 100, flavour, 6)).any()  # type: ignore[arg-type]

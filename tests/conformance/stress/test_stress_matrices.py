"""Random programs about matrix products: what they are made of."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest
from stress_helpers import choices, constructs_of, made

from triton_porting_kit.conformance.language.products import CHECKS
from triton_porting_kit.conformance.stress.features import covering, pairs_of
from triton_porting_kit.conformance.stress.generator import PRODUCTS, generate
from triton_porting_kit.conformance.stress.matrices import endings, factors, programs, sums
from triton_porting_kit.conformance.stress.program import WRITES, Let, Loop, Program, walk
from triton_porting_kit.conformance.stress.typing import types_of

pytestmark = pytest.mark.xdist_group("stress-generator")  # the programs are shared

WANTED = {
    *(f"dot of {kind}" for kind in ("i8", "fp16", "bf16", "fp32")), "dot with an accumulator",
    *(f"loop {style}" for style in ("argument", "between", "range", "static", "while")),
    *(f"loop that carries {n}" for n in (1, 2, 3, 4, 5)), "nested body", "branch with results",
    "a pointer carried by a loop", "a pointer carried forward", "a for in steps of run time",
    "a loop without iterations", "a product of matrices in a for", "a product of matrices in a while",
    "a product of matrices in an if", "a division in a for", "a store in a for", "an address by loaded data",
    "an address by a remainder by a number of run time", "an address by a counter", "a mask by a counter",
    "several programs", "an atomic operation",
    "tl.trans", "tl.reshape", "tl.cumsum", "tl.flip", "tl.max", "tl.sum", "tl.where", "tl.exp2", "put store", "put add",
    "store plain", "fetch with a mask", "small tiles", "large tiles", "dot of rank 2", "dot of rank 3", ">>",
    "tl.make_tensor_descriptor",
    *(f"cast from {kind}" for kind in ("i8", "i32", "fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")),
    *(f"scaled factors of {kind}" for kind in ("u8", "fp8e4nv", "fp8e5")),
    *(f"region that starts by {origin}" for origin in ("literal", "argument")),
    *(f"arrays in {place}" for place in ("zones", "end", "start")),
}  # fmt: skip


@pytest.fixture(scope="module")
def some() -> list[Program]:
    return [made(PRODUCTS + number) for number in range(300)]


def test_every_construct_occurs(some: list[Program]) -> None:
    found = Counter(name for program in some for name in constructs_of(program.seed))
    assert {name: found[name] for name in WANTED if found[name] < 3} == {}


def test_every_program_multiplies_in_a_loop_and_stores(some: list[Program]) -> None:
    for program in some:
        loops = [s for s in walk(program.body) if isinstance(s, Loop)]
        assert any(isinstance(s, Let) and s.op == "tl.dot" for loop in loops for s in walk(loop.body)), (
            program.seed
        )
        assert any(isinstance(s, WRITES) for s in walk(program.body))


TABLES = [
    pytest.param(module, name, entry, id=f"{name}-{number}")
    for module, name in ((factors, "CHANGES"), (programs, "WAYS"), (programs, "BESIDE"), (endings, "ENDINGS"))
    for number, entry in enumerate(getattr(module, name))
]


@pytest.mark.parametrize(("module", "name", "entry"), TABLES)
def test_every_entry_of_a_table_gives_programs(
    module: ModuleType, name: str, entry: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing else in its table; a table whose entries never worked would loop for ever."""
    assert getattr(sums, name, getattr(module, name)) == getattr(module, name)
    monkeypatch.setattr(module, name, (entry,))
    monkeypatch.setattr(programs, "BESIDES", ((1, 1.0),))
    for seed in range(4):
        assert types_of(generate(PRODUCTS + 1000 + seed))


LEAST = 10


def small(programs: list[Program]) -> list[Program]:
    """Those of small tiles: larger ones do not fit every chip, and take long to compile for some."""
    return [p for p in programs if "small tiles" in constructs_of(p.seed)]


def uncovered(programs: list[Program]) -> set[tuple[str, str]]:
    """Pairs of choices that several programs have, but none of the fixed ones."""
    common = {pair for pair, count in pairs_of(programs, choices).items() if count >= LEAST}
    return common - pairs_of(map(made, CHECKS.seeds), choices).keys()


def test_the_fixed_programs_have_all_pairs(some: list[Program]) -> None:
    assert uncovered(small(some)) == set()


@pytest.mark.slow  # makes 600 programs
def test_the_fixed_programs_have_all_pairs_of_many_programs() -> None:
    """After a change of the generator take others."""
    programs = small([made(PRODUCTS + number) for number in range(600)])
    missing = uncovered(programs)
    found = covering(programs, LEAST, features=choices) if missing else []
    assert not missing, f"take {[p.seed - PRODUCTS for p in found]} for NUMBERS"

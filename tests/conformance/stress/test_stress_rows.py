"""Random programs about rows: what they are made of."""

from __future__ import annotations

from collections import Counter

import pytest
from stress_helpers import constructs_of, made

from triton_porting_kit.conformance.stress.generator import ROWS, generate
from triton_porting_kit.conformance.stress.program import WRITES, Program, walk
from triton_porting_kit.conformance.stress.rows import passes
from triton_porting_kit.conformance.stress.typing import types_of

pytestmark = pytest.mark.xdist_group("stress-generator")  # the programs are shared

WANTED = {
    *(f"loop {style}" for style in ("argument", "between", "range", "while")), "nested body",
    *(f"a {what} in {where}" for what in ("load", "store") for where in ("a for", "a while")),
    "an array loaded by one argument and stored by the other", "an array given twice", "a tile carried by a loop",
    "a tile of one column", "several programs", "an address by a counter",
    "tl.make_tensor_descriptor", "advance", "step forward", "step back",
    "tl.sum", "tl.max", "tl.min", "tl.cumsum", "tl.flip", "tl.where", "tl.exp2", "put store", "fetch with a mask", "fetch", *(f"fetch of {kind}" for kind in ("i8", "i32", "fp32")),
    *(f"cast to {kind}" for kind in ("fp16", "bf16", "fp32", "i32")), *(f"rank {rank}" for rank in (0, 1, 2)),
    *(f"arrays in {place}" for place in ("zones", "end", "start")),
}  # fmt: skip


@pytest.fixture(scope="module")
def some() -> list[Program]:
    return [made(ROWS + number) for number in range(150)]


def test_every_construct_occurs(some: list[Program]) -> None:
    found = Counter(name for program in some for name in constructs_of(program.seed))
    assert {name: found[name] for name in WANTED if found[name] < 3} == {}


def test_every_program_stores(some: list[Program]) -> None:
    assert all(any(isinstance(s, WRITES) for s in walk(program.body)) for program in some)


@pytest.mark.parametrize("entry", passes.CHANGES, ids=lambda entry: entry[0].__name__)
def test_every_change_gives_programs(
    entry: tuple[passes.Change, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing else in its table; a table whose entries never worked would loop for ever."""
    monkeypatch.setattr(passes, "CHANGES", (entry,))
    for seed in range(4):
        assert types_of(generate(ROWS + 1000 + seed))

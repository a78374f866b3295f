"""What tests of random programs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from triton_porting_kit.conformance.stress.draws import Draws, T
from triton_porting_kit.conformance.stress.features import features
from triton_porting_kit.conformance.stress.generator import ADDRESSES, VOCABULARIES, generate
from triton_porting_kit.conformance.stress.matrices import endings, factors, sums
from triton_porting_kit.conformance.stress.matrices.programs import multiplying
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import LARGEST_TILE
from triton_porting_kit.conformance.stress.program import (
    Atomic,
    Branch,
    Fetch,
    Let,
    Loop,
    Program,
    Put,
    Store,
    walk,
)
from triton_porting_kit.conformance.stress.typing import types_of


@cache
def made(seed: int) -> Program:
    """The program of a seed, kept for the other tests of the group that share programs."""
    return generate(seed)


@cache
def constructs_of(seed: int) -> frozenset[str]:
    """What the program of a seed is made of. It is kept, too, because finding it runs the program in NumPy."""
    return frozenset(constructs(made(seed)))


def constructs(program: Program) -> Iterator[str]:
    """What a program is made of, by name."""
    types = types_of(program)
    yield f"grid of {len(program.grid)} dimensions"
    yield f"arrays in {program.place}"
    yield from (f"region that starts by {region.origin}" for region in program.regions)
    yield from features(program)
    yield "large tiles" if any(t.count > LARGEST_TILE for t in types.values()) else "small tiles"
    for statement in walk(program.body):
        match statement:
            case Let():
                yield statement.op
                operands = tuple(types[v] for v in statement.args)
                yield from OPERATIONS[statement.op].tags(operands, statement.attrs)
                for out in statement.outs:
                    yield f"type {types[out].kind_name}"
                    yield f"rank {types[out].rank}"
                if statement.op in ("+", "-", "*", "tl.where") and len({t.shape for t in operands}) > 1:
                    yield "operands that broadcast"
            case Loop():
                yield f"loop {statement.style}"
                yield f"loop that carries {len(statement.carried)}"
                yield from ("nested body" for s in statement.body if isinstance(s, Loop | Branch))
            case Branch():
                yield "branch"
                yield "branch with results" if statement.results else "branch without results"
            case Store():
                yield f"store {statement.form}"
                yield (
                    "store of part of a tile"
                    if statement.extents != types[statement.value].shape
                    else "store"
                )
                yield "store with a mask of values" if statement.mask is not None else "store"
            case Fetch():
                yield f"fetch of {types[statement.out].kind_name}"
                yield "fetch with a mask" if statement.mask is not None else "fetch"
                yield "fetch of nothing elsewhere" if statement.other is None else "fetch"
                yield "fetch of a tile elsewhere" if statement.rest is not None else "fetch"
            case Put():
                yield f"put {statement.kind}"
                yield "put with a mask" if statement.mask is not None else "put"
            case Atomic():
                yield f"atomic {statement.kind}"
                yield "atomic with a mask" if statement.mask is not None else "atomic"


_ENTRIES = {
    id(entry[0] if isinstance(entry, tuple) else entry): f"{name} {number}"
    for name, table in (
        ("change", factors.CHANGES), ("way", sums.WAYS), ("beside", sums.BESIDE), ("ending", endings.ENDINGS),
    )
    for number, entry in enumerate(table)
}  # fmt: skip


class _Recording(Draws):
    """Draws that note which entries of the tables of products were drawn."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn: set[str] = set()

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        return self._noted(super().weighted(options))

    def choose(self, options: Sequence[T]) -> T:
        return self._noted(super().choose(options))

    def _noted(self, option: T) -> T:
        self.drawn |= {_ENTRIES[id(option)]} if id(option) in _ENTRIES else set()
        return option


def choices(program: Program) -> frozenset[str]:
    """The constructs of a program about products, and the entries of the tables that were drawn for it."""
    draws = _Recording(program.seed - ADDRESSES)
    assert multiplying(draws, program.seed, draws.weighted(VOCABULARIES)) == program
    return frozenset((*draws.drawn, *constructs_of(program.seed)))

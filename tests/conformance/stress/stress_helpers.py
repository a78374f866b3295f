"""What tests of random programs share."""

from __future__ import annotations

from collections.abc import Iterator

from triton_porting_kit.conformance.stress.features import features
from triton_porting_kit.conformance.stress.operations import OPERATIONS
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


def constructs(program: Program) -> Iterator[str]:
    """What a program is made of, by name."""
    types = types_of(program)
    yield f"grid of {len(program.grid)} dimensions"
    yield f"arrays in {program.place}"
    yield from (f"region that starts by {region.origin}" for region in program.regions)
    yield from features(program)
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

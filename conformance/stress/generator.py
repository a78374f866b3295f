"""The random program of a seed."""

from __future__ import annotations

from triton_porting_kit.conformance.stress.address_programs import addressing
from triton_porting_kit.conformance.stress.builder import Builder, Shared
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.matrices.programs import multiplying
from triton_porting_kit.conformance.stress.operations import OPERATIONS
from triton_porting_kit.conformance.stress.operations.base import EVERY, SHAPES
from triton_porting_kit.conformance.stress.program import WRITES, Program, uses, walk
from triton_porting_kit.conformance.stress.rows.programs import row_by_row

GRIDS = (((1,), 3.0), ((2,), 1.0), ((3,), 1.0), ((5,), 1.0), ((2, 2), 1.0), ((3, 2), 1.0), ((2, 1, 3), 1.0))
VOCABULARIES = (
    (("i1", "i32", "fp32"), 2.0),
    (("i1", "i8", "i32", "fp16", "fp32"), 1.0),
    (("i1", "i8", "i16", "i32", "i64", "fp16", "bf16", "fp32"), 1.0),
    (EVERY, 6.0),
)
"""Sets of types that programs use, with weights. Small sets give programs to chips that lack types."""
MOST_STORES = 6


STRIDE = 1_000_000
"""The number of program seeds per seed of a run: the programs of seed 3 start at 3,000,000."""
ADDRESSES, PRODUCTS, ROWS = 500_000, 750_000, 875_000
"""The first of these seeds whose programs are about addresses, about matrix products, and about rows."""
FAMILIES = {"operations": 0, "addresses": ADDRESSES, "products": PRODUCTS, "rows": ROWS}
"""What programs are about, and the first seed of each kind."""


def generate(seed: int) -> Program:
    """The program of a seed, the same on any machine. The position within `STRIDE` decides what the program is
    about."""
    if seed % STRIDE < ADDRESSES:
        return operating(Draws(seed), seed)
    draws = Draws(seed - ADDRESSES)
    vocabulary = draws.weighted(VOCABULARIES)
    position = seed % STRIDE
    make = addressing if position < PRODUCTS else multiplying if position < ROWS else row_by_row
    return make(draws, seed, vocabulary)


def operating(draws: Draws, seed: int) -> Program:
    """A program about operations."""
    program = Program((), draws.weighted(GRIDS), draws.choose((1, 2, 4, 4, 8)), seed)
    builder = Builder(draws, program, Shared(), {}, [{} for _ in range(program.programs)])
    builder.shapes = tuple(draws.choose(SHAPES) for _ in range(draws.between(1, 3)))
    builder.vocabulary = draws.weighted(VOCABULARIES)
    builder.kinds = tuple(draws.choose(builder.vocabulary[1:]) for _ in range(draws.between(2, 4)))
    for _ in range(draws.between(2, 4)):
        args, attrs = OPERATIONS["load"].propose(builder) or ((), {})
        builder.let("load", *args, **attrs)
    builder.grow(draws.between(5, 24))
    read = {v for statement in walk(tuple(builder.body)) for v in uses(statement)}
    leaves = [v for v in builder.types if v not in read]
    for value in leaves[-MOST_STORES:]:
        builder.store(value)
    if not any(isinstance(s, WRITES) for s in walk(tuple(builder.body))):
        builder.store([*builder.types][-1])
    return Program(tuple(builder.body), program.grid, program.warps, seed)

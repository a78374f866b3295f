"""Whole programs about addresses: their size, the moves that they consist of, and how they end."""

from __future__ import annotations

import math
from dataclasses import replace

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Shared
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.expressions import EXPRESSIONS
from triton_porting_kit.conformance.stress.oracle import fitted
from triton_porting_kit.conformance.stress.pointing import POINTING
from triton_porting_kit.conformance.stress.products import products
from triton_porting_kit.conformance.stress.program import (
    PLACES,
    Program,
)
from triton_porting_kit.conformance.stress.rewriting import tidy
from triton_porting_kit.conformance.stress.situations import SEVERAL, situation

GRIDS = (((1,), 5.0), ((2,), 1.0), ((3,), 1.0), ((2, 2), 0.7))
SIZES = (1, 2, 4, 8, 8, 16, 16, 16, 32, 64, 128)
SIDES = (1, 2, 4, 8, 8, 16, 16, 32)
"""Side lengths of tiles with one or two dimensions."""
LARGEST = 512
"""The largest number of elements in a tile."""

FAMILY = (*EXPRESSIONS, *POINTING)
"""Moves of programs in the family of address expressions."""
ACCESSES = (Addresses.load, Addresses.roles, Addresses.chain, Addresses.walking)
"""Every program has at least one of these moves."""


OFTEN = 0.55
"""The share of programs that belong to the family."""
SALT = 19731
"""The number that seeds the draws of the family. With it, all but one of the programs that docs/conformance-stress.md
names for older faults are the same as before the family was added."""


def family(seed: int) -> Draws | None:
    """The random draws of a program in the family; None for other programs, whose draws stay unchanged."""
    draws = Draws((seed << 8) + SALT)
    return draws if draws.chance(OFTEN) else None


def addressing(draws: Draws, seed: int, vocabulary: tuple[str, ...]) -> Program:
    """A program about addresses, with some types. Half of the programs have few loops and compile quickly."""
    of_family = family(seed)
    draws = draws if of_family is None else of_family
    nests = draws.chance(0.5)
    program = Program((), draws.weighted(GRIDS), draws.choose((1, 1, 2, 4)), seed, place=draws.choose(PLACES))
    own_draws, besides = situation(seed)
    if besides is products:
        program = replace(program, grid=own_draws.choose(SEVERAL))
    tile: tuple[int, ...] = (draws.choose(SIZES),)
    if draws.chance(0.55):
        tile = (draws.choose(SIDES), draws.choose(SIDES))
        tile = tile if math.prod(tile) <= LARGEST else (tile[0], LARGEST // tile[0])
    builder = Addresses(
        draws, program, Shared(), {}, [{} for _ in range(program.programs)], tile=tile, nests=nests
    )
    builder.shapes, builder.vocabulary, builder.kinds = (tile,), vocabulary, vocabulary[1:]
    builder.beginning()
    builder.family = FAMILY if of_family is not None else ()
    if besides is products:  # alone: with many stores, compilers no longer track which memory is written
        builder.draws = own_draws
        products(builder)
    else:
        builder.grow(draws.between(2, 6) if builder.family else draws.between(3, 10))
        (draws.weighted(FAMILY) if builder.family else draws.choose(ACCESSES))(builder)
        if besides is not None:
            builder.draws = own_draws
            besides(builder)
            builder.draws = draws
        builder.ending()
    body = tuple(builder.body)
    regions = tuple(builder.shared.regions.values())
    return fitted(tidy(replace(program, body=body, regions=regions)))

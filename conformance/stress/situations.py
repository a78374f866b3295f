"""Rare patterns in programs of the address family, which trigger optimizations that random statements seldom reach.

- Bodies that do not run, whose accesses and divisions would be undefined.
- Expensive computations on bounded tiles, for which compilers generate other code than for cheap ones.
- Rows whose indices wrap around, broadcast to a tile.
- One element loaded by many lanes.
- Matrix products accumulated in loops: see `products`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.numbers import as_number
from triton_porting_kit.conformance.stress.products import computed, products
from triton_porting_kit.conformance.stress.program import (
    Branch,
    Carried,
    Fetch,
    Loop,
    Merged,
    Put,
    Store,
    Type,
)

if TYPE_CHECKING:
    from triton_porting_kit.conformance.stress.addresses import Addresses

LOWEST = {"i32": -(2**31), "i64": -(2**63)}


def untaken(builder: Addresses) -> None:
    """An access that is never executed, whose address is computed by a division; both would be undefined."""
    draws, kind = builder.draws, builder.draws.choose([k for k in LOWEST if k in builder.vocabulary])
    index = builder.let("tl.arange", start=0, size=draws.choose((4, 16, 32, 64)))
    index = index if index is None or kind == "i32" else builder.let("cast", index, to=kind)
    start = builder.let(
        "argument", kind=kind, value=draws.choose((LOWEST[kind], LOWEST[kind], 1 << 30, 0, 3))
    )
    divisor = builder.let("argument", kind=kind, value=draws.choose((-1, -1, -1, 0, LOWEST[kind])))
    if index is None or start is None or divisor is None:
        return
    condition = builder.let("limit", divisor, symbol=">", literal=0)
    inner = builder.nested()
    for environment in inner.environments:  # generate the body with values for which it is defined
        environment[start] = as_number(kind, np.asarray(3))
        environment[divisor] = as_number(kind, np.asarray(draws.choose((7, 12, 16))))
    counter = builder.shared.value()
    inner.define(counter, Type("i32"), lambda environment: as_number("i32", np.zeros((), np.int32)))
    moved = inner.let("+", index, start)
    division = f"plain {draws.choose(('%', '%', '%', '//'))}"
    at = None if moved is None else inner.let(division, moved, divisor)
    pointer = None if at is None else inner.address(at, inner.region(inner.kind(), ("load",)))
    if condition is None or at is None or pointer is None:
        return
    mask = inner.limit(at, draws.choose(("<", "<", "!="))) if draws.chance(0.4) else None
    loaded = builder.shared.value()
    if not inner.add(Fetch(loaded, pointer, mask, 0)):
        return
    if draws.chance(0.5):
        kind_name, shape = inner.types[loaded].kind_name, inner.types[loaded].shape
        other = builder.nested()
        rest = other.let("tl.full", kind=kind_name, shape=shape, value=1)
        if rest is not None:
            merged = Merged(builder.shared.value(), loaded, rest)
            builder.add(Branch(condition, tuple(inner.body), tuple(other.body), (merged,)))
        return
    style = draws.choose(("range", "argument", "argument", "while"))
    param = builder.shared.value()
    inner.types[param] = inner.types[index]
    found = inner.types[loaded]
    first = builder.let("tl.full", kind=found.kind_name, shape=found.shape, value=1)
    if first is not None:
        carried = (Carried(param, first, loaded),)
        builder.add(Loop(counter, style, 0, None, carried, tuple(inner.body)))


def dear(builder: Addresses) -> None:
    """An expensive computation on a bounded tile, stored within the bounds."""
    draws = builder.draws
    size = draws.choose((32, 64, 64, 128, 256))
    index = builder.let("tl.arange", start=0, size=size)
    end = builder.let("argument", kind="i32", value=draws.between(size // 4, size - 1))
    if index is None or end is None:
        return
    inside = builder.let(f"compare {draws.choose(('<', '<', '<='))}", index, end)
    place = index
    if builder.program.programs > 1:
        number = builder.let("tl.program_id", axis=0)
        start = None if number is None else builder.let("literal", number, symbol="*", literal=size)
        place = index if start is None else builder.let("+", index, start) or index
    kind = draws.choose([k for k in ("fp32", "fp32", "i32", "i64") if k in builder.vocabulary])
    found = []
    for _ in range(draws.choose((1, 1, 2))):
        pointer = builder.address(place, builder.region(kind, ("load",)))
        other = draws.choose((0, 0, 1))
        if (
            pointer is None
            or inside is None
            or not builder.add(Fetch(builder.shared.value(), pointer, inside, other))
        ):
            return
        found.append(builder.shared.values - 1)
    value: int | None = found[0]
    for turn in range(draws.between(8, 12)):
        value = None if value is None else computed(builder, value, turn)
    for other_value in found[1:]:
        value = None if value is None else builder.let("+", value, other_value)
    if value is None:
        return
    if draws.chance(0.6):
        target = builder.address(
            place, builder.shared.region(kind, "small", draws.below(1 << 30), use="store")
        )
        if target is not None and builder.add(Put(target, value, inside)):
            return
    builder.add(Store(builder.shared.output(), value, inside, (size,)))


def row(builder: Addresses) -> None:
    """A row or a column whose indices wrap around before its end, broadcast to a tile."""
    draws, axis = builder.draws, int(builder.draws.chance(0.3))
    size, times = draws.choose((4, 8, 16, 16)), draws.choose((2, 8, 32))
    along = builder.let("tl.arange", start=0, size=size)
    across = builder.let("tl.arange", start=0, size=times)
    period = builder.let("argument", kind="i32", value=size - draws.between(1, size // 2))
    if along is None or across is None or period is None:
        return
    along = builder.let("[:, None]", along, axis=axis)
    across = builder.let("[:, None]", across, axis=1 - axis)
    index = None if along is None else builder.let("plain %", along, period)
    kind = draws.choose([k for k in ("i32", "fp32", "i64") if k in builder.vocabulary])
    pointer = None if index is None else builder.address(index, builder.region(kind, ("load",)))
    if pointer is None or index is None or across is None:
        return
    mask = builder.limit(index, "<") if draws.chance(0.3) else None
    loaded = builder.shared.value()
    number = builder.let("cast", across, to=kind) if kind != "i32" else across
    if number is None or not builder.add(Fetch(loaded, pointer, mask, draws.choose((0, 1)))):
        return
    value = builder.let(draws.choose("+-*"), loaded, number)
    if value is not None:
        builder.add(Store(builder.shared.output(), value, None, builder.types[value].shape))


def pinned(builder: Addresses) -> None:
    """One element loaded by all active lanes. If none is active, the element need not exist."""
    draws = builder.draws
    size, kind = draws.choose((32, 64, 128, 256)), draws.choose(("i32", "fp32"))
    index = builder.let("tl.arange", start=0, size=size)
    end = builder.let("argument", kind="i32", value=draws.choose((0, 0, 0, -1, 5, size // 2, size)))
    place = builder.let("tl.full", kind="i32", shape=(size,), value=draws.choose((4, 1 << 12, 1 << 22)))
    if index is None or end is None or place is None:
        return
    inside = builder.let("compare <", index, end)
    pointer = builder.address(place, builder.region(kind, ("load",)))
    if inside is None or pointer is None:
        return
    loaded = builder.shared.value()
    if not builder.add(Fetch(loaded, pointer, inside, draws.choose((0, 1, 3)))):
        return
    value = builder.let("tl.sum", loaded, axis=0, keep_dims=True) if draws.chance(0.4) else None
    value = builder.let("literal", loaded, symbol="+", literal=1) if value is None else value
    if value is not None:
        builder.add(Store(builder.shared.output(), value, None, builder.types[value].shape))


SITUATIONS: tuple[tuple[Callable[[Addresses], None], float], ...] = (
    (untaken, 1.0),
    (dear, 1.0),
    (row, 0.7),
    (pinned, 0.7),
    (products, 1.5),
)
OFTEN = 0.18
"""The probability that a program has one."""
SEVERAL = ((3,), (4,), (2, 2))
"""Grids of programs with matrix products: one thread runs several programs of the grid."""


def situation(seed: int) -> tuple[Draws, Callable[[Addresses], None] | None]:
    """The rare pattern of the program of a seed, or None, and its own stream of random draws."""
    draws = Draws((seed << 8) + 1)
    return draws, draws.weighted(SITUATIONS) if draws.chance(OFTEN) else None

"""Rare patterns in programs of the address family, which trigger optimizations that random statements seldom reach.

- Bodies that do not run, whose accesses and divisions would be undefined.
- Expensive computations on bounded tiles, for which compilers generate other code than for cheap ones.
- Rows whose indices wrap around, broadcast to a tile.
- One element loaded by many lanes.
- Matrix products accumulated in loops, also in nested ones: compilers may keep the operands from one program of the
  grid to the next, read them where they lie in later iterations, and store the sums early. Some right operands are
  computed from bytes: compilers may multiply them in another form than the one that they keep for later uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.numbers import as_number
from triton_porting_kit.conformance.stress.operations.base import INTEGERS
from triton_porting_kit.conformance.stress.operations.elementwise import FUNCTIONS
from triton_porting_kit.conformance.stress.operations.reducing import ACCUMULATORS
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
LONG_CHAIN = 104
"""A number of consecutive operations on one value that exceeds `DEEPEST` of `compiler/loops/lowering.py`."""


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
        value = None if value is None else _computed(builder, value, turn)
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


def _computed(builder: Addresses, value: int, turn: int) -> int | None:
    """A mathematical function of a floating-point value; for integers, the remainder by a run-time divisor."""
    draws, kind = builder.draws, builder.types[value].kind_name
    if kind not in INTEGERS:
        return builder.let(draws.choose(FUNCTIONS).name, value)
    divisor = builder.let("argument", kind=kind, value=draws.choose((7, 10, 37, 1000, -3)))
    rest = None if divisor is None else builder.let("plain %", value, divisor)
    return None if rest is None else builder.let("literal", rest, symbol=draws.choose("*+"), literal=3 + turn)


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


def products(builder: Addresses) -> None:
    """A loop that accumulates matrix products and may also add up an operand; the sums are then used and stored.

    A loop around it may move one of the operands instead. The right operand may be remainders of bytes.
    """
    draws = builder.draws
    kind = draws.choose([k for k in ("fp32", "fp32", *ACCUMULATORS) if k in builder.vocabulary])
    seed = builder.program.seed  # and not another draw, which would change the programs of all seeds
    computed = seed % 5 == 2 and {"i8", "i32", "bf16"} <= set(builder.vocabulary)
    kind = "bf16" if computed else kind
    sums = ACCUMULATORS[kind]
    if sums not in builder.vocabulary:
        return
    k = 32 if kind == "i8" or computed else 16
    # Triton turns a loop of one iteration into straight-line code and adds later addends first: other roundings.
    m, n, iterations = draws.choose((16, 16, 32)), draws.choose((16, 16, 32)), draws.between(2, 4)
    around = 2 + seed % 2 if seed % 5 < 2 else 1
    moves = iterations * around
    apart = draws.choose((1, 2, 2)) if n * k * moves * 2 <= 4096 else 1
    gap = draws.choose((0, 0, 4)) if n * k * moves * 2 < 3000 else 0
    places = [_matrix(builder, m, k, k * moves, 1), _matrix(builder, k, n, (n + gap) * apart, apart)]
    flavour = "whole" if kind in ("fp16", "bf16") else "small"
    divisor = None
    if computed:
        divisor = builder.let("argument", kind="i32", value=draws.choose((7, 10, 37)))
    starts = []
    for place, of in zip(places, (kind, kind if divisor is None else "i8"), strict=True):
        region = builder.shared.region(of, flavour if of == kind else "small", draws.below(1 << 30))
        starts.append(None if place is None else builder.address(place, region))
    total = builder.let("tl.full", kind=sums, shape=(m, n), value=0)
    left, right = starts
    if left is None or right is None or total is None:
        return
    seen = builder.let("tl.full", kind=kind, shape=(k, n), value=0) if draws.chance(0.6) else None
    steps = {left: k, right: k * (n + gap) * apart}
    found = _summed(builder, steps, total, seen, (iterations, around), divisor)
    if not found:
        return
    _finished(builder, found[total])
    if seen is not None:
        builder.add(Store(builder.shared.output(), found[seen], None, (k, n)))


def _summed(
    builder: Addresses,
    steps: Mapping[int, int],
    total: int,
    seen: int | None,
    counts: tuple[int, int],
    divisor: int | None,
) -> dict[int, int]:
    """The loops of `products`: what the carried values are after them, or none if they are ill-conditioned.

    `steps` are the pointers to both factors, and how far an iteration moves each. `counts`: the iterations of the inner
    and of the outer loop; without one, 1. With a `divisor`, the right factor is made of bytes, divided by it.
    """
    draws, (iterations, around) = builder.draws, counts
    left, right = steps
    slow = draws.choose((left, left, right)) if around > 1 else None
    carried = [value for value in (left, right, total, seen) if value is not None]
    styles = [draws.choose(("argument", "argument", "range", "while")) for _ in range(1 + (around > 1))]

    def multiplied(
        inner: Addresses, at: Mapping[int, int], fixed: Mapping[int, int]
    ) -> dict[int, int | None]:
        """One iteration: what the carried values become. `fixed`: where what this loop does not move is."""
        factors = []
        for start in steps:
            factors.append(builder.shared.value())
            if not inner.add(Fetch(factors[-1], at[start] if start in at else fixed[start])):
                return {start: None}
        if divisor is not None:
            kind_name = inner.types[factors[0]].kind_name
            rest = _remainders(inner, factors[1], divisor, kind_name)
            if rest is None:
                return {right: None}
            factors[1] = rest
        after = {total: inner.let("tl.dot", *factors, at[total])}
        if seen is not None:
            after[seen] = inner.let("+", at[seen], factors[1])
        moved = {start: inner.let("step", at[start], step=by) for start, by in steps.items() if start in at}
        return after | moved

    def repeated(outer: Addresses, at: Mapping[int, int]) -> dict[int, int | None]:
        """One iteration of the loop around, which moves the slow factor."""
        moved = {value: at[value] for value in carried if value != slow}
        found = _loop(
            outer, styles[0], iterations, moved, lambda inner, params: multiplied(inner, params, at)
        )
        after: dict[int, int | None] = {value: found.get(value) for value in moved}
        return after | ({} if slow is None else {slow: outer.let("step", at[slow], step=steps[slow])})

    same = {value: value for value in carried}
    if around > 1:
        return _loop(builder, styles[1], around, same, repeated)
    return _loop(builder, styles[0], iterations, same, lambda inner, params: multiplied(inner, params, {}))


def _remainders(builder: Addresses, value: int, divisor: int, kind: str) -> int | None:
    """The remainders of bytes by a run-time divisor, which takes many instructions, as exact numbers of a kind."""
    wide = builder.let("cast", value, to="i32")
    rest = None if wide is None else builder.let("plain %", wide, divisor)
    small = None if rest is None else builder.let("cast", rest, to="i8")
    return None if small is None else builder.let("cast", small, to=kind)


def _loop(
    builder: Addresses,
    style: str,
    iterations: int,
    initial: Mapping[int, int],
    body: Callable[[Addresses, Mapping[int, int]], dict[int, int | None]],
) -> dict[int, int]:
    """Add a loop that carries the `initial` values. Returns the values after it; empty if it is ill-conditioned.

    Any numbers can be the keys. `body` adds the statements of an iteration, and returns the values for the next one.
    """
    inner, counter = builder.nested(), builder.shared.value()
    inner.define(counter, Type("i32"), lambda environment: as_number("i32", np.zeros((), np.int32)))
    params = {}
    for name, value in initial.items():
        params[name] = builder.shared.value()
        inner.define(params[name], builder.types[value], lambda environment, v=value: environment[v])  # type: ignore[misc]
    after = body(inner, params)
    changes = tuple(
        Carried(params[name], initial[name], next) for name, next in after.items() if next is not None
    )
    if len(changes) < len(initial):
        return {}
    added = builder.add(Loop(counter, style, iterations, None, changes, tuple(inner.body)))
    return params if added else {}


def _matrix(builder: Addresses, rows: int, columns: int, row: int, column: int) -> int | None:
    """The indices of the elements of a matrix with these strides between rows and between columns."""
    found = []
    for axis, (size, apart) in enumerate(((rows, row), (columns, column))):
        index = builder.let("tl.arange", start=0, size=size)
        index = None if index is None else builder.let("[:, None]", index, axis=1 - axis)
        if index is not None and apart > 1:
            index = builder.let("literal", index, symbol="*", literal=apart)
        found.append(index)
    first, second = found
    return None if first is None or second is None else builder.let("+", first, second)


def _finished(builder: Addresses, value: int) -> None:
    """Store a function of a loop's sums; often also store the other operand of that function."""
    draws, own = builder.draws, builder.types[value]
    made: int | None = value
    also = None
    match draws.weighted((("plain", 1.0), ("little", 1.0), ("dear", 2.0), ("long", 1.0))):
        case "little":
            made = builder.let("literal", value, symbol=draws.choose("*+-"), literal=2)
        case "dear":
            rows, columns = own.shape
            place = _matrix(builder, rows, columns, columns, 1)
            number = None if place is None else builder.let("cast", place, to=own.kind_name)
            also = None if number is None else _computed(builder, number, 1)
            made = None if also is None else builder.let("+", value, also)
        case "long":
            made = _long_chain(builder, value)
    if made is None:
        return
    builder.add(Store(builder.shared.output(), made, None, own.shape))
    if also is not None and draws.chance(0.8):
        builder.add(Store(builder.shared.output(), also, None, own.shape))


def _long_chain(builder: Addresses, value: int) -> int | None:
    """A long chain of operations on a value, written as an unrolled loop."""
    inner, counter, param = builder.nested(), builder.shared.value(), builder.shared.value()
    inner.define(counter, Type("i32"), lambda environment: as_number("i32", np.ones((), np.int32)))
    inner.define(param, builder.types[value], lambda environment: environment[value])
    changed: int | None = param
    steps = (
        [("+", 1)] if builder.types[value].kind.is_float else [("*", 3), ("^", 5)]
    )  # pairs that no compiler folds
    for symbol, literal in steps:
        changed = None if changed is None else inner.let("literal", changed, symbol=symbol, literal=literal)
    if changed is None:
        return None
    iterations = math.ceil(builder.draws.between(LONG_CHAIN, LONG_CHAIN + 16) / len(steps))
    carried = (Carried(param, value, changed),)
    return (
        param if builder.add(Loop(counter, "static", iterations, None, carried, tuple(inner.body))) else None
    )


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

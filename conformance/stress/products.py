"""Matrix products accumulated in loops, also in nested ones, in programs of the address family.

Compilers may keep the operands from one program of the grid to the next, read them where they lie in later iterations,
and store the sums early. Some right operands are computed from bytes: compilers may multiply them in another form than
the one that they keep for later uses. Some left operands have gaps between their elements, and a second product reads
them, too: compilers may read them where the first one has packed them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from triton_porting_kit.conformance.stress.numbers import as_number
from triton_porting_kit.conformance.stress.operations.base import INTEGERS
from triton_porting_kit.conformance.stress.operations.elementwise import FUNCTIONS
from triton_porting_kit.conformance.stress.operations.reducing import ACCUMULATORS
from triton_porting_kit.conformance.stress.program import Carried, Fetch, Loop, Store, Type
from triton_porting_kit.conformance.stress.repeating import counted, repeated

if TYPE_CHECKING:
    from triton_porting_kit.conformance.stress.addresses import Addresses

LONG_CHAIN = 104
"""A number of consecutive operations on one value that exceeds `DEEPEST` of `compiler/loops/lowering.py`."""


def products(builder: Addresses) -> None:
    """A loop that accumulates matrix products and may also add up an operand; the sums are then used and stored.

    A loop around it may move one of the operands instead. The right operand may be remainders of bytes. A second sum,
    with other signs, may have the same operands.
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
    between = 2 if seed % 5 == 3 and m * k * moves * 2 <= 4096 else 1
    places = [
        _matrix(builder, m, k, k * moves * between, between),
        _matrix(builder, k, n, (n + gap) * apart, apart),
    ]
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
    other = builder.let("tl.full", kind=sums, shape=(m, n), value=0) if between > 1 else None
    steps = {left: k * between, right: k * (n + gap) * apart}
    found = _summed(builder, steps, (total, other), seen, (iterations, around), divisor)
    if not found:
        return
    _finished(builder, found[total])
    if other is not None:
        builder.add(Store(builder.shared.output(), found[other], None, (m, n)))
    if seen is not None:
        builder.add(Store(builder.shared.output(), found[seen], None, (k, n)))


def _summed(
    builder: Addresses,
    steps: Mapping[int, int],
    totals: tuple[int, int | None],
    seen: int | None,
    counts: tuple[int, int],
    divisor: int | None,
) -> dict[int, int] | None:
    """The loops of `products`: what the carried values are after them; None if they are ill-conditioned.

    `steps` are the pointers to both factors, and how far an iteration moves each. `totals`: the sum, and the one with
    other signs. `counts`: the iterations of the inner and of the outer loop; without one, 1. With a `divisor`, the
    right factor is made of bytes, divided by it.
    """
    draws, (iterations, around) = builder.draws, counts
    (left, right), (total, other) = steps, totals
    slow = draws.choose((left, left, right)) if around > 1 else None
    carried = [value for value in (left, right, total, seen, other) if value is not None]
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
        if other is not None:
            less = inner.let("literal", at[other], symbol="*", literal=-1)
            after[other] = None if less is None else inner.let("tl.dot", *factors, less)
        if seen is not None:
            after[seen] = inner.let("+", at[seen], factors[1])
        moved = {start: inner.let("step", at[start], step=by) for start, by in steps.items() if start in at}
        return after | moved

    def outermost(outer: Addresses, counter: int, at: Mapping[int, int]) -> dict[int, int | None]:
        """One iteration of the loop around, which moves the slow factor."""
        moved = {value: at[value] for value in carried if value != slow}
        found = repeated(
            outer,
            counted(styles[0], iterations),
            moved,
            lambda inner, counter, params: multiplied(inner, params, at),
        )
        after: dict[int, int | None] = {v: None if found is None else found[v] for v in moved}
        return after | ({} if slow is None else {slow: outer.let("step", at[slow], step=steps[slow])})

    same = {value: value for value in carried}
    if around > 1:
        return repeated(builder, counted(styles[1], around), same, outermost)
    loop = counted(styles[0], iterations)
    return repeated(builder, loop, same, lambda inner, counter, params: multiplied(inner, params, {}))


def _remainders(builder: Addresses, value: int, divisor: int, kind: str) -> int | None:
    """The remainders of bytes by a run-time divisor, which takes many instructions, as exact numbers of a kind."""
    wide = builder.let("cast", value, to="i32")
    rest = None if wide is None else builder.let("plain %", wide, divisor)
    small = None if rest is None else builder.let("cast", rest, to="i8")
    return None if small is None else builder.let("cast", small, to=kind)


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
            also = None if number is None else computed(builder, number, 1)
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


def computed(builder: Addresses, value: int, turn: int) -> int | None:
    """A mathematical function of a floating-point value; for integers, the remainder by a run-time divisor."""
    draws, kind = builder.draws, builder.types[value].kind_name
    if kind not in INTEGERS:
        return builder.let(draws.choose(FUNCTIONS).name, value)
    divisor = builder.let("argument", kind=kind, value=draws.choose((7, 10, 37, 1000, -3)))
    rest = None if divisor is None else builder.let("plain %", value, divisor)
    return None if rest is None else builder.let("literal", rest, symbol=draws.choose("*+"), literal=3 + turn)

"""What a program computes from the elements of its rows, and the passes through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.moves import Undone, argument, cast, let, literal
from triton_porting_kit.conformance.stress.operations.elementwise import FUNCTIONS
from triton_porting_kit.conformance.stress.program import BETWEEN, Loop, Put, Region
from triton_porting_kit.conformance.stress.repeating import counted, repeated
from triton_porting_kit.conformance.stress.rows.layout import (
    Band,
    beside,
    halves,
    loaded,
    stored,
    stored_alone,
)

# --- what is computed from a block ---------------------------------------------------------------

Change = Callable[[Addresses, Band, int | None, int], int]
"""A function of the builder, of the rows, of the first column (None: 0), and of a block."""


def _with_fact(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """With a number to which an earlier pass reduced the row."""
    if not of.facts:
        return _literally(builder, of, start, value)
    return let(builder, builder.draws.choose(("-", "-", "*", "+")), value, builder.draws.choose(of.facts))


def _weighted(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """With one number for each column."""
    region = builder.shared.region(of.sizes.kind, "small", builder.draws.below(1 << 30))
    return let(builder, builder.draws.choose(("*", "+")), value, loaded(builder, of, start, region))


def _with_another(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """With the block of another matrix."""
    region = array(builder, of)
    return let(builder, builder.draws.choose(("*", "+", "-")), value, loaded(builder, of, start, region))


def _function(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    if of.sizes.kind != "fp32":
        return _remainder(builder, of, start, value)
    return let(builder, builder.draws.choose(FUNCTIONS).name, value)


def _remainder(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    rest = let(
        builder, "plain %", cast(builder, value, "i32"), argument(builder, builder.draws.choose((7, 37)))
    )
    return cast(builder, rest, of.sizes.kind)


def _leaky(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    positive = let(builder, "limit", value, symbol=builder.draws.choose((">", "<")), literal=0)
    return let(builder, "tl.where", positive, value, literal(builder, value, "*", 2))


def _literally(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    return literal(builder, value, *builder.draws.choose((("*", 2), ("+", 1), ("-", 3))))


def _rounded(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    kinds = [k for k in ("fp16", "bf16") if k in builder.vocabulary]
    if not kinds or of.sizes.kind != "fp32":
        return _literally(builder, of, start, value)
    return cast(builder, cast(builder, value, builder.draws.choose(kinds)), "fp32")


def _turned(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """With the block in the opposite order."""
    axis = len(of.sizes.shape) - 1
    return let(builder, "+", value, let(builder, "tl.flip", value, axis=axis))


def _scanned(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    axis = len(of.sizes.shape) - 1
    return let(builder, "tl.cumsum", value, axis=axis, reverse=builder.draws.chance(0.3))


def _centred(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """Minus the sum or the maximum of the block alone."""
    return let(builder, "-", value, reduced(builder, of, value, builder.draws.choose(("tl.sum", "tl.max"))))


def _with_neighbours(builder: Addresses, of: Band, start: int | None, value: int) -> int:
    """With elements before or behind these in a matrix, which may be the one that is stored to."""
    by = builder.draws.choose((1, 2, of.sizes.width, -1, -1, -2, -of.sizes.width // 2))
    other = beside(builder, of, start, builder.draws.choose(of.arrays), by)
    return let(builder, builder.draws.choose(("+", "-")), value, other)


CHANGES: tuple[tuple[Change, float], ...] = (
    (_with_fact, 3.0),
    (_weighted, 1.5),
    (_with_another, 1.5),
    (_function, 1.5),
    (_remainder, 0.7),
    (_leaky, 1.0),
    (_literally, 1.0),
    (_rounded, 0.7),
    (_turned, 0.3),
    (_scanned, 0.5),
    (_centred, 0.5),
    (_with_neighbours, 2.0),
)


def array(builder: Addresses, of: Band) -> Region:
    """A matrix that is loaded, mostly a new one."""
    draws = builder.draws
    if of.arrays and draws.chance(0.4):
        return draws.choose(of.arrays)
    kinds = ("i8", "fp16", "bf16", "fp32") if of.sizes.kind == "fp32" else ("i8", "i16", "i32")
    kind = draws.choose([of.sizes.kind, *(k for k in kinds if k in builder.vocabulary)])
    use = draws.choose(("load", "store"))
    flavour = draws.choose(("small", "whole"))
    of.arrays.append(builder.shared.region(kind, flavour, draws.below(1 << 30), use=use))
    return of.arrays[-1]


def reduced(builder: Addresses, of: Band, value: int, how: str) -> int:
    """One number for each row of a block."""
    if of.sizes.height == 1:
        return let(builder, how, value, axis=0, keep_dims=False)
    return let(builder, how, value, axis=1, keep_dims=True)


# --- passes --------------------------------------------------------------------------------------

REDUCTIONS = {"tl.sum": "+", "tl.max": "tl.maximum", "tl.min": "tl.minimum"}
"""Reductions, and how those of two blocks are combined."""
STYLES = ("blocks", "numbers", "neither")
"""A pass adds up blocks and reduces the sum, or adds up the numbers of each block, or only stores."""


def pass_through(builder: Addresses, of: Band, *, last: bool) -> None:
    """A pass through the blocks of the rows. It reduces each row to a number, or stores one or two blocks for each, or
    both. Raises `Undone`."""
    draws, own = builder.draws, of.sizes
    style = "neither" if last and draws.chance(0.6) else draws.choose(STYLES)
    how = draws.choose([*REDUCTIONS])
    stores = style == "neither" or draws.chance(0.4)
    source = array(builder, of)
    target = _target(builder, of, source) if stores else None
    second = draws.choose((target, _target(builder, of, source))) if target and draws.chance(0.3) else None
    by = draws.choose((0, 1, own.width // 2, own.width))
    shape = own.shape if style == "blocks" else () if own.height == 1 else (own.height, 1)
    total = let(builder, "tl.full", kind=own.kind, shape=shape, value=draws.choose((0, 0, 1)))

    def block(inner: Addresses, start: int | None, before: int) -> int:
        value = loaded(inner, of, start, source)
        for _ in range(draws.choose((0, 1, 1, 2, 2, 3, 4))):
            value = draws.weighted(CHANGES)(inner, of, start, value)
        other = draws.weighted(CHANGES)(inner, of, start, value) if second is not None else value
        if target is not None and target != source and second is None:
            stored_alone(inner, of, start, value, target)
        elif target is not None:
            stored(inner, of, start, value, target)
        if second is not None:
            stored(inner, of, start, other, second, by)
        if style == "neither":
            return before
        found = value if style == "blocks" else reduced(inner, of, value, how)
        return let(inner, REDUCTIONS[how], before, found)

    after = _through(builder, of, total, block)
    if style == "blocks":
        after = reduced(builder, of, after, how)
    if style != "neither":
        of.facts.append(after)


def turn_halves(builder: Addresses, of: Band) -> None:
    """A pass that computes both halves of the rows from both, as rotary embeddings do, in place."""
    draws = builder.draws
    kinds = [k for k in ("fp16", "bf16") if k in builder.vocabulary and of.sizes.kind == "fp32"]
    kind = draws.choose([of.sizes.kind, of.sizes.kind, *kinds])
    region = builder.shared.region(kind, "small", draws.below(1 << 30), use="store")
    total = let(builder, "tl.full", kind=of.sizes.kind, shape=(), value=0)

    def block(inner: Addresses, start: int | None, before: int) -> int:
        one, other, pointers, mask = halves(inner, of, start, region)
        for target, value in zip(
            pointers, (let(inner, "-", one, other), let(inner, "+", other, one)), strict=True
        ):
            if not inner.add(Put(target, cast(inner, value, kind), mask)):
                raise Undone
        return literal(inner, before, "+", 1)

    _through(builder, of, total, block)


def _target(builder: Addresses, of: Band, source: Region) -> Region:
    """The matrix that a pass stores to: often the one that it loads from."""
    draws = builder.draws
    if source.use == "store" and draws.chance(0.7):
        return source
    kinds = [k for k in ("fp16", "bf16") if k in builder.vocabulary and of.sizes.kind == "fp32"]
    kind = draws.choose([of.sizes.kind, of.sizes.kind, *kinds])
    return builder.shared.region(kind, "small", draws.below(1 << 30), use="store")


def _through(
    builder: Addresses, of: Band, total: int, block: Callable[[Addresses, int | None, int], int]
) -> int:
    """All blocks: in a loop, unless one block has the whole row."""
    draws, own = builder.draws, of.sizes
    if own.blocks == 1 and draws.chance(0.8):
        return block(builder, None, total)

    def from_counter(inner: Addresses, counter: int, at: Mapping[int, int]) -> Mapping[int, int]:
        return {total: block(inner, literal(inner, counter, "*", own.width), at[total])}

    def from_start(inner: Addresses, start: int, at: Mapping[int, int]) -> Mapping[int, int]:
        return {total: block(inner, start, at[total])}

    style = draws.choose((BETWEEN, "argument", "range", "while"))
    if style == BETWEEN:
        zero = let(builder, "tl.full", kind="i32", shape=(), value=0)
        loop = Loop(-1, BETWEEN, own.blocks, of.ends[1], (), (), zero, None, own.width)
        found = repeated(builder, loop, {total: total}, from_start)
    else:
        found = repeated(builder, counted(style, own.blocks), {total: total}, from_counter)
    if found is None:
        raise Undone
    return found[total]

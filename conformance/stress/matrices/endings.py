"""What happens to the sums after the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.matrices.tiling import MOST_TILES, Tile, inside, upright
from triton_porting_kit.conformance.stress.moves import Undone, address, argument, cast, fetch, let, literal
from triton_porting_kit.conformance.stress.operations.elementwise import FUNCTIONS
from triton_porting_kit.conformance.stress.program import Fetch, Put, Store
from triton_porting_kit.conformance.stress.repeating import counted, repeated
from triton_porting_kit.conformance.stress.typing import ATOMIC_TYPES

Ending = Callable[[Addresses, Tile, int], int]
"""A function of the builder, of the tile of the result, and of its sums: what is stored."""


def _nothing(builder: Addresses, tile: Tile, sums: int) -> int:
    return sums


def _biased(builder: Addresses, tile: Tile, sums: int) -> int:
    """Plus one number for each column, or for each row."""
    axis = builder.draws.below(2)
    line, end = (tile.rows, tile.ends.rows) if axis == 0 else (tile.columns, tile.ends.columns)
    region = builder.shared.region("fp32", "small", builder.draws.below(1 << 30))
    region = region if tile.sizes.sums == "fp32" else builder.shared.region("i32", "small", 5)
    loaded = builder.shared.value()
    mask = let(builder, "compare <", line, end)
    if not builder.add(Fetch(loaded, address(builder, line, region), mask, 0)):
        raise Undone
    return let(builder, "+", sums, upright(builder, loaded, axis))


def _leaky(builder: Addresses, tile: Tile, sums: int) -> int:
    """Numbers below zero, scaled."""
    positive = let(builder, "limit", sums, symbol=">", literal=0)
    return let(builder, "tl.where", positive, sums, literal(builder, sums, "*", 2))


def _residual(builder: Addresses, tile: Tile, sums: int) -> int:
    """Plus a matrix."""
    region = builder.shared.region(tile.sizes.sums, "small", builder.draws.below(1 << 30))
    return let(
        builder,
        "+",
        sums,
        fetch(builder, address(builder, _index(builder, tile), region), inside(builder, tile)),
    )


def _remainder(builder: Addresses, tile: Tile, sums: int) -> int:
    """Remainders by a number of run time."""
    number = let(builder, "plain %", cast(builder, sums, "i32"), argument(builder, 37))
    return cast(builder, number, tile.sizes.sums)


def _function(builder: Addresses, tile: Tile, sums: int) -> int:
    if tile.sizes.sums != "fp32":
        raise Undone
    return let(builder, builder.draws.choose(FUNCTIONS).name, literal(builder, sums, "*", 0.0625))


def _centred(builder: Addresses, tile: Tile, sums: int) -> int:
    """Minus the maximum of each row."""
    return let(builder, "-", sums, let(builder, "tl.max", sums, axis=1, keep_dims=True))


def _multiplied(builder: Addresses, tile: Tile, sums: int) -> int:
    """The left factor of further products, whose sum a second loop stores in each iteration."""
    of, draws = tile.sizes, builder.draws
    if of.sums == "i32":
        sums = literal(builder, sums, "%", 5)
    left = cast(builder, sums, of.kind)
    rows = upright(builder, let(builder, "tl.arange", start=0, size=of.n), 0)
    columns = upright(builder, let(builder, "tl.arange", start=0, size=of.n), 1)
    region = builder.shared.region(of.kind, "small", draws.below(1 << 30))
    index = let(builder, "+", literal(builder, rows, "*", of.n), columns)
    start = address(builder, index, region)
    total = let(builder, "tl.full", kind=of.sums, shape=(of.m, of.n), value=0)
    output = builder.shared.output()

    def body(inner: Addresses, counter: int, at: Mapping[int, int]) -> Mapping[int, int]:
        right = fetch(inner, at[start])
        after = let(inner, "tl.dot", left, right, at[total])
        if not inner.add(Store(output, after, None, (of.m, of.n))):
            raise Undone
        return {start: let(inner, "step", at[start], step=of.n), total: after}

    found = repeated(builder, counted("argument", 2), {start: start, total: total}, body)
    if found is None:
        raise Undone
    return found[total]


ENDINGS: tuple[tuple[Ending, float], ...] = (
    (_nothing, 2.0),
    (_biased, 1.0),
    (_leaky, 1.0),
    (_residual, 1.0),
    (_remainder, 1.0),
    (_function, 0.7),
    (_centred, 1.0),
    (_multiplied, 1.0),
)


def _index(builder: Addresses, tile: Tile) -> int:
    """The indices of the elements of the tile in a matrix whose rows or columns are contiguous."""
    rows, columns = upright(builder, tile.rows, 0), upright(builder, tile.columns, 1)
    if builder.draws.chance(0.7):
        return let(builder, "+", let(builder, "*", rows, tile.ends.columns), columns)
    return let(builder, "+", let(builder, "*", columns, tile.ends.rows), rows)


def finished(builder: Addresses, tile: Tile, sums: int) -> None:
    """Store a function of the sums where the result has elements."""
    draws, own = builder.draws, builder.types[sums]
    value = draws.weighted(ENDINGS)(builder, tile, sums)
    kinds = [k for k in ("fp16", "bf16", "fp32") if k in builder.vocabulary and own.kind.is_float]
    value = cast(builder, value, draws.choose([own.kind_name, own.kind_name, *kinds]))
    kind = builder.types[value].kind_name
    use = "add" if kind in ATOMIC_TYPES and draws.chance(0.3) else "store"
    region = builder.shared.region(kind, "small", draws.below(1 << 30), use=use)
    target = address(builder, _index(builder, tile), region)
    if not builder.add(Put(target, value, inside(builder, tile), use)):
        raise Undone


def kept(builder: Addresses, number: int, value: int) -> None:
    """Store a value for the tile of a number."""
    shape = builder.types[value].shape
    count = builder.types[value].count
    if len(shape) != 1 or count * MOST_TILES > builder.shared.limits.span:
        builder.add(Store(builder.shared.output(), value, None, shape))
        return
    region = builder.shared.region(builder.types[value].kind_name, "small", 3, use="store")
    start = literal(builder, number, "*", count)
    index = let(builder, "+", let(builder, "tl.arange", start=0, size=count), start)
    builder.add(Put(address(builder, index, region), value))

"""How tiles of the factors are loaded, and what is computed from them before they are multiplied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.matrices.tiling import Sizes, Tile, upright
from triton_porting_kit.conformance.stress.moves import (
    Undone,
    address,
    all_of,
    argument,
    by,
    cast,
    let,
    literal,
)
from triton_porting_kit.conformance.stress.program import Fetch, Region

STORED = ("i8", "fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")
"""Types of factors in memory, if floating-point numbers are multiplied."""
NIBBLES = 8
"""The number of 4-bit integers in an i32."""


@dataclass(frozen=True)
class Factor:
    """A factor in memory, and how a program reads it. `axis` is the dimension of its tiles that the product sums over:
    1 for the left factor, 0 for the right one."""

    region: Region
    axis: int
    apart: int
    """The number of elements between neighbours along the other dimension."""
    deep: int
    """The number of elements between neighbours along `axis`."""
    transposed: bool
    """Whether its tiles are loaded transposed, then transposed once more."""
    moves: bool
    """Whether the loop carries its pointers."""
    fixed: bool
    """Whether all iterations have the tile of the first one, which is loaded before the loop."""
    place: str
    """How the other dimension is addressed: ``plain``, ``wrapped`` around its end, or by a ``gathered`` index."""
    change: Change
    """What is computed from a tile."""
    packed: bool = False
    """Whether each element in memory has `NIBBLES` consecutive terms, as weights of 4 bits do."""

    @property
    def loaded_axis(self) -> int:
        """The dimension of the loaded tiles along which the product sums."""
        return 1 - self.axis if self.transposed else self.axis

    def step(self, terms: int) -> int:
        """The distance in memory, in elements, between tiles that lie so many terms apart."""
        return self.deep * terms // (NIBBLES if self.packed else 1)


def factor(builder: Addresses, of: Sizes, axis: int, other: Factor | None = None) -> Factor:
    """A random factor; sometimes it is in the array of another one."""
    draws = builder.draws
    width = of.columns if axis == 0 else of.rows
    rows_apart, within = draws.choose((
        (of.depth, 1), (_aligned(of.depth), 1), *((1, width),) * 2, (of.depth + 5, 1), (of.gap * of.depth + 3, of.gap),
    ))  # fmt: skip
    if axis == 0 and draws.chance(0.6):
        rows_apart, within = draws.choose(
            ((1, width), (1, _aligned(width)), (1, width + 5), (of.gap, of.gap * width + 3))
        )
    stored = [k for k in (of.kind, of.kind, *STORED) if k in builder.vocabulary]
    kind = of.kind if of.kind == "i8" or draws.chance(0.5) else draws.choose(stored)
    packed = of.kind != "i8" and draws.chance(0.1)
    kind, flavour = ("i32", "full") if packed else (kind, draws.choose(("small", "whole")))
    region = builder.shared.region(
        kind, flavour, draws.below(1 << 30), origin=draws.choose(("literal", "argument"))
    )
    if other is not None and other.packed == packed and draws.chance(0.1):
        region = other.region
    place = draws.weighted((("plain", 5.0), ("wrapped", 1.5), ("gathered", 1.5)))
    change = draws.weighted(CHANGES)
    transposed, moves, fixed = (draws.chance(p) for p in (0.15, 0.5, 0.1))
    return Factor(
        region, axis, max(rows_apart, 1), max(within, 1), transposed, moves, fixed, place, change, packed
    )  # fmt: skip


def _aligned(size: int) -> int:
    """The next multiple of 16."""
    return -(-size // 16) * 16


@dataclass(frozen=True)
class Reading:
    """A factor, within one tile of the result."""

    factor: Factor
    tile: Tile
    lines: int
    """The indices along the dimension that is not summed over."""
    depth: int
    """The indices along the dimension that is summed over, from 0."""
    described: bool = False
    """Whether a tensor descriptor loads the tiles."""

    @property
    def moves(self) -> bool:
        """Whether the loop carries the pointers."""
        return self.factor.moves and not self.described

    def block(self, builder: Addresses, start: int) -> int:
        """The block of a tensor descriptor; `start`: the first index along the dimension that is summed over."""
        own, tile = self.factor, self.tile
        zero = let(builder, "tl.full", kind="i32", shape=(), value=0)
        base = address(builder, zero, own.region)
        line, end = (tile.first, tile.ends.rows) if own.axis == 1 else (tile.first_column, tile.ends.columns)
        count = tile.sizes.m if own.axis == 1 else tile.sizes.n
        dimensions = [(end, line, count, own.apart), (tile.ends.depth, start, tile.sizes.k, own.deep)]
        sizes, at, shape, strides = zip(*dimensions[:: 1 if own.loaded_axis == 1 else -1], strict=True)
        return let(builder, "tl.make_tensor_descriptor", base, *sizes, *at, shape=shape, strides=strides)

    def pointers(self, builder: Addresses, start: int | None) -> int:
        """Pointers to a tile; `start`: the first index along the dimension that is summed over, or None for 0."""
        own, depth = self.factor, self.depth
        if start is not None:
            depth = let(builder, "+", depth, start)
        if own.packed:
            depth = literal(builder, depth, "//", NIBBLES)
        kept = upright(builder, self.lines, 1 - own.loaded_axis)
        along = upright(builder, depth, own.loaded_axis)
        terms = [_times(builder, kept, own.apart), _times(builder, along, own.deep)]
        if builder.draws.chance(0.3):
            terms.reverse()
        return address(builder, let(builder, "+", *terms), own.region)

    def load(self, builder: Addresses, pointers: int, start: int) -> int:
        """A tile, in the type that is multiplied. `start`: the first index along the dimension summed over."""
        own, draws = self.factor, builder.draws
        if self.described:
            loaded = builder.shared.value()
            if not builder.add(Fetch(loaded, self.block(builder, start))):
                raise Undone
        else:
            loaded = self._masked(builder, pointers, start)
        loaded = self._numbers(builder, loaded)
        if own.transposed and draws.chance(0.5):
            loaded = let(builder, "tl.trans", loaded)
            return self._changed(builder, loaded, own.axis, start)
        loaded = self._changed(builder, loaded, own.loaded_axis, start)
        return let(builder, "tl.trans", loaded) if own.transposed else loaded

    def _masked(self, builder: Addresses, pointers: int, start: int) -> int:
        """A tile loaded through pointers; elements outside of the matrix are masked."""
        own, draws = self.factor, builder.draws
        whole = self.tile.sizes.depth % self.tile.sizes.k == 0
        masks = []
        if own.place == "plain":
            end = self.tile.ends.rows if own.axis == 1 else self.tile.ends.columns
            masks.append(let(builder, "compare <", upright(builder, self.lines, 1 - own.loaded_axis), end))
        if not whole or draws.chance(0.5):
            rest = let(builder, "-", self.tile.ends.depth, start)
            masks.append(let(builder, "compare <", upright(builder, self.depth, own.loaded_axis), rest))
        mask = all_of(builder, masks)
        loaded = builder.shared.value()
        other = draws.choose((0,) * 8 + (1, 3))
        if not builder.add(Fetch(loaded, pointers, mask, other)):
            raise Undone
        return loaded

    def _numbers(self, builder: Addresses, loaded: int) -> int:
        """What is loaded as numbers that a program can compute with."""
        if self.factor.packed:
            place = literal(builder, literal(builder, self.depth, "%", NIBBLES), "*", 4)
            shifted = let(builder, ">>", loaded, upright(builder, place, self.factor.loaded_axis))
            return literal(builder, shifted, "&", 15)
        if builder.types[loaded].kind.is_minifloat:
            return cast(builder, loaded, builder.draws.choose((self.tile.sizes.kind, "fp16", "bf16", "fp32")))
        return loaded

    def _changed(self, builder: Addresses, value: int, axis: int, start: int) -> int:
        kind = self.tile.sizes.kind
        return cast(builder, self.factor.change(builder, self, value, axis, start), kind)


def reading(builder: Addresses, own: Factor, tile: Tile) -> Reading:
    """How a factor is read within a tile."""
    lines, end = (tile.rows, tile.ends.rows) if own.axis == 1 else (tile.columns, tile.ends.columns)
    if own.place == "wrapped":
        lines = let(builder, "plain %", lines, end)
    elif own.place == "gathered":
        indices = builder.shared.region("i32", builder.draws.choose(("index", "distinct")), 7 + own.axis)
        mask = let(builder, "compare <", lines, end)
        loaded = builder.shared.value()
        if not builder.add(Fetch(loaded, address(builder, lines, indices), mask, 0)):
            raise Undone
        lines = let(builder, "plain %", loaded, end)
    depth = let(builder, "tl.arange", start=0, size=tile.sizes.k)
    rows, columns = (own.apart, own.deep)[:: 1 if own.loaded_axis == 1 else -1]
    fits = own.place == "plain" and not own.packed and columns == 1 and rows % 16 == 0
    return Reading(own, tile, lines, depth, fits and builder.draws.chance(0.5))


def _times(builder: Addresses, index: int, number: int) -> int:
    return index if number == 1 and builder.draws.chance(0.5) else by(builder, index, "*", number)


# --- what is computed from a tile ----------------------------------------------------------------

Change = Callable[[Addresses, Reading, int, int, int], int]
"""A function of the builder, of the factor, of a loaded tile, of the dimension of the tile that is summed over, and of
the first index along it."""


def _unchanged(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    return value


def _by_line(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """One number for each row of the left factor, or for each column of the right one."""
    return _scaled(builder, value, upright(builder, _numbers(builder, own.lines), 1 - axis))


def _by_depth(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """One number for each term of the sums."""
    at = let(builder, "+", own.depth, start)
    return _scaled(builder, value, upright(builder, _numbers(builder, at), axis))


def _by_group(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """One number for all elements of two tiles."""
    group = literal(builder, start, "//", 2 * own.tile.sizes.k)
    return _scaled(builder, value, _numbers(builder, group))


def _numbers(builder: Addresses, at: int) -> int:
    region = builder.shared.region("fp32", "whole", builder.draws.below(1 << 30))
    loaded = builder.shared.value()
    if not builder.add(Fetch(loaded, address(builder, at, region))):
        raise Undone
    return literal(builder, loaded, "*", 1)


def _scaled(builder: Addresses, value: int, numbers: int) -> int:
    """The product in float32. Of integers, the sum: their products with fractions would not be whole."""
    kind = builder.types[value].kind_name
    if kind == "i8":
        return let(builder, "+", cast(builder, value, "i32"), cast(builder, numbers, "i32"))
    return let(builder, "*", cast(builder, value, "fp32"), numbers)


def _literally(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    symbol, number = builder.draws.choose((("*", 1), ("*", 2), ("+", 1), ("-", 3)))
    return literal(builder, value, symbol, number)


def _positive(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    zero = let(builder, "tl.full", kind=builder.types[value].kind_name, shape=(), value=0)
    return let(builder, "tl.maximum", value, zero)


def _remainder(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """Remainders by a number of run time, which take many instructions."""
    number = literal(builder, cast(builder, value, "i32"), "*", 5)
    return let(builder, "plain %", number, argument(builder, builder.draws.choose((7, 10, 37))))


def _shifted(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """Minus a zero point of run time."""
    wide = cast(builder, value, "i32")
    return let(builder, "-", wide, argument(builder, builder.draws.choose((1, 3))))


def _bounded(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """Zero in every other row, chosen by a mask."""
    line = literal(builder, own.depth, "%", 2)
    mask = upright(builder, let(builder, "limit", line, symbol="==", literal=0), axis)
    zero = let(builder, "tl.full", kind=builder.types[value].kind_name, shape=(), value=0)
    return let(builder, "tl.where", mask, value, zero)


def _triangular(builder: Addresses, own: Reading, value: int, axis: int, start: int) -> int:
    """Zero above the diagonal."""
    lines = upright(builder, own.lines, 1 - axis)
    along = upright(builder, let(builder, "+", own.depth, start), axis)
    zero = let(builder, "tl.full", kind=builder.types[value].kind_name, shape=(), value=0)
    return let(builder, "tl.where", let(builder, "compare >=", lines, along), value, zero)


CHANGES: tuple[tuple[Change, float], ...] = (
    (_unchanged, 5.0),
    (_by_line, 1.0),
    (_by_depth, 1.0),
    (_by_group, 0.7),
    (_literally, 0.7),
    (_positive, 0.7),
    (_remainder, 1.5),
    (_shifted, 0.7),
    (_bounded, 0.5),
    (_triangular, 0.7),
)

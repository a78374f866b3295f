"""What a program multiplies, in which tiles, and where a tile of the grid lies."""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.conformance.stress.addresses import Addresses
from triton_porting_kit.conformance.stress.builder import Limits
from triton_porting_kit.conformance.stress.draws import Draws
from triton_porting_kit.conformance.stress.moves import argument, let, literal
from triton_porting_kit.conformance.stress.operations.reducing import ACCUMULATORS

SIDES = (16, 16, 32, 32, 64, 64, 128, 256)
"""Side lengths of the tiles that are multiplied."""
MOST_TILES = 4
"""The maximum number of tiles of a result."""
MOST_ITERATIONS = 4


@dataclass(frozen=True)
class Sizes:
    """The factors are `rows` x `depth` and `depth` x `columns`, and their tiles m x k and k x n."""

    kind: str
    """The type that is multiplied."""
    sums: str
    """The type of the sums."""
    m: int
    n: int
    k: int
    rows: int
    columns: int
    depth: int
    gap: int
    """The number of elements from one element of a row to the next, where a layout has gaps."""
    persistent: bool
    """Whether a program of the grid loops over tiles."""

    @property
    def grid(self) -> tuple[int, int]:
        """The number of tiles of the result along its rows and its columns."""
        return -(-self.rows // self.m), -(-self.columns // self.n)


def sizes(draws: Draws, vocabulary: tuple[str, ...], limits: Limits) -> Sizes:
    """Random sizes within limits."""
    kind = draws.choose([k for k, s in ACCUMULATORS.items() if {k, s} <= set(vocabulary)])
    sides = [s for s in SIDES if 32 * s <= limits.largest]
    m, n = draws.choose(sides), draws.choose(sides)
    k = draws.choose([s for s in sides if s * max(m, n) <= limits.largest and (kind != "i8" or s >= 32)])
    while m * n > limits.largest:
        m //= 2
    rows, columns = draws.between(1, 2 * m), draws.between(1, 2 * n)
    if draws.chance(0.4):  # whole tiles
        rows, columns = -(-rows // m) * m, -(-columns // n) * n
    gap = draws.choose((1, 2))
    most = min(MOST_ITERATIONS * k, (limits.span - 1) // (max(rows, columns) * gap + 6))
    depth = draws.between(1, max(most, 1)) if draws.chance(0.95) else 0
    if draws.chance(0.5) and most >= k:
        depth = max(depth // k * k, k)
    persistent = draws.chance(0.35)
    return Sizes(kind, ACCUMULATORS[kind], m, n, k, rows, columns, depth, gap, persistent)


@dataclass(frozen=True)
class Ends:
    """The sizes of the matrices, as numbers of run time."""

    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class Tile:
    """The rows and columns of the result that a tile has, as lines of indices."""

    sizes: Sizes
    ends: Ends
    rows: int
    columns: int
    first: int
    """The first row, a scalar."""
    first_column: int


def tile_at(builder: Addresses, number: int, of: Sizes, ends: Ends) -> Tile:
    """The tile of a number; the tiles are counted along the rows or along the columns."""
    along = builder.draws.below(2)
    count = argument(builder, of.grid[1 - along])
    first, second = let(builder, "plain //", number, count), let(builder, "plain %", number, count)
    row, column = (first, second) if along == 0 else (second, first)
    starts, lines = [], []
    for position, size in ((row, of.m), (column, of.n)):
        starts.append(literal(builder, position, "*", size))
        lines.append(let(builder, "+", starts[-1], let(builder, "tl.arange", start=0, size=size)))
    return Tile(of, ends, lines[0], lines[1], *starts)


def upright(builder: Addresses, line: int, axis: int) -> int:
    """A line as a matrix of one column (axis 0 keeps the elements) or of one row (axis 1)."""
    return let(builder, "[:, None]", line, axis=1 - axis)


def inside(builder: Addresses, tile: Tile) -> int:
    """The mask of the elements of the tile that the result has."""
    rows = let(builder, "compare <", upright(builder, tile.rows, 0), tile.ends.rows)
    columns = let(builder, "compare <", upright(builder, tile.columns, 1), tile.ends.columns)
    return let(builder, "&", rows, columns)
